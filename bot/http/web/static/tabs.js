// The tabs of one browser follow each other: a change in one is shown in every other that shows the same person.

import * as api from "/static/api.js";

const channel = new BroadcastChannel("heed");

/** Tell the other tabs that something of this person has changed. */
export function tellTabs() {
  channel.postMessage({ account: api.account() });
}

/** Call `changed` when another tab has changed something of this person, and when this tab is looked at again. */
export function followTabs(changed) {
  channel.addEventListener("message", ({ data }) => { if (data.account === api.account()) changed(); });
  document.addEventListener("visibilitychange", () => { if (!document.hidden) changed(); });
}
