// One answer on the page: its text, the buttons under it, the two boxes (correct, rewrite), and what was learned.

import * as api from "/static/api.js";
import { el, icon, seconds, speak, versionName } from "/static/dom.js";
import { heatMap } from "/static/heat.js";
import { showText } from "/static/text.js";

const ICONS = { learned: "check", rejected: "close", queued: "mind", kept: "mind" };

/** An answer. `page` gives: reasons(), changed(), report(error), regenerate(answer), show(node). */
export class Answer {
  constructor(page, turn) {
    this.page = page;
    this.turn = turn; // the element all answers to one question are in
    this.id = "";
    this.text = "";
    this.wasStopped = false;
    this.body = el("div", { class: "text" });
    this.tools = el("div", { class: "tools", role: "group", "aria-label": "About this answer" });
    this.box = el("div", { class: "box" });
    this.node = el("article", { class: "answer writing", "aria-label": "heed" }, this.body, this.tools, this.box);
    turn.append(this.node);
  }

  /** A piece of the answer came. */
  add(piece) {
    this.text += piece;
    showText(this.body, this.text);
  }

  /** The answer is whole. */
  finish({ id, version, isGold = false }) {
    this.id = id;
    this.node.classList.remove("writing");
    this.node.dataset.completion = id;
    this.up = this.tool("up", "Good answer", () => this.approve(), isGold);
    this.down = this.tool("down", "Bad answer", () => this.reject());
    this.tools.replaceChildren(
      this.up, this.down,
      this.tool("correct", "Correct", () => this.openCorrection(), null, true),
      this.tool("rewrite", "Rewrite", () => this.openRewrite(), null, true),
      this.tool("again", "Answer again", () => this.page.regenerate(this)),
      this.tool("copy", "Copy", () => this.copy()),
      el("span", { class: "version", title: "The version of your adapter that gave this answer" }, versionName(version)));
  }

  /** It was stopped half-way: nothing of it is kept, so there is nothing to say about it. */
  stop(words = "Stopped. heed does not keep this one.") {
    this.node.classList.remove("writing");
    this.tools.replaceChildren(el("span", { class: "version" }, words));
  }

  /** Another answer takes its place. */
  retire() {
    this.node.classList.add("before");
    this.box.replaceChildren();
    this.tools.replaceChildren();
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
    await this.tell({ kind: "approval" }, "Kept as a good example.");
  }

  async reject() {
    this.down.setAttribute("aria-pressed", "true");
    this.up.setAttribute("aria-pressed", "false");
    this.openCorrection();
    const given = await this.tell({ kind: "reaction", value: "-1" }, "What should be different?");
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
      speak("Copied.");
    } catch {
      this.page.report(new Error("The browser does not let this page copy."));
    }
  }

  openCorrection() {
    const input = el("input", { type: "text", maxlength: 4000, placeholder: "too long, call me Ana …", "aria-label": "What should be different?", autocomplete: "off", enterkeyhint: "send" });
    const chips = this.page.reasons().map((reason) =>
      el("button", { type: "button", class: "chip", onclick: () => this.teach({ kind: "correction", text: reason }) }, reason));
    this.open("What should be different?", input, () => ({ kind: "correction", text: input.value }), "Learn it", el("div", { class: "chips" }, ...chips));
  }

  openRewrite() {
    const input = el("textarea", { rows: 4, maxlength: 16000, "aria-label": "The answer as you want it" });
    input.value = this.text;
    this.open("Say it like this", input, () => ({ kind: "ideal", text: input.value }), "Teach it", null);
    input.setSelectionRange(input.value.length, input.value.length);
  }

  open(title, input, read, label, extra) {
    const close = () => { this.box.replaceChildren(); };
    const send = () => { if (read().text.trim()) this.teach(read()); else input.focus(); };
    const form = el("form", { class: "teach", onsubmit: (event) => { event.preventDefault(); send(); } },
      el("div", { class: "title" }, el("p", {}, title),
        el("button", { type: "button", class: "plain", "aria-label": "Close", onclick: close }, icon("close"))),
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

  /** Have heed learn from this answer, then show what was learned and the answer given again. */
  async teach(body) {
    const clock = learningClock(body);
    this.box.replaceChildren(clock.node);
    this.node.classList.add("busy");
    this.page.show(clock.node);
    try {
      const given = await api.feedback({ completion_id: this.id, wait: true, retry: true, ...body });
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

  /** Show what became of feedback on this answer; `isNew` says that it happened just now. */
  learned(given, isNew = false) {
    const line = lessonLine(given);
    const lesson = el("section", { class: `lesson ${given.status}${given.state === "undone" ? " undone" : ""}`, "aria-label": "What heed learned" },
      el("p", { class: "said-why" }, given.kind === "ideal" ? "You rewrote it" : `You said: ${given.text}`));
    const chip = el("p", { class: "outcome" }, icon(ICONS[given.status]), el("span", { class: "line" }, line));
    if (given.status === "learned" && given.state !== "undone") chip.append(this.undoButton(lesson, given));
    lesson.append(chip);
    if (given.note && given.kind !== "ideal" && given.note !== given.text) lesson.append(el("p", { class: "keeps" }, `Keeps in mind: ${given.note}`));
    if (given.update?.heat?.length) this.showHeat(given.update.heat, lesson);
    this.turn.append(lesson);
    if (isNew) speak(line);
  }

  /** Show what a teacher wrote in its place. */
  improved(better) {
    const body = el("div", { class: "text" });
    showText(body, better.text);
    const outcome = better.state === "taken in" ? "learned from" : "waits to be learned from";
    this.turn.append(el("section", { class: "better", "aria-label": "A better answer" },
      el("p", { class: "said-why" }, `A better answer, written by ${better.source}; ${outcome}`), body));
  }

  showHeat(heat, lesson) {
    this.node.querySelector(".heat")?.remove();
    const map = heatMap(heat);
    const toggle = el("button", { type: "button", class: "link", "aria-expanded": "true" }, "what changed");
    toggle.addEventListener("click", () => {
      map.hidden = !map.hidden;
      this.body.hidden = !map.hidden;
      toggle.setAttribute("aria-expanded", String(!map.hidden));
    });
    this.body.hidden = true;
    this.body.after(map);
    lesson.querySelector(".outcome").append(toggle);
  }

  undoButton(lesson, given) {
    const button = el("button", { type: "button", class: "link undo", "data-version": given.adapter_version }, "undo");
    button.addEventListener("click", async () => {
      button.disabled = true;
      try {
        const undone = await api.undo();
        lesson.classList.add("undone");
        button.remove();
        lesson.querySelector(".line").textContent = `taken back: ${versionName(undone.adapter_version)} answers again`;
        speak("Taken back.");
        await this.page.changed();
      } catch (error) {
        button.disabled = false;
        this.page.report(error);
      }
    });
    return button;
  }
}

function lessonLine(given) {
  if (given.state === "undone") return "taken back";
  if (given.status === "learned") return `learned: v${given.adapter_version} in ${seconds(given.update?.duration_ms ?? 0)}`;
  if (given.status === "rejected") return `Not learned. ${given.reason || "The new version did worse and was dropped."}`;
  if (given.status === "queued") return given.reason || "noted; it will be learned as soon as possible";
  return given.ask || given.reason || "noted";
}

function learningClock(body) {
  const time = el("span", { class: "time" }, "0.0 s");
  const words = body.kind === "ideal" ? "learning your version" : `learning: ${body.text}`;
  const node = el("p", { class: "learning", role: "status" }, el("span", { class: "pulse", "aria-hidden": "true" }), el("span", { class: "what" }, words), time);
  const started = performance.now();
  const timer = setInterval(() => { time.textContent = seconds(performance.now() - started); }, 100);
  document.body.classList.add("is-learning");
  return { node, end: () => { clearInterval(timer); document.body.classList.remove("is-learning"); } };
}
