// The list of conversations: find, open, rename, delete. Which one this tab shows stands in its address.

import * as api from "/static/api.js";
import { byId, el, icon } from "/static/dom.js";
import { CHATS } from "/static/texts.js";

const SEARCH_AFTER_MS = 200;
let searching = 0; // the timer of a search

/** Draw the list. `page` gives: act(work) for changes, open(name), leave() when the open one is deleted, report(error). */
export async function drawChats(page) {
  const words = byId("search").value.trim();
  const { data } = await api.chats(words);
  if (byId("chat-list").querySelector("form")) return; // one is being renamed
  byId("chat-list").replaceChildren(...data.map((row) => chatRow(row, page)));
  byId("no-chats").hidden = data.length > 0;
  byId("no-chats").textContent = words ? CHATS.noneFound : CHATS.none;
}

/** Draw the list again after each change of the search. */
export function listenToSearch(page) {
  byId("search").addEventListener("input", () => {
    clearTimeout(searching);
    searching = setTimeout(() => drawChats(page).catch(page.report), SEARCH_AFTER_MS);
  });
}

function chatRow(row, page) {
  const isOpen = row.chat === api.chat();
  const item = el("li", { class: isOpen ? "chat active" : "chat" });
  const name = el("button", { type: "button", class: "chat-name", title: row.title, "aria-current": isOpen ? "true" : null, onclick: () => page.open(row.chat) }, row.title);
  const rename = el("button", { type: "button", class: "plain small-icon", "aria-label": CHATS.rename(row.title), onclick: () => item.replaceChildren(renameForm(row, page)) }, icon("rewrite"));
  const remove = el("button", { type: "button", class: "plain small-icon", "aria-label": CHATS.remove(row.title), onclick: () => askToDelete(page, row.title, () => api.deleteChat(row.chat), isOpen) }, icon("trash"));
  item.append(name, rename, remove);
  return item;
}

function renameForm(row, page) {
  const input = el("input", { type: "text", maxlength: 80, "aria-label": CHATS.newTitle, autocomplete: "off" });
  input.value = row.title;
  let hasEnded = false; // the box loses the focus, too, when it is removed
  const end = (work) => {
    if (hasEnded) return;
    hasEnded = true;
    page.act(async () => { form.remove(); await work(); });
  };
  const form = el("form", { class: "renaming", onsubmit: (event) => { event.preventDefault(); end(() => api.renameChat(row.chat, input.value.trim())); } }, input);
  form.addEventListener("keydown", (event) => { if (event.key === "Escape") { event.stopPropagation(); end(async () => {}); } });
  input.addEventListener("blur", () => end(async () => {}));
  queueMicrotask(() => { input.focus(); input.select(); });
  return form;
}

/** Ask the person, then delete; `isOpen`: this tab shows it. */
export function askToDelete(page, title, remove, isOpen) {
  const dialog = byId("ask-delete");
  byId("delete-title").textContent = title;
  dialog.addEventListener("close", () => {
    if (dialog.returnValue === "yes") page.act(async () => { await remove(); if (isOpen) await page.leave(); });
    dialog.returnValue = "";
  }, { once: true });
  dialog.showModal();
}
