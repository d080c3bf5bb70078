// Every call to heed. Owns the person's name and API key, and turns failures into one kind of error.

import { ERRORS } from "/static/texts.js";

const session = { user: localStorage.getItem("heed-user") || "local", key: sessionStorage.getItem("heed-key") || "" };
export const CHAT = "web";

/** A failed call, with a message for the person. `status` 0: heed did not answer at all. */
export class HeedError extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

/** Return the name of the person. */
export const user = () => session.user;

/** Change the person from now on. */
export function setUser(name) {
  session.user = name || "local";
  localStorage.setItem("heed-user", session.user);
}

/** Use an API key in this tab from now on. */
export function setKey(key) {
  session.key = key;
  sessionStorage.setItem("heed-key", key);
}

export const ready = () => call("GET", "/readyz", undefined, [503]);
export const summary = () => call("GET", person());
export const history = () => call("GET", person(`/history?chat=${CHAT}&limit=100`));
export const notes = () => call("GET", person("/notes"));
export const versions = () => call("GET", person("/adapters"));
export const deleteNote = (id) => call("DELETE", person(`/notes/${encodeURIComponent(id)}`));
export const rollBack = (version) => call("POST", person("/rollback"), { version });
export const undo = () => call("POST", person("/undo"), {});
export const command = (text, completionId) => call("POST", person("/commands"), { text, chat: CHAT, completion_id: completionId });
export const feedback = (body, key) =>
  call("POST", "/v1/feedback", { user: session.user, ...body }, [], key ? { "Idempotency-Key": key } : {});
export const feedbackState = (id) => call("GET", about(id));
export const chooseScope = (id, body) => call("POST", about(id, "/scope"), body);
export const cancelLesson = (id) => call("POST", about(id, "/cancel"));
export const forget = () => call("DELETE", person());

/** Send a message in the stored conversation. Calls `onText` with each piece, returns {id, version}. */
export const ask = (text, onText, signal) =>
  stream({ messages: [{ role: "user", content: text }], heed: { chat: CHAT } }, onText, signal);

/** Answer a completion's question again. */
export const regenerate = (completionId, onText, signal) =>
  stream({ heed: { regenerate: completionId } }, onText, signal);

async function stream(body, onText, signal) {
  const whole = { model: "heed", user: session.user, stream: true, ...body };
  const response = await send("POST", "/v1/chat/completions", whole, signal);
  await check(response, []);
  const answer = { id: "", version: 0, isWhole: false };
  for await (const event of events(response.body)) {
    if (event === "[DONE]") continue;
    const chunk = JSON.parse(event);
    if (chunk.error) throw new HeedError(chunk.error.message, 500);
    answer.id = chunk.id;
    if (chunk.heed) Object.assign(answer, { version: chunk.heed.adapter_version, isWhole: true });
    const text = chunk.choices[0]?.delta.content;
    if (text) onText(text);
  }
  if (!answer.isWhole) throw new HeedError(ERRORS.brokenOff, 0);
  return answer;
}

async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let buffer = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const parts = (buffer + value).split("\n\n");
    buffer = parts.pop();
    for (const part of parts) yield part.replace(/^data: /, "");
  }
}

async function call(method, path, body, alsoFine = [], headers = {}) {
  const response = await send(method, path, body, undefined, headers);
  return check(response, alsoFine, true);
}

async function send(method, path, body, signal, more = {}) {
  const headers = session.key ? { ...more, Authorization: `Bearer ${session.key}` } : { ...more };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  try {
    return await fetch(path, { method, headers, signal, body: body === undefined ? undefined : JSON.stringify(body) });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new HeedError(ERRORS.unreachable, 0);
  }
}

async function check(response, alsoFine, wantsBody = false) {
  const isFine = response.ok || alsoFine.includes(response.status);
  if (isFine && !wantsBody) return null;
  const body = await response.json().catch(() => ({}));
  if (isFine) return body;
  const message = body.error?.message || ERRORS.status(response.status);
  throw new HeedError(message, response.status);
}

const about = (id, path = "") => `/v1/feedback/${encodeURIComponent(id)}${path}?user=${encodeURIComponent(session.user)}`;
const person = (path = "") => `/v1/users/${encodeURIComponent(session.user)}${path}`;
