// The dashboards' script: follows the chat page's choice of light or dark, and reloads a live page when heed announces
// something new. The dashboards work without it; it adds nothing to a page that heed has not rendered.

const theme = localStorage.getItem("heed-theme");
if (theme) document.documentElement.dataset.theme = theme;

// On a phone the row of tabs is wider than the screen.
document.querySelector(".tabs [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });

const WAIT_MS = 1000; // least time between two loads
let isLoading = false;
let isStale = false;

async function refresh() {
  if (isLoading) {
    isStale = true;
    return;
  }
  isLoading = true;
  const response = await fetch(location.href, { headers: { "X-Heed-Live": "1" } }).catch(() => null);
  if (response?.ok && !response.redirected) {
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const main = page.getElementById("main");
    if (main && !document.activeElement?.closest("main select, main input")) document.getElementById("main").replaceWith(main);
  }
  setTimeout(() => {
    isLoading = false;
    if (isStale) refresh();
    isStale = false;
  }, WAIT_MS);
}

if (document.querySelector("[data-live]")) {
  const events = new EventSource("/admin/events");
  events.addEventListener("message", refresh);
  addEventListener("pagehide", () => events.close());
}
