// One answer on the page: its text, its buttons (Correct, Rewrite, thumbs), their boxes, and its lessons' results.

import * as api from "/static/api.js";
import { el, icon, seconds, speak, versionName } from "/static/dom.js";
import { heatMap } from "/static/heat.js";
import { GrowingText, showText } from "/static/text.js";
import { ANSWER, BETTER, LESSON } from "/static/texts.js";
import { undoButton } from "/static/undo.js";

const ICONS = { learned: "check", rejected: "close", cancelled: "close", queued: "mind", kept: "mind" };
const PATIENCE_S = 3; // how long a lesson may take before the page shows how far it is
const LOOK_EVERY_MS = 1000;

/** An answer. `page` gives: reasons(), changed(), report(error), regenerate(answer), show(node). */
export class Answer {
  constructor(page, turn) {
    this.page = page;
    this.turn = turn; // the element that holds all answers to one question
    this.id = "";
    this.text = "";
    this.wasStopped = false;
    this.body = el("div", { class: "text" });
    this.shown = new GrowingText(this.body, page.drawn);
    this.numPieces = 0;
    this.tools = el("div", { class: "tools", role: "group", "aria-label": ANSWER.tools });
    this.box = el("div", { class: "box" });
    this.node = el("article", { class: "answer writing", "aria-label": ANSWER.heed }, this.body, this.tools, this.box);
    turn.append(this.node);
  }

  /** Say how many others are before it. */
  wait(number) {
    this.tools.replaceChildren(el("span", { class: "version" }, ANSWER.waiting(number)));
    speak(ANSWER.waiting(number));
  }

  /** Add a piece of the answer. */
  add(piece, id = "") {
    if (!this.text) this.tools.replaceChildren();
    this.id = id;
    this.text += piece;
    this.numPieces += 1;
    this.shown.set(this.text);
  }

  /** Wait until all of the answer is shown as it will stay. */
  async settle() {
    await (this.numPieces > 1 ? this.shown.finish() : this.shown.done);
  }

  /** Show the buttons under the whole answer. */
  finish({ id, version, isGold = false, isStopped = false, isRepeating = false }) {
    this.id = id;
    this.node.classList.remove("writing");
    this.node.dataset.completion = id;
    this.up = this.tool("up", ANSWER.approve, () => this.approve(), isGold);
    this.down = this.tool("down", ANSWER.reject, () => this.reject());
    this.tools.replaceChildren(...[
      this.up, this.down,
      this.tool("correct", ANSWER.correct, () => this.openCorrection(), null, true),
      this.tool("rewrite", ANSWER.rewrite, () => this.openRewrite(), null, true),
      this.tool("again", ANSWER.again, () => this.page.regenerate(this)),
      this.tool("copy", ANSWER.copy, () => this.copy()),
      isStopped ? el("span", { class: "stopped" }, ANSWER.stopped) : null,
      isRepeating ? el("span", { class: "stopped" }, ANSWER.repeated) : null,
      el("span", { class: "version", title: ANSWER.versionTitle }, versionName(version)),
    ].filter(Boolean));
  }

  /** End an interrupted answer. It is not stored, so it gets no buttons. */
  stop(words) {
    this.node.classList.remove("writing");
    this.tools.replaceChildren(el("span", { class: "version" }, words));
  }

  /** Fade this answer when another one takes its place. */
  retire() {
    this.node.classList.add("before");
    this.box.replaceChildren();
    this.tools.replaceChildren();
  }

  /** End this answer with what is written. Returns false if heed has not begun it or cannot be told. */
  async endHere() {
    if (!this.id) return false;
    this.isStopped = true;
    return api.stop(this.id).then(() => true, () => false);
  }

  tool(name, label, onclick, isPressed = null, hasWords = false) {
    const attributes = { type: "button", class: hasWords ? "tool words" : "tool", onclick, title: label };
    if (!hasWords) attributes["aria-label"] = label;
    if (isPressed !== null) attributes["aria-pressed"] = String(isPressed);
    return el("button", attributes, icon(name), hasWords ? el("span", {}, label) : null);
  }

  async approve() {
    this.up.setAttribute("aria-pressed", "true");
    this.down.removeAttribute("aria-pressed");
    await this.tell({ kind: "approval" }, ANSWER.approved);
  }

  async reject() {
    this.down.setAttribute("aria-pressed", "true");
    this.up.setAttribute("aria-pressed", "false");
    this.openCorrection();
    const given = await this.tell({ kind: "reaction", value: "-1" }, ANSWER.question);
    if (given?.taken_back) {
      this.box.replaceChildren();
      this.learned({ ...given, text: "👎" }, true);
      await this.page.changed();
    }
  }

  async tell(body, spoken) {
    try {
      const given = await api.feedback({ completion_id: this.id, ...body });
      speak(spoken);
      return given;
    } catch (error) {
      this.page.report(error);
      return null;
    }
  }

  async copy() {
    try {
      await navigator.clipboard.writeText(this.text);
      speak(ANSWER.copied);
    } catch {
      this.page.report(new Error(ANSWER.noCopy));
    }
  }

  openCorrection() {
    const input = el("input", { type: "text", maxlength: 4000, placeholder: ANSWER.correctionHint, "aria-label": ANSWER.question, autocomplete: "off", enterkeyhint: "send" });
    const chips = this.page.reasons().map((reason) =>
      el("button", { type: "button", class: "chip", onclick: () => this.teach({ kind: "correction", text: reason }) }, reason));
    this.open(ANSWER.question, input, () => ({ kind: "correction", text: input.value }), ANSWER.learnIt, el("div", { class: "chips" }, ...chips));
  }

  openRewrite() {
    const input = el("textarea", { rows: 4, maxlength: 16000, "aria-label": ANSWER.rewriteLabel });
    input.value = this.text;
    this.open(ANSWER.rewriteTitle, input, () => ({ kind: "ideal", text: input.value }), ANSWER.teachIt, null);
    input.setSelectionRange(input.value.length, input.value.length);
  }

  open(title, input, read, label, extra) {
    const close = () => { this.box.replaceChildren(); };
    const send = () => { if (read().text.trim()) this.teach(read()); else input.focus(); };
    const form = el("form", { class: "teach", onsubmit: (event) => { event.preventDefault(); send(); } },
      el("div", { class: "title" }, el("p", {}, title),
        el("button", { type: "button", class: "plain", "aria-label": ANSWER.close, onclick: close }, icon("close"))),
      extra,
      el("div", { class: "row" }, input, el("button", { type: "submit", class: "go" }, label)));
    form.addEventListener("keydown", (event) => {
      if (event.key === "Escape") { close(); this.tools.querySelector("button")?.focus(); }
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); send(); }
    });
    this.box.replaceChildren(form);
    input.focus();
    this.page.show(form);
  }

  /** Send feedback about this answer, then show its result and the new answer. */
  async teach(body) {
    const whole = { completion_id: this.id, retry: true, ...body };
    const key = api.randomName(); // sent again, it is the same feedback
    await this.lesson(body, (wait) => api.feedback({ ...whole, wait }, key));
  }

  /** Show a lesson while it is learned, then its result and the new answer. `send` waits for it as long as it is told. */
  async lesson(body, send) {
    const clock = learningClock(body, this.page.report);
    this.box.replaceChildren(clock.node);
    this.node.classList.add("busy");
    this.page.show(clock.node);
    try {
      let given = await send(PATIENCE_S);
      if (given.status === "queued" && await followed(given.feedback_id, clock)) {
        given = await send(true);
      }
      this.box.replaceChildren();
      this.learned({ ...given, kind: body.kind, text: body.text }, true);
      if (given.retry) this.page.answerAgain(this, given.retry);
      this.page.show(this.turn.lastElementChild);
      await this.page.changed();
    } catch (error) {
      this.box.replaceChildren();
      this.page.report(error);
    } finally {
      clock.end();
      this.node.classList.remove("busy");
    }
  }

  /** Show the result of feedback about this answer; with `isNew` a screen reader reads it out. */
  learned(given, isNew = false) {
    const line = lessonLine(given);
    const lesson = el("section", { class: `lesson ${given.status}${given.state === "undone" ? " undone" : ""}`, "aria-label": LESSON.label },
      el("p", { class: "said-why" }, given.kind === "ideal" ? LESSON.youRewrote : LESSON.youSaid(given.text)));
    const chip = el("p", { class: "outcome" }, icon(ICONS[given.status]), el("span", { class: "line" }, line));
    if (given.status === "learned" && given.state !== "undone") chip.append(undoButton(this.page, lesson, given.adapter_version));
    const canChoose = given.status === "learned" || isAsked(given);
    if (canChoose && given.state !== "undone") chip.append(...this.scopeButtons(given));
    lesson.append(chip);
    if (given.note && given.kind !== "ideal" && given.note !== given.text) lesson.append(el("p", { class: "keeps" }, LESSON.note(given.note)));
    if (given.update?.heat?.length) this.showHeat(given.update.heat, lesson);
    this.turn.append(lesson);
    if (isNew) speak(line);
  }

  /** Show the better answer that a teacher wrote. */
  improved(better) {
    const body = el("div", { class: "text" });
    showText(body, better.text, this.page.drawn);
    const line = better.state === "taken in" ? BETTER.learned(better.source) : BETTER.waiting(better.source);
    this.turn.append(el("section", { class: "better", "aria-label": BETTER.label },
      el("p", { class: "said-why" }, line), body));
  }

  showHeat(heat, lesson) {
    this.node.querySelector(".heat")?.remove();
    const map = heatMap(heat);
    const toggle = el("button", { type: "button", class: "link", "aria-expanded": "true" }, LESSON.whatChanged);
    toggle.addEventListener("click", () => {
      map.hidden = !map.hidden;
      this.body.hidden = !map.hidden;
      toggle.setAttribute("aria-expanded", String(!map.hidden));
    });
    this.body.hidden = true;
    this.body.after(map);
    lesson.querySelector(".outcome").append(toggle);
  }

  /** Make the two buttons that say how far a lesson reaches. */
  scopeButtons(given) {
    return [["answer", LESSON.justThis], ["always", LESSON.fromNowOn]].map(([scope, label]) => {
      const button = el("button", { type: "button", class: "link scope" }, label);
      if (given.scope === scope) button.setAttribute("aria-pressed", "true");
      button.addEventListener("click", () => this.choose(given, scope, button));
      return button;
    });
  }

  async choose(given, scope, button) {
    for (const each of button.parentElement.querySelectorAll(".scope")) each.removeAttribute("aria-pressed");
    button.setAttribute("aria-pressed", "true");
    const known = given.feedback_id;
    try {
      const chosen = await api.chooseScope(known, { scope, wait: 0 });
      if (chosen.feedback_id === known) { speak(LESSON.scopeKept); return; }
      const taught = button.closest(".lesson");
      taught.querySelectorAll(".scope, .undo").forEach((each) => each.remove());
      if (scope === "answer") taught.classList.add("undone");
      await this.lesson(given, (wait) => api.chooseScope(known, { scope, wait, retry: true }));
    } catch (error) {
      button.removeAttribute("aria-pressed");
      this.page.report(error);
    }
  }
}

function lessonLine(given) {
  const line = outcomeLine(given);
  return isAsked(given) && given.state !== "undone" ? `${line} ${LESSON.howFar}` : line;
}

/** Return true if heed was unsure how far it reaches, and the person has not said so yet. */
function isAsked(given) {
  return given.is_unsure && !given.scope;
}

/** Return the line about what became of feedback. */
export function outcomeLine(given) {
  if (given.state === "undone") return LESSON.undone;
  if (given.status === "learned") {
    const line = LESSON.learned(given.adapter_version, given.update?.duration_ms ?? 0);
    const model = given.uncalibrated ? ` ${LESSON.uncalibrated}` : "";
    return line + model + (given.replaced ? LESSON.replaced(given.replaced) : "");
  }
  if (given.status === "cancelled") return LESSON.cancelled;
  if (given.status === "rejected") return LESSON.notLearned(given.reason || LESSON.didWorse);
  if (given.status === "queued") return given.reason || LESSON.queued;
  return given.ask || given.reason || LESSON.noted;
}

/** Show how far a lesson is until it has ended. Return false if it neither waits nor runs. */
async function followed(id, clock) {
  for (;;) {
    const state = await api.feedbackState(id);
    if (state.status !== "queued" || !state.progress) return state.status !== "queued";
    clock.show(state.progress, id);
    await new Promise((resolve) => { setTimeout(resolve, LOOK_EVERY_MS); });
  }
}

function cancelButton(id, report) {
  const button = el("button", { type: "button", class: "link cancel" }, LESSON.cancel);
  button.addEventListener("click", async () => {
    button.disabled = true;
    await api.cancelLesson(id).catch((error) => { button.disabled = false; report(error); });
  });
  return button;
}

function learningClock(body, report) {
  const time = el("span", { class: "time" }, "0.0 s");
  const words = body.kind === "ideal" ? LESSON.learningRewrite : LESSON.learning(body.text);
  const what = el("span", { class: "what" }, words);
  const node = el("p", { class: "learning" }, el("span", { class: "pulse", "aria-hidden": "true" }), what, time);
  const bar = el("progress", { max: 1, value: 0, "aria-label": LESSON.share });
  const show = (progress, id) => {
    what.textContent = progress.text;
    bar.value = progress.share;
    if (!bar.isConnected) node.append(bar, cancelButton(id, report));
  };
  speak(words);
  const started = performance.now();
  const timer = setInterval(() => { time.textContent = seconds(performance.now() - started); }, 100);
  document.body.classList.add("is-learning");
  return { node, show, end: () => { clearInterval(timer); document.body.classList.remove("is-learning"); } };
}
