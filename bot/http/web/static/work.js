// An agent's work on the page: what was said, its calls as cards with a diff, and the person's yes and no.

import * as api from "/static/api.js";
import { outcomeLine } from "/static/answer.js";
import { byId, el, icon, speak } from "/static/dom.js";
import { heatMap } from "/static/heat.js";
import { showText } from "/static/text.js";
import { LESSON, WORK } from "/static/texts.js";
import { undoButton } from "/static/undo.js";

const CHOICE_WAIT_S = 240; // for a lesson that is learned anew because it is to reach further
const AGAIN_MS = 2000; // after a stream of events has ended
let open = null; // the work that this tab shows

/** Draw the list of works, and the folders that one can begin in; nothing where the operator allows none. */
export async function drawWorks(page) {
  const found = await api.workspaces();
  byId("works").hidden = found.workspaces.length === 0;
  if (byId("works").hidden) return;
  const chosen = byId("workspace").value;
  byId("workspace").replaceChildren(...found.workspaces.map((name) => el("option", { value: name, selected: name === chosen }, name || WORK.own)));
  const rows = (await api.works()).sessions.filter((row) => row.workspace !== undefined);
  byId("work-list").replaceChildren(...rows.map((row) => workRow(row, page)));
}

/** Begin a work in the chosen folder once the person asks for it. */
export function listenToWorks(page) {
  byId("work-form").addEventListener("submit", (event) => {
    event.preventDefault();
    page.act(async () => page.open((await api.beginWork(byId("workspace").value)).id));
  });
}

/** Show the work that the tab's address names. */
export async function showWork(page, log) {
  leaveWork();
  log.replaceChildren();
  const work = open = new Work(api.chat(), page, log);
  await work.draw();
  if (open === work) work.follow();
}

/** Stop following the work that is shown. */
export function leaveWork() {
  open?.leave();
  open = null;
}

/** Say something to the agent whose work is shown. Returns false if it was refused. */
export const sayToAgent = (text) => open.decide("prompt", { text });

/** Do what the person says about the notes of the workspace that is shown: a note, "delete 2", or nothing. Returns false
 *  if it was refused. */
export async function noteHere(text) {
  const told = await open.act(() => api.workspaceNotes(open.state.workspace, text));
  if (told) open.show(told.text);
  return Boolean(told);
}

/** Tell the teacher of the lessons to come something about the work that is shown; the agent is not told. Returns false
 *  if it was refused. */
export async function tellLessons(text) {
  if (text) return open.decide("notes", { text });
  open.page.report(new Error(WORK.tellWhat));
  return true;
}

function workRow(row, page) {
  const isOpen = row.id === api.chat();
  const title = WORK.title(row.workspace, row.created_at);
  const name = el("button", { type: "button", class: "chat-name", title, "aria-current": isOpen ? "true" : null, onclick: () => page.open(row.id) }, title);
  const remove = el("button", { type: "button", class: "plain small-icon", "aria-label": WORK.remove(title), onclick: () => page.askToDelete(title, () => api.deleteWork(row.id), isOpen) }, icon("trash"));
  return el("li", { class: isOpen ? "chat active" : "chat" }, name, remove);
}

class Work {
  constructor(id, page, log) {
    Object.assign(this, { id, page, log, lessons: [], progress: "", spoken: "", answered: "" });
    this.controller = new AbortController();
  }

  leave() {
    this.controller.abort();
  }

  /** Show what happens here, also what another tab does, until the tab shows something else. A stream that ends is opened
   *  again; its first event draws what was missed. The person is told of a second failure in a row. */
  async follow() {
    const { signal } = this.controller;
    for (let failures = 0; !signal.aborted;) {
      try {
        for await (const event of api.workEvents(this.id, signal)) {
          await this.take(event);
          failures = 0;
        }
      } catch (error) {
        if (signal.aborted) return;
        const isRefused = error.status >= 400 && error.status < 500;
        if (isRefused || failures === 1) this.page.report(error);
        if (isRefused) return;
        failures += 1;
      }
      await new Promise((resolve) => { setTimeout(resolve, AGAIN_MS); });
    }
  }

  async take({ kind, data }) {
    this.progress = kind === "progress" ? data.text : "";
    if (kind === "lesson") this.lessons.push({ at: this.state.messages.length, ...data });
    if (kind === "progress") this.status.querySelector(".what")?.replaceChildren(data.text);
    else await this.draw();
  }

  /** Draw everything anew from what heed knows; a box that the person writes in stays. */
  async draw() {
    if (this.isWriting()) return;
    const state = await api.work(this.id);
    if (this.isWriting() || this.controller.signal.aborted) return;
    this.state = state;
    this.status = this.statusLine(state);
    this.page.drawn(() => this.log.replaceChildren(...this.nodes(state), this.status));
    this.tell(state);
  }

  isWriting() {
    return this.log.querySelector(".decision .teach") !== null;
  }

  tell(state) {
    const words = state.call ? WORK.asks(state.call.tool) : state.status === "failed" ? WORK.failed : "";
    if (words && words !== this.spoken) speak(words);
    this.spoken = words;
  }

  nodes(state) {
    const nodes = [...head(state)], { messages } = state;
    messages.forEach((message, place) => {
      nodes.push(...this.lessonsAt(place));
      if (message.role === "user") nodes.push(el("section", { class: "turn" }, el("p", { class: "said" }, message.content)));
      else if (message.tool_calls) nodes.push(doneCard(message, messages[place + 1]));
      else if (message.role === "assistant") nodes.push(words(message.content, this.page));
    });
    if (!messages.length && !state.call) nodes.push(el("p", { class: "small" }, WORK.begin(state.workspace)));
    nodes.push(...this.lessonsAt(messages.length));
    if (state.notes.length) nodes.push(el("p", { class: "small" }, WORK.told(state.notes)));
    if (this.answered) nodes.push(el("pre", { class: "command" }, this.answered));
    if (state.call) nodes.push(this.decision(state.call));
    if (state.status === "failed") nodes.push(this.failure());
    return nodes;
  }

  lessonsAt(place) {
    return this.lessons.filter((lesson) => lesson.at === place).map((lesson) => {
      const line = el("p", { class: "outcome" }, icon("mind"), el("span", { class: "line" }, lesson.line));
      const heat = lesson.heat.length ? [el("details", {}, el("summary", {}, WORK.whatChanged), heatMap(lesson.heat))] : [];
      const section = el("section", { class: "lesson", "aria-label": WORK.lesson }, line, ...heat);
      if (lesson.unsure_of) line.append(...this.scopeButtons(lesson));
      if (lesson.version !== null) line.append(undoButton(this.page, section, lesson.version, (said) => Object.assign(lesson, { line: said, version: null })));
      return section;
    });
  }

  /** Make the two buttons that say how far a lesson reaches; they go with the choice. */
  scopeButtons(lesson) {
    return [["answer", LESSON.justThis], ["always", LESSON.fromNowOn]].map(([scope, label]) =>
      el("button", { type: "button", class: "link scope", onclick: () => this.choose(lesson, scope).catch(this.page.report) }, label));
  }

  async choose(lesson, scope) {
    const known = lesson.unsure_of;
    Object.assign(lesson, { unsure_of: "", line: scope === "always" ? LESSON.learning(LESSON.fromNowOn) : lesson.line });
    await this.draw();
    const given = await api.chooseScope(known, { scope, wait: CHOICE_WAIT_S });
    const line = given.feedback_id === known ? LESSON.scopeKept : outcomeLine(given);
    Object.assign(lesson, { line, version: given.status === "learned" ? given.adapter_version : null, heat: given.update?.heat ?? lesson.heat });
    speak(line);
    await this.draw();
    await this.page.changed();
  }

  statusLine(state) {
    if (state.status !== "working") return el("p", { hidden: true });
    const stop = el("button", { type: "button", class: "link", onclick: () => api.decide(this.id, "stop", {}).catch(this.page.report) }, WORK.stop);
    return el("p", { class: "learning" }, el("span", { class: "pulse", "aria-hidden": "true" }), el("span", { class: "what" }, this.progress || WORK.working), stop);
  }

  /** Tell heed what the person has decided, and show what that leads to. Returns false if it was refused. */
  async decide(path, body) {
    let isDone = true;
    this.log.querySelector(".decision .teach")?.remove();
    this.answered = "";
    const done = api.decide(this.id, path, body);
    try {
      await Promise.race([done, new Promise((resolve) => { setTimeout(resolve, 50); })]);
      await this.draw();
      this.page.follow();
      await done;
    } catch (error) {
      isDone = false;
      this.page.report(error);
    }
    await this.draw();
    this.page.follow();
    await this.page.changed();
    return isDone;
  }

  /** Do something, and return what came of it; nothing if it was refused, which the person is told. */
  async act(what) {
    try {
      return await what();
    } catch (error) {
      return this.page.report(error);
    }
  }

  /** Show an answer of heed's own below the work, until the next one. */
  show(text) {
    this.answered = text;
    speak(text);
    return this.draw().then(this.page.follow);
  }

  /** A call that waits: what it would do, and the buttons. */
  decision(call) {
    const box = el("div", { class: "box" });
    const button = (label, onclick, isMain = false) => el("button", { type: "button", class: isMain ? "go" : "chip", onclick }, label);
    return el("section", { class: "card decision", "aria-label": WORK.asks(call.tool) },
      el("p", { class: "tool-name" }, WORK.asks(call.tool), call.is_edited ? el("span", { class: "badge" }, WORK.edited) : null),
      aboutCall(call.about), diff(call.preview),
      el("div", { class: "chips" },
        button(WORK.yes, () => this.decide("approve", { mark: call.mark }), true),
        button(WORK.always(call.tool), () => this.decide("approve", { mark: call.mark, always: true })),
        button(WORK.no, () => this.openNo(box, call)),
        button(WORK.edit, () => this.openEdit(box, call))),
      box);
  }

  /** A call that failed: let the agent see it, or say what was wrong. */
  failure() {
    const box = el("div", { class: "box" });
    return el("section", { class: "card decision", "aria-label": WORK.failed },
      el("p", { class: "tool-name" }, WORK.failed),
      el("div", { class: "chips" },
        el("button", { type: "button", class: "go", onclick: () => this.decide("continue", {}) }, WORK.letItSee),
        el("button", { type: "button", class: "chip", onclick: () => this.openWords(box, "continue", {}, [WORK.cannotWork]) }, WORK.teach)),
      box);
  }

  openNo(box, { mark }) {
    const onlyNo = el("button", { type: "button", class: "chip", onclick: () => this.decide("deny", { mark }) }, WORK.onlyNo);
    this.openWords(box, "deny", { mark }, WORK.reasons, onlyNo);
  }

  openWords(box, path, about, reasons, extra = null) {
    const input = el("input", { type: "text", maxlength: 4000, "aria-label": WORK.whatWasWrong, placeholder: WORK.whatWasWrong, autocomplete: "off", enterkeyhint: "send" });
    const chips = reasons.map((text) => el("button", { type: "button", class: "chip", onclick: () => this.decide(path, { ...about, text }) }, text));
    this.openBox(box, input, WORK.learnIt, () => input.value.trim() && { path, body: { ...about, text: input.value.trim() } }, el("div", { class: "chips" }, ...chips, extra));
  }

  openEdit(box, call) {
    const input = el("textarea", { rows: 8, "aria-label": WORK.arguments, spellcheck: "false" });
    input.value = JSON.stringify(call.arguments, null, 2);
    const read = () => {
      try {
        return { path: "edit", body: { mark: call.mark, arguments: JSON.parse(input.value) } };
      } catch {
        this.page.report(new Error(WORK.notJson));
        return null;
      }
    };
    this.openBox(box, input, WORK.useThese, read, null);
  }

  openBox(box, input, label, read, extra) {
    const form = el("form", { class: "teach", onsubmit: (event) => { event.preventDefault(); const found = read(); if (found) this.decide(found.path, found.body); else input.focus(); } },
      extra, el("div", { class: "row" }, input, el("button", { type: "submit", class: "go" }, label)));
    form.addEventListener("keydown", (event) => { if (event.key === "Escape") { event.stopPropagation(); box.replaceChildren(); this.draw(); } });
    box.replaceChildren(form);
    input.focus();
    this.page.show(form);
  }
}

/** The folder and its git repository, if it is one; the files with conflicts by their names. */
function head({ workspace, git }) {
  if (!git) return [];
  return [el("p", { class: "small place", title: git.conflicts.join("\n") }, `${workspace || WORK.own} · ${WORK.git(git)}`)];
}

function words(text, page) {
  const body = el("div", { class: "text" });
  showText(body, text, page.drawn);
  return el("article", { class: "answer", "aria-label": WORK.agent }, body);
}

/** A call that ran or was denied, with what came of it. */
function doneCard(message, told) {
  const { name } = message.tool_calls[0].function;
  const result = resultOf(told?.content ?? "");
  const state = result.success ? "done" : "not-done";
  return el("section", { class: `card ${state}`, "aria-label": WORK.called(name) },
    el("p", { class: "tool-name" }, icon(result.success ? "check" : "close"), name, aboutCall(message.about)),
    el("details", {}, el("summary", {}, result.success ? WORK.output : WORK.notDone), diff(result.output)),
    result.feedback ? el("p", { class: "small" }, result.feedback) : null);
}

/** Read what the model was told of a call: a tool's own result, or a sentence of heed's. */
function resultOf(content) {
  try {
    return { output: "", success: false, feedback: "", ...JSON.parse(content) };
  } catch {
    return { output: content, success: false, feedback: "" };
  }
}

function aboutCall(said) {
  return said ? el("code", { class: "about" }, said) : null;
}

/** Show a diff, or any output, line by line in its colours. */
function diff(text) {
  const kinds = { "+": "plus", "-": "minus", "@": "place" };
  const kindOf = (line) => (/^(---|\+\+\+) /.test(line) ? "place" : kinds[line[0]] ?? null);
  const lines = text.trimEnd().split("\n").map((line) => el("span", { class: kindOf(line) }, `${line}\n`));
  return el("pre", { class: "diff", tabindex: "0", "aria-label": WORK.diff }, ...lines);
}
