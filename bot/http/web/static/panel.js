// The side panel: the notes, the versions of the person's adapter, and the settings.

import * as api from "/static/api.js";
import { byId, el, icon, versionName } from "/static/dom.js";
import { OUTSIDE, PANEL } from "/static/texts.js";

/** Draw the panel; its buttons run changes through `act(work)`. Returns the summary, and if a note is being learned. */
export async function drawPanel(act) {
  const [notes, versions, summary] = await Promise.all([api.notes(), api.versions(), api.summary()]);
  drawNotes(notes, act);
  drawVersions(versions, act);
  byId("learning").checked = summary.is_learning;
  byId("outside").textContent = summary.outside.length ? OUTSIDE.something(summary.outside) : OUTSIDE.nothing;
  if (summary.has_key && document.activeElement !== byId("who")) byId("who").value = summary.account;
  byId("count").textContent = String(notes.data.length);
  byId("count").hidden = notes.data.length === 0;
  for (const button of document.querySelectorAll(".undo")) {
    button.hidden = Number(button.dataset.version) !== versions.active_version;
  }
  return { summary, isLearning: notes.data.some((note) => note.state === "learning") };
}

function drawNotes(notes, act) {
  const rows = notes.data.map((note) => el("li", { class: "note" },
    el("span", { class: "note-text", title: note.text }, note.text),
    el("span", { class: `badge ${note.state}` }, noteState(note)),
    el("span", { class: "tokens" }, note.state === "in_weights" && !note.in_prompt ? PANEL.tokensSaved(note.num_tokens) : PANEL.tokens(note.num_tokens)),
    el("button", { type: "button", class: "plain small-icon", "aria-label": PANEL.deleteNote(note.text), onclick: () => act(() => api.deleteNote(note.id)) }, icon("trash"))));
  byId("notes").replaceChildren(...rows);
  byId("saved").textContent = notes.data.length
    ? notesLine(notes)
    : PANEL.nothing;
}

function noteState(note) {
  if (note.state === "in_weights" && note.in_prompt) return PANEL.both;
  return PANEL.states[note.state] || note.state;
}

function notesLine(notes) {
  const inPrompt = notes.data.filter((note) => note.in_prompt).length;
  const line = PANEL.inPrompt(inPrompt, notes.data.length, notes.tokens_in_prompt);
  return notes.tokens_saved ? `${line} ${PANEL.saved(notes.tokens_saved)}` : line;
}

function drawVersions(versions, act) {
  const rows = [...versions.data.filter((version) => version.state === "accepted"), { version: 0, taught_by: null }].map((version) => {
    const isActive = version.version === versions.active_version;
    const taught = version.taught_by ? `“${version.taught_by.text}”` : version.version ? "" : PANEL.untrained;
    const figures = version.update ? PANEL.figures(version.update.duration_ms, version.update.steps) : "";
    return el("li", { class: isActive ? "active" : null, "aria-current": isActive ? "true" : null },
      el("b", {}, versionName(version.version)), el("span", { class: "taught", title: taught || null }, taught), el("span", { class: "figures" }, figures),
      isActive ? el("span", { class: "badge in_weights" }, PANEL.active)
        : el("button", { type: "button", class: "link", "aria-label": PANEL.useVersion(version.version), onclick: () => act(() => api.rollBack(version.version)) }, PANEL.use));
  });
  byId("versions").replaceChildren(...rows);
}
