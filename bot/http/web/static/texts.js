// Every text that the page's scripts show: labels without a full stop, messages as sentences.

import { seconds, versionName } from "/static/dom.js";

/** "1 token", "2 tokens". */
export const counted = (number, noun) => `${number} ${noun}${number === 1 ? "" : "s"}`;

export const STARTERS = ["What can you talk about?", "Tell me about the koala.", "What is ramen?"];

// The state of heed, beside its name, and its parts that do not work.
const partInWords = ([name, state]) => `${name}: ${state.replace(/: (.*?)\.?$/, " ($1)")}.`;
export const STATE = {
  loading: "Loading the model",
  waiting: "Waiting for heed",
  another: "HEED_MODEL chooses another model: `heed models` lists them.",
  parts: (troubles) => troubles.map(partInWords).join(" "),
  degraded: (troubles) => `heed answers, but a part of it does not work. ${troubles.map(partInWords).join(" ")}`,
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
  waiting: (number) => `Waiting, ${number} before you`,
  stopped: "Stopped here",
  repeated: "Ended by heed: it only repeated itself",
  neverBegun: "Stopped before heed began to answer.",
  brokenOff: "Interrupted. heed does not store this answer.",
  question: "What should be different?",
  correctionHint: "too long, call me Ana …",
  learnIt: "Learn it",
  rewriteTitle: "Say it like this",
  rewriteLabel: "The answer as you want it",
  teachIt: "Teach it",
};

// The list of conversations.
export const CHATS = {
  none: "No conversation yet.",
  noneFound: "No conversation has these words.",
  rename: (title) => `Rename: ${title}`,
  remove: (title) => `Delete: ${title}`,
  newTitle: "The title of this conversation",
};

// An agent's work: its list, its cards, and the person's yes and no.
export const WORK = {
  own: "My scratch folder",
  title: (workspace, at) => `${workspace || "Scratch"}, ${new Date(at * 1000).toLocaleString([], { month: "short", day: "numeric", hour: "numeric", minute: "2-digit" })}`,
  remove: (title) => `Delete: ${title}`,
  begin: (workspace) => `Say what is to be done in ${workspace || "your scratch folder"}. Nothing runs before you have said yes.`,
  git: ({ branch, changed, conflicts }) => [branch, changed ? `${changed} changed file${changed === 1 ? "" : "s"}` : "nothing changed", conflicts.length ? `${conflicts.length} conflict${conflicts.length === 1 ? "" : "s"}` : ""].filter(Boolean).join(", "),
  agent: "The agent",
  working: "Working",
  stop: "Stop",
  asks: (tool) => `May I use ${tool}?`,
  edited: "with your changes",
  yes: "Yes",
  always: (tool) => `Yes, and ${tool} from now on`,
  no: "No",
  onlyNo: "Only no",
  edit: "Change it",
  arguments: "The call's arguments, as JSON",
  notJson: "That is no JSON: check its quotes and commas.",
  useThese: "Use these",
  whatWasWrong: "What was wrong?",
  learnIt: "Learn it",
  reasons: ["That is the wrong file.", "Read the file before you change it.", "Use edit_lines to change a part of a file."],
  failed: "The call failed.",
  letItSee: "Let the agent see that",
  teach: "Teach it",
  cannotWork: "That call of the tool cannot work.",
  called: (tool) => `A call of ${tool}`,
  output: "Output",
  notDone: "Not done",
  diff: "What it shows",
  lesson: "A lesson",
  whatChanged: "What changed",
  told: (notes) => `Lessons know: ${notes.join(" · ")}`,
  tellWhat: "Say what lessons are to know: /tell this project uses Poetry",
};

// A block of code in an answer.
export const CODE = {
  label: (language) => (language ? `Code, ${language}` : "Code"),
  copy: "Copy the code",
  copied: "Copied.",
  noCopy: "The browser does not let this page copy.",
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
  replaced: (notes) => `. It takes the place of ${notes.map((note) => `“${note.replace(/\.$/, "")}”`).join(" and ")}`,
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
  states: {
    in_prompt: "in the prompt", when_asked: "in the prompt when asked about", learning: "learning",
    in_weights: "in the weights", waiting: "no room in the prompt now",
  },
  both: "in the weights and in the prompt",
  tokens: (number) => counted(number, "token"),
  tokensSaved: (number) => `${counted(number, "token")} saved`,
  deleteNote: (text) => `Delete the note: ${text}`,
  inPrompt: (number, total, tokens) => `${number} of ${counted(total, "note")} in the prompt now, ${counted(tokens, "token")}.`,
  saved: (tokens) => `${counted(tokens, "prompt token")} saved per answer.`,
  nothing: "Nothing yet. Corrections and notes appear here.",
  untrained: "untrained",
  figures: (durationMs, steps) => `${seconds(durationMs)}, ${counted(steps, "step")}`,
  active: "active",
  use: "Use this",
  useVersion: (version) => `Use ${versionName(version)}`,
};

// What leaves the machine, below the settings.
export const OUTSIDE = {
  nothing: "Everything stays on the machine that heed runs on.",
  something: (sentences) => `${sentences.join(" ")} Everything else stays on the machine that heed runs on.`,
};

// The key dialog.
export const KEY = { needed: "Several people share this heed. Paste your key; it stays in this tab.", wrong: "heed does not know this key. Check it, and paste it again." };

// The message box.
export const COMPOSER = { send: "Send", stop: "Stop" };

// Calls that failed without a message of heed's own.
export const ERRORS = {
  unreachable: "heed does not answer. Is it still running?",
  brokenOff: "The answer was interrupted. Is heed still running?",
  status: (status) => `heed answered with status ${status}.`,
  unknown: "Something went wrong.",
};
