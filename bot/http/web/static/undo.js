// The button that takes a lesson back: it is shown while that lesson is the newest.

import * as api from "/static/api.js";
import { el, speak } from "/static/dom.js";
import { LESSON } from "/static/texts.js";

/** Make the button of a lesson's section, whose line says afterwards who answers now; `undone` is told that line. */
export function undoButton(page, lesson, version, undone = () => {}) {
  const button = el("button", { type: "button", class: "link undo", "data-version": version }, LESSON.undo);
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      const line = LESSON.undoneTo((await api.undo()).adapter_version);
      undone(line);
      lesson.classList.add("undone");
      button.remove();
      lesson.querySelector(".line").textContent = line;
      speak(line);
      await page.changed();
    } catch (error) {
      button.disabled = false;
      page.report(error);
    }
  });
  return button;
}
