// The two side panels, which lie over the conversation on small screens: one at a time, closed by Escape and curtain.

import { byId } from "/static/dom.js";

const NAMES = ["chats", "panel"];

/** Open or close a drawer; its opener gets the focus back. */
export function showDrawer(name, isOpen) {
  for (const each of NAMES) mark(each, isOpen && each === name);
  byId("curtain").hidden = !isOpen;
  byId(isOpen ? `${name}-close` : `${name}-open`).focus();
}

function mark(name, isOpen) {
  document.body.classList.toggle(`${name}-shown`, isOpen);
  byId(`${name}-open`).setAttribute("aria-expanded", String(isOpen));
}

/** Close the drawer that is open, if one is. */
export function closeDrawer() {
  const open = NAMES.find((name) => document.body.classList.contains(`${name}-shown`));
  if (open) showDrawer(open, false);
}

/** Make the drawers' buttons work. */
export function listenToDrawers() {
  for (const name of NAMES) {
    byId(`${name}-open`).addEventListener("click", () => showDrawer(name, !document.body.classList.contains(`${name}-shown`)));
    byId(`${name}-close`).addEventListener("click", () => showDrawer(name, false));
  }
  byId("curtain").addEventListener("click", closeDrawer);
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") closeDrawer(); });
}
