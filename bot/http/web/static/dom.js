// Small tools to build the page. Text goes in as text nodes only: nothing here can add markup from outside.

/** Make an element: `el("p", {class: "x", onclick: f}, "text", child)`. Attributes set to null or false are left out. */
export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

/** Make an icon from the page's sprite. */
export function icon(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const use = document.createElementNS("http://www.w3.org/2000/svg", "use");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  use.setAttribute("href", `#i-${name}`);
  svg.append(use);
  return svg;
}

/** Return the element with an id. */
export const byId = (id) => document.getElementById(id);

/** Have a screen reader read out a text. */
export function speak(text) {
  byId("spoken").textContent = text;
}

/** Return milliseconds as "1.2 s". */
export const seconds = (ms) => `${(ms / 1000).toFixed(1)} s`;

/** Return the name of a version, such as "v3"; v0 is the untrained model. */
export const versionName = (number) => `v${number}`;
