// Formats model output: paragraphs, lists, bold, code. Everything becomes text nodes; links and images stay text.

import { el } from "/static/dom.js";

const INLINE = /(\*\*[^*\n]+\*\*|`[^`\n]+`)/;
const BULLET = /^\s*[-*•]\s+/;
const NUMBER = /^\s*\d+[.)]\s+/;

/** Replace the content of `node` by the formatted `text`. */
export function showText(node, text) {
  node.replaceChildren(...blocks(text));
}

function blocks(text) {
  const parts = text.split("```");
  return parts.flatMap((part, index) => (index % 2 ? [codeBlock(part)] : paragraphs(part)));
}

function codeBlock(part) {
  return el("pre", {}, el("code", {}, part.replace(/^[\w+-]*\n/, "").replace(/\n$/, "")));
}

function paragraphs(text) {
  const found = [];
  for (const block of text.split(/\n{2,}/)) {
    if (block.trim()) found.push(...grouped(block.split("\n")));
  }
  return found;
}

function grouped(lines) {
  const found = [];
  for (const line of lines) {
    const kind = BULLET.test(line) ? "ul" : NUMBER.test(line) ? "ol" : "p";
    const last = found.at(-1);
    const isSame = last && last.localName === kind;
    if (kind === "p") {
      if (isSame) last.append(el("br"), ...inline(line));
      else found.push(el("p", {}, ...inline(line)));
    } else {
      const item = el("li", {}, ...inline(line.replace(kind === "ul" ? BULLET : NUMBER, "")));
      if (isSame) last.append(item);
      else found.push(el(kind, {}, item));
    }
  }
  return found;
}

function inline(line) {
  return line.split(INLINE).filter(Boolean).map((part) => {
    if (part.length > 4 && part.startsWith("**")) return el("strong", {}, part.slice(2, -2));
    if (part.length > 2 && part.startsWith("`")) return el("code", {}, part.slice(1, -1));
    return document.createTextNode(part);
  });
}
