// heed's state as the page shows it: loading, ready, or answering while a part beside the model is down.

import * as api from "/static/api.js";
import { byId } from "/static/dom.js";
import { STATE } from "/static/texts.js";

const STARTING_EVERY_MS = 1500;
const RUNNING_EVERY_MS = 15_000;
const ANSWERING = ["ready", "degraded"];
let nextLook = 0; // the timer of the next look at a heed that answers

/** Return once heed can answer, and show its state until then and from then on. */
export async function untilReady() {
  clearTimeout(nextLook);
  while (!show(await look())) await new Promise((resolve) => { setTimeout(resolve, STARTING_EVERY_MS); });
  lookAgain();
}

function lookAgain() {
  clearTimeout(nextLook);
  nextLook = setTimeout(async () => { show(await look()); lookAgain(); }, RUNNING_EVERY_MS);
}

const look = () => api.ready().catch(() => null);

/** Show what /readyz says, null if nothing came. Returns true if heed can answer. */
function show(state) {
  const canAnswer = ANSWERING.includes(state?.status);
  const troubles = Object.entries(state?.parts ?? {}).filter(([, part]) => part !== "ok");
  byId("state").textContent = canAnswer ? state.model : state ? STATE.loading : STATE.waiting;
  byId("state").title = canAnswer ? STATE.another : "";
  byId("mark").classList.toggle("ready", canAnswer);
  byId("parts").hidden = !troubles.length;
  const words = !troubles.length ? "" : canAnswer ? STATE.degraded(troubles) : STATE.parts(troubles);
  if (byId("parts").textContent !== words) byId("parts").textContent = words;
  return canAnswer;
}
