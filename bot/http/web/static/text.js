// Shows Markdown: heed's server turns it into safe HTML (`POST /v1/markdown`), here it becomes elements.

import * as api from "/static/api.js";
import { el, icon, speak } from "/static/dom.js";
import { CODE } from "/static/texts.js";

const MAX_TEXTS = 100; // in one call
let waiting = []; // texts for the next call, each with its promise's functions

/** Show a whole text in `node`; drawing goes through `drawn(work)`. */
export function showText(node, text, drawn) {
  new GrowingText(node, drawn).set(text);
}

/** A text that grows while it is shown: only its last block is formatted and drawn again. */
export class GrowingText {
  constructor(node, drawn = (work) => work()) {
    this.node = node;
    this.drawn = drawn;
    this.text = "";
    this.done = Promise.resolve(); // once all that was set is shown
    this.isDrawing = false;
    this.shownText = "";
    this.keptLines = 0; // lines of the text before its last block
    this.keptNodes = 0; // and the nodes that show them
  }

  /** Show `text` from now on. */
  set(text) {
    this.text = text;
    if (!this.isDrawing) this.done = this.draw();
  }

  /** Show the text once more from its beginning: what its end says may change how its beginning looks. */
  async finish() {
    await this.done;
    this.keptLines = this.keptNodes = 0;
    this.shownText = null;
    this.set(this.text);
    await this.done;
  }

  async draw() {
    this.isDrawing = true;
    while (this.shownText !== this.text) {
      const text = this.text;
      const tail = text.split("\n").slice(this.keptLines).join("\n");
      const blocks = await formatted(tail).catch(() => [{ line: 0, html: null, text: tail }]);
      this.drawn(() => this.replace(blocks));
      this.shownText = text;
    }
    this.isDrawing = false;
  }

  replace(blocks) {
    while (this.node.childNodes.length > this.keptNodes) this.node.lastChild.remove();
    const parts = blocks.map((block) => (block.html === null ? [plain(block.text)] : elements(block.html)));
    this.node.append(...parts.flat());
    this.keptNodes += parts.slice(0, -1).flat().length;
    this.keptLines += blocks.at(-1)?.line ?? 0;
  }
}

/** Return a text's blocks; the texts of one moment go in one call. */
function formatted(text) {
  if (!text.trim()) return Promise.resolve([]);
  return new Promise((resolve, reject) => {
    if (waiting.push({ text, resolve, reject }) === 1) queueMicrotask(send);
  });
}

async function send() {
  const sent = waiting.splice(0, MAX_TEXTS);
  if (waiting.length) queueMicrotask(send);
  try {
    const { data } = await api.markdown(sent.map((entry) => entry.text));
    sent.forEach((entry, index) => entry.resolve(data[index]));
  } catch (error) {
    sent.forEach((entry) => entry.reject(error));
  }
}

const plain = (text) => el("p", { class: "plain-text" }, text);

/** Return safe HTML as elements. A document made by DOMParser loads nothing and runs nothing. */
function elements(html) {
  const made = new DOMParser().parseFromString(html, "text/html").body;
  const nodes = [...made.children].map((node) => document.importNode(node, true));
  return nodes.map((node) => (node.localName === "pre" ? withCopy(node) : withCopies(node)));
}

function withCopies(node) {
  for (const pre of node.querySelectorAll("pre")) pre.replaceWith(withCopy(pre.cloneNode(true)));
  return node;
}

/** Return a code block with its language and a button that copies it. */
function withCopy(pre) {
  const language = (pre.querySelector("code")?.className ?? "").replace("language-", "");
  const button = el("button", { type: "button", class: "copy", "aria-label": CODE.copy, title: CODE.copy }, icon("copy"));
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(pre.textContent);
      button.replaceChildren(icon("check"));
      speak(CODE.copied);
    } catch {
      speak(CODE.noCopy);
    }
  });
  pre.tabIndex = 0; // a wide one is scrolled by keyboard
  pre.setAttribute("aria-label", CODE.label(language));
  return el("div", { class: "code" }, el("span", { class: "language" }, language), button, pre);
}
