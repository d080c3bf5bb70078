// The heat map: which tokens of the corrected answer the correction pushes up (green) and down (orange).

import { el } from "/static/dom.js";
import { HEAT } from "/static/texts.js";

const STRONGEST = 3; // nats: a weight of this size has the full colour
const STRONG = 1; // nats: from here on a token that is pushed down is struck through
const FAINTEST = 0.15; // nats: below this a token keeps the colour of the page
const SPECIAL = /^<\|.*\|>$|^<\/?\w+>$/; // the mark that ends an answer

/** Show the tokens of an answer, coloured by log p(teacher) - log p(student). */
export function heatMap(heat) {
  const tokens = heat.map(([text, weight]) => token(text, weight));
  return el("div", { class: "heat" },
    el("p", { class: "heat-text", role: "img", "aria-label": summary(heat) }, ...tokens),
    el("p", { class: "legend", "aria-hidden": "true" }, el("i", { class: "down" }), HEAT.less, el("i", { class: "up" }), HEAT.more));
}

function token(text, weight) {
  const kind = Math.abs(weight) < FAINTEST ? null : weight > 0 ? "up" : weight > -STRONG ? "down" : "down strong";
  const classes = [kind, SPECIAL.test(text) ? "special" : null].filter(Boolean).join(" ");
  const shown = SPECIAL.test(text) ? HEAT.end : text;
  const node = el("span", { class: classes || null, title: HEAT.weight(weight) }, shown);
  if (kind) node.style.setProperty("--strength", Math.min(1, 0.2 + Math.abs(weight) / STRONGEST).toFixed(2));
  return node;
}

function summary(heat) {
  const words = (isUp) => heat.filter(([, weight]) => (isUp ? weight >= FAINTEST : weight <= -FAINTEST))
    .map(([text]) => text.trim()).filter(Boolean).slice(0, 12).join(" ");
  return HEAT.summary(words(false), words(true));
}
