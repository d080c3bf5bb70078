// The side panel: what heed keeps in mind, the versions of the person's adapter, and the few settings.

import * as api from "/static/api.js";
import { byId, el, icon, seconds, versionName } from "/static/dom.js";

const STATES = { in_prompt: "in the prompt", learning: "learning", in_weights: "in the weights" };

/** Draw the panel anew; `act(work)` runs a change and refreshes what depends on it. Says if a note is being learned. */
export async function drawPanel(act) {
  const [notes, versions, summary] = await Promise.all([api.notes(), api.versions(), api.summary()]);
  drawNotes(notes, act);
  drawVersions(versions, act);
  byId("learning").checked = summary.is_learning;
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
    el("span", { class: `badge ${note.state}` }, STATES[note.state] || note.state),
    el("span", { class: "tokens" }, note.state === "in_weights" ? `${note.num_tokens} tokens saved` : `${note.num_tokens} tokens`),
    el("button", { type: "button", class: "plain small-icon", "aria-label": `Delete the note: ${note.text}`, onclick: () => act(() => api.deleteNote(note.id)) }, icon("trash"))));
  byId("notes").replaceChildren(...rows);
  byId("saved").textContent = notes.data.length
    ? `${notes.tokens_saved} prompt tokens saved per answer, ${notes.tokens_in_prompt} still in the prompt`
    : "Nothing yet. Corrections and notes show up here.";
}

function drawVersions(versions, act) {
  const rows = [...versions.data.filter((version) => version.state === "accepted"), { version: 0, taught_by: null }].map((version) => {
    const isActive = version.version === versions.active_version;
    const taught = version.taught_by ? `“${version.taught_by.text}”` : version.version ? "" : "as it came";
    const figures = version.update ? `${seconds(version.update.duration_ms)}, ${version.update.steps} steps` : "";
    return el("li", { class: isActive ? "active" : null, "aria-current": isActive ? "true" : null },
      el("b", {}, versionName(version.version)), el("span", { class: "taught", title: taught || null }, taught), el("span", { class: "figures" }, figures),
      isActive ? el("span", { class: "badge in_weights" }, "answers now")
        : el("button", { type: "button", class: "link", "aria-label": `Let ${versionName(version.version)} answer`, onclick: () => act(() => api.rollBack(version.version)) }, "use this"));
  });
  byId("versions").replaceChildren(...rows);
}

/** Open or close the panel; `opener` gets the focus back. */
export function showPanel(isOpen, opener) {
  document.body.classList.toggle("panel-shown", isOpen);
  byId("curtain").hidden = !isOpen;
  byId("panel-open").setAttribute("aria-expanded", String(isOpen));
  if (isOpen) byId("panel-close").focus();
  else opener?.focus();
}
