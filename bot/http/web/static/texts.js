// Every text that the page's scripts show: labels without a full stop, messages as sentences.

import { seconds, versionName } from "/static/dom.js";

/** "1 token", "2 tokens". */
export const counted = (number, noun) => `${number} ${noun}${number === 1 ? "" : "s"}`;

export const STARTERS = ["What can you talk about?", "Tell me about the koala.", "What is ramen?"];

// The state of heed, beside its name.
export const STATE = { loading: "Loading the model", waiting: "Waiting for heed",
  another: "HEED_MODEL chooses another model: `heed models` lists them.",
};

// One answer: its buttons, its boxes, and what a screen reader hears.
export const ANSWER = {
  heed: "heed",
  tools: "About this answer",
  approve: "Good answer",
  reject: "Bad answer",
  correct: "Correct",
  rewrite: "Rewrite",
  again: "Answer again",
  copy: "Copy",
  close: "Close",
  versionTitle: "The version of your adapter that gave this answer",
  approved: "Noted as a good answer.",
  copied: "Copied.",
  noCopy: "The browser does not let this page copy.",
  stopped: "Stopped. heed does not store this answer.",
  brokenOff: "Interrupted. heed does not store this answer.",
  question: "What should be different?",
  correctionHint: "too long, call me Ana …",
  learnIt: "Learn it",
  rewriteTitle: "Say it like this",
  rewriteLabel: "The answer as you want it",
  teachIt: "Teach it",
};

// A lesson: while it is learned, and its result.
export const LESSON = {
  label: "What heed learned",
  learning: (correction) => `Learning: ${correction}`,
  learningRewrite: "Learning your version",
  youSaid: (text) => `You said: ${text}`,
  youRewrote: "You rewrote it",
  note: (text) => `Note: ${text}`,
  learned: (version, durationMs) => `Learned: ${versionName(version)} in ${seconds(durationMs)}`,
  uncalibrated: "(uncalibrated model)",
  notLearned: (reason) => `Not learned. ${reason}`,
  didWorse: "The new version did worse and was dropped.",
  queued: "heed will learn it as soon as possible.",
  noted: "Noted.",
  justThis: "Just this answer",
  fromNowOn: "From now on",
  howFar: "Only this answer, or from now on?",
  scopeKept: "Noted. That is how it was learned.",
  cancel: "Cancel",
  cancelled: "Cancelled. Nothing was learned from it.",
  share: "How far the lesson is",
  undone: "Undone",
  undoneTo: (version) => `Undone. ${versionName(version)} answers again.`,
  undo: "Undo",
  whatChanged: "What changed",
};

// A teacher's better answer.
export const BETTER = {
  label: "A better answer",
  learned: (source) => `A better answer, written by ${source}. heed has learned from it.`,
  waiting: (source) => `A better answer, written by ${source}. heed has not learned from it yet.`,
};

// The heat map of a lesson.
export const HEAT = {
  less: "less of this",
  more: "more of this",
  end: "end",
  weight: (nats) => `${nats > 0 ? "+" : ""}${nats.toFixed(2)} nats`,
  summary: (less, more) => `Less of: ${less || "nothing"}. More of: ${more || "nothing"}.`,
};

// The side panel.
export const PANEL = {
  states: { in_prompt: "in the prompt", learning: "learning", in_weights: "in the weights" },
  tokens: (number) => counted(number, "token"),
  tokensSaved: (number) => `${counted(number, "token")} saved`,
  deleteNote: (text) => `Delete the note: ${text}`,
  saved: (saved, inPrompt) => `${counted(saved, "prompt token")} saved per answer, ${inPrompt} still in the prompt`,
  nothing: "Nothing yet. Corrections and notes appear here.",
  untrained: "untrained",
  figures: (durationMs, steps) => `${seconds(durationMs)}, ${counted(steps, "step")}`,
  active: "active",
  use: "Use this",
  useVersion: (version) => `Use ${versionName(version)}`,
};

// The message box.
export const COMPOSER = { send: "Send", stop: "Stop" };

// Calls that failed without a message of heed's own.
export const ERRORS = {
  unreachable: "heed does not answer. Is it still running?",
  brokenOff: "The answer was interrupted. Is heed still running?",
  status: (status) => `heed answered with status ${status}.`,
  unknown: "Something went wrong.",
};
