// The page: sends messages, shows answers as they are written, and redraws the panel after each change.

import * as api from "/static/api.js";
import { Answer } from "/static/answer.js";
import { byId, el, speak } from "/static/dom.js";
import { askToDelete, drawChats, listenToSearch } from "/static/chats.js";
import { closeDrawer, listenToDrawers } from "/static/drawer.js";
import { drawPanel } from "/static/panel.js";
import { followTabs, tellTabs } from "/static/tabs.js";
import { untilReady } from "/static/state.js";
import { drawWorks, leaveWork, listenToWorks, noteHere, sayToAgent, showWork, tellLessons } from "/static/work.js";
import { ANSWER, COMPOSER, ERRORS, KEY, STARTERS } from "/static/texts.js";

const LEARNING_EVERY_MS = 1500;
const log = byId("log");
const say = byId("say");
let loaded = Promise.resolve(); // done once the conversation is shown; messages wait for it
let writing = null; // the answer being written, and its AbortController
let lookAgain = 0; // the timer that redraws the panel while a note is being learned
let isReady = false; // true once the adapter was asked for since the last message
let reasons = [];

// The page as its answers see it.
const page = {
  reasons: () => reasons,
  report,
  drawn: (work) => { const isAtEnd = nearEnd(); work(); if (isAtEnd) page.follow(); },
  follow: () => { log.scrollTop = log.scrollHeight; },
  show: (node) => node.scrollIntoView({ block: "nearest" }),
  changed,
  act,
  open: openChat,
  leave: openNewest,
  askToDelete: (...what) => askToDelete(page, ...what),
  answerAgain(answer, retry) {
    answer.retire();
    const next = new Answer(page, answer.turn);
    next.add(retry.text);
    next.finish({ id: retry.completion_id, version: retry.adapter_version });
    return next;
  },
  async regenerate(answer) {
    const next = new Answer(page, answer.turn);
    answer.retire();
    const hasBegun = await write(next, (...how) => api.regenerate(answer.id, ...how));
    if (!hasBegun) await load();
  },
};

async function start() {
  byId("who").value = api.user();
  applyTheme(localStorage.getItem("heed-theme"));
  listen();
  say.focus(); // at once: the person may be in another field by the time the conversation is there
  await untilReady();
  await (location.hash ? load() : openNewest());
}

/** Show the person's newest conversation, or the first one of all. */
async function openNewest() {
  const rows = await api.chats("").catch(() => ({ data: [] }));
  api.setChat(rows.data[0]?.chat ?? "");
  await load();
}

/** Show a conversation. */
async function openChat(name) {
  stopWriting();
  api.setChat(name);
  closeDrawer();
  say.focus();
  await reload();
}

/** Show the person's conversation from the beginning. */
async function load() {
  try {
    leaveWork();
    await refresh();
    if (api.isWork()) return await showWork(page, log);
    const turns = (await api.turns()).data;
    log.replaceChildren(byId("welcome") ?? welcome);
    turns.forEach(showTurn);
    showWelcome(turns.length === 0);
    await refresh();
    page.follow();
  } catch (error) {
    report(error);
  }
}

/** Show the conversation again, after the person has changed; messages wait for it. */
function reload() {
  loaded = load();
  return loaded;
}

const welcome = byId("welcome");

function showWelcome(isShown) {
  welcome.hidden = !isShown;
}

function showTurn(answers) {
  const turn = addTurn(answers[0].question);
  answers.forEach((stored, index) => {
    const answer = new Answer(page, turn);
    answer.add(stored.text);
    answer.finish({ id: stored.completion_id, version: stored.adapter_version, isGold: stored.is_gold, ...api.endOf(stored.finish_reason) });
    if (index < answers.length - 1) answer.retire();
    for (const given of stored.feedback) {
      if (given.kind === "correction" || given.kind === "ideal") answer.learned(given);
      if (given.kind === "reaction" && ["-1", "👎"].includes(given.value)) answer.down.setAttribute("aria-pressed", "true");
    }
    if (stored.better) answer.improved(stored.better);
  });
}

function addTurn(question) {
  const turn = el("section", { class: "turn" }, el("p", { class: "said" }, question));
  log.append(turn);
  return turn;
}

async function sendMessage(text) {
  await loaded;
  showWelcome(false);
  hideBanner();
  if (text === "/reset") return openChat(api.newChat());
  const [, word, note] = /^\/(tell|here)(?:\s+(.*))?$/s.exec(text) ?? [];
  if (api.isWork() && word) return unlessRefused((word === "tell" ? tellLessons : noteHere)(note ?? ""), text);
  if (text.startsWith("/")) return runCommand(text);
  if (api.isWork()) return unlessRefused(sayToAgent(text), text);
  const turn = addTurn(text);
  page.follow();
  const hasBegun = await write(new Answer(page, turn), (...how) => api.ask(text, ...how));
  if (!hasBegun) giveBack(turn, text);
}

/** Wait for what a message to an agent leads to; one that was refused is given back. */
async function unlessRefused(said, text) {
  if (!await said) giveBack(null, text);
}

/** Put a message that was refused back into the message box. */
function giveBack(turn, text) {
  turn?.remove();
  if (!say.value) say.value = text;
  fitComposer();
}

/** Stream an answer into `answer`. Returns false if no piece of it came. */
async function write(answer, call) {
  const controller = new AbortController();
  writing = { answer, controller };
  setWriting(true);
  try {
    const done = await call((piece, id) => answer.add(piece, id), controller.signal, (number) => answer.wait(number));
    await answer.settle();
    answer.finish({ ...done, isStopped: answer.isStopped });
    speak(answer.text);
    changed().catch(report);
  } catch (error) {
    const wasStopped = error.name === "AbortError";
    answer.wasStopped = wasStopped;
    answer.stop(wasStopped ? ANSWER.neverBegun : ANSWER.brokenOff);
    if (!wasStopped) report(error);
  } finally {
    writing = null;
    setWriting(false);
    if (nearEnd()) page.follow();
  }
  return answer.text !== "" || answer.wasStopped;
}

/** End the answer being written, with what is written; without a word of it, break it off. */
async function stopWriting() {
  const stopped = writing;
  if (stopped && !await stopped.answer.endHere()) stopped.controller.abort();
}

/** Make a link that saves a file from a command. */
function download(file) {
  const bytes = Uint8Array.from(atob(file.base64), (char) => char.charCodeAt(0));
  return el("a", { class: "file", download: file.name, href: URL.createObjectURL(new Blob([bytes])) }, file.name);
}

async function runCommand(text) {
  const turn = addTurn(text);
  try {
    const done = await api.command(text, null);
    if (done.command === "forget") await load();
    if (done.feedback || done.answer) await load();
    else turn.append(el("pre", { class: "command" }, done.text), ...done.files.map(download));
    if (done.command === "forget") log.append(turn);
    speak(done.text);
    await changed();
  } catch (error) {
    giveBack(turn, text);
    report(error);
  }
  page.follow();
}

/** Redraw everything that a lesson changes. */
async function refresh() {
  const [{ summary, isLearning }] = await Promise.all([drawPanel(act), drawChats(page), drawWorks(page)]);
  reasons = summary.reasons;
  clearTimeout(lookAgain);
  if (isLearning) lookAgain = setTimeout(() => refresh().catch(report), LEARNING_EVERY_MS);
}

/** Redraw what this tab has changed, and tell the others. */
async function changed() {
  tellTabs();
  await refresh();
}

/** Show what another tab or another program has changed, unless the person is in the middle of something. */
async function follow() {
  if (writing || api.isWork() || document.querySelector(".teach, .learning, .renaming")) return;
  const top = log.scrollTop, isAtEnd = nearEnd();
  await reload();
  if (!isAtEnd) log.scrollTop = top;
}

/** Run a change from the panel or the list, then redraw them. */
async function act(work) {
  try {
    await work();
    await changed();
    hideBanner();
  } catch (error) {
    report(error);
  }
}

function report(error) {
  if (error.status === 401) {
    byId("key-words").textContent = api.hasKey() ? KEY.wrong : KEY.needed;
    if (!byId("ask-key").open) byId("ask-key").showModal();
    return;
  }
  byId("banner").textContent = error.message || ERRORS.unknown;
  byId("banner").hidden = false;
  if (error.status === 0 || error.status === 503) untilReady().then(hideBanner);
}

function hideBanner() {
  byId("banner").hidden = true;
}

function nearEnd() {
  return log.scrollHeight - log.scrollTop - log.clientHeight < 120;
}

function setWriting(isWriting) {
  const button = byId("send");
  log.setAttribute("aria-busy", String(isWriting));
  button.setAttribute("aria-label", isWriting ? COMPOSER.stop : COMPOSER.send);
  button.querySelector("use").setAttribute("href", isWriting ? "#i-stop" : "#i-send");
}

function fitComposer() {
  say.style.setProperty("height", "auto");
  say.style.setProperty("height", `${Math.min(say.scrollHeight, 200)}px`);
}

function applyTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
}

function switchTheme() {
  const isDark = document.documentElement.dataset.theme
    ? document.documentElement.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  const theme = isDark ? "light" : "dark";
  localStorage.setItem("heed-theme", theme);
  applyTheme(theme);
}

function onSubmit(form, work) {
  byId(form).addEventListener("submit", (event) => {
    event.preventDefault();
    work();
  });
}

/** Have the adapter loaded while the first words of a message are written. */
function getReady() {
  if (isReady) return;
  isReady = true;
  api.prepare().catch(() => {}); // it is loaded with the question then
}

function listen() {
  byId("starters").replaceChildren(...STARTERS.map((text) =>
    el("button", { type: "button", class: "chip", onclick: () => sendMessage(text) }, text)));
  onSubmit("composer", async () => {
    if (writing) { stopWriting(); return; }
    await loaded;
    const text = say.value.trim();
    if (!text) return;
    say.value = "";
    isReady = false;
    fitComposer();
    sendMessage(text);
  });
  say.addEventListener("input", () => { fitComposer(); getReady(); });
  say.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      if (!writing) byId("composer").requestSubmit();
    }
  });
  onSubmit("who-form", () => say.focus());
  byId("who").addEventListener("change", () => {
    api.setUser(byId("who").value.trim().split("/").pop());
    byId("who").value = api.user();
    loaded = openNewest();
  });
  onSubmit("note-form", () => {
    const text = byId("note").value.trim();
    if (!text) return;
    byId("note").value = "";
    act(() => api.feedback({ kind: "note", text }));
  });
  byId("learning").addEventListener("change", (event) => act(() => api.command(`/learning ${event.target.checked ? "on" : "off"}`, null)));
  byId("new-chat").addEventListener("click", () => openChat(api.newChat()));
  byId("forget").addEventListener("click", () => { byId("forget-name").textContent = api.account(); byId("ask-forget").showModal(); });
  byId("ask-forget").addEventListener("close", (event) => {
    if (event.target.returnValue === "yes") act(async () => { await api.forget(); await openNewest(); });
    event.target.returnValue = "";
  });
  byId("key-form").addEventListener("submit", () => { api.setKey(byId("key").value.trim()); byId("key").value = ""; loaded = openNewest(); });
  byId("theme").addEventListener("click", switchTheme);
  listenToDrawers();
  listenToSearch(page);
  listenToWorks(page);
  followTabs(follow);
  addEventListener("hashchange", reload);
}

loaded = start();
