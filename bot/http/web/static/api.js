// Every call to heed. Owns the person's name and API key, and turns failures into one kind of error.

import { ERRORS } from "/static/texts.js";

// Who one is belongs to the tab; a new tab begins as the person named last.
const session = {
  user: sessionStorage.getItem("heed-user") || localStorage.getItem("heed-user") || "local",
  key: sessionStorage.getItem("heed-key") || "",
  account: "", // whom heed takes the caller for
};
sessionStorage.setItem("heed-user", session.user);
const FIRST_CHAT = "web";

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
  sessionStorage.setItem("heed-user", session.user);
  localStorage.setItem("heed-user", session.user);
}

/** Return the account that heed takes the caller for: with an API key, its holder's. */
export const account = () => session.account || session.user;

/** Return the name of the conversation that this tab shows. */
export const chat = () => decodeURIComponent(location.hash.slice(1)) || FIRST_CHAT;

/** Show another conversation from now on; an empty name is the first one of all. */
export function setChat(name) {
  history.replaceState(null, "", name ? `#${encodeURIComponent(name)}` : location.pathname);
}

/** True if this tab shows the work of an agent. */
export const isWork = () => chat().startsWith("agent-");

/** Return a name for a new conversation. */
export const newChat = () => `${FIRST_CHAT}-${randomName()}`;

/** Return a name that no one has used: 32 hex digits. */
export const randomName = () => [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");

/** True if a key was given in this tab. */
export const hasKey = () => session.key !== "";

/** Use an API key in this tab from now on. */
export function setKey(key) {
  session.key = key;
  sessionStorage.setItem("heed-key", key);
}

export const markdown = (texts) => call("POST", "/v1/markdown", { texts });
export const ready = () => call("GET", "/readyz", undefined, [503]);
export const turns = () => call("GET", person(`/history?chat=${encodeURIComponent(chat())}&limit=100`));
export const chats = (words) => call("GET", person(`/chats?search=${encodeURIComponent(words)}`));
export const renameChat = (name, title) => call("PATCH", person(`/chats/${encodeURIComponent(name)}`), { title });
export const deleteChat = (name) => call("DELETE", person(`/chats/${encodeURIComponent(name)}`));
export const stop = (id) => call("POST", `/v1/chat/completions/${encodeURIComponent(id)}/stop?user=${encodeURIComponent(session.user)}`);
/** Return the person's summary, and remember the account. */
export async function summary() {
  const found = await call("GET", person());
  session.account = found.account;
  return found;
}

export const notes = () => call("GET", person("/notes"));
export const versions = () => call("GET", person("/adapters"));
export const deleteNote = (id) => call("DELETE", person(`/notes/${encodeURIComponent(id)}`));
export const rollBack = (version) => call("POST", person("/rollback"), { version });
export const prepare = () => call("POST", person("/prepare"), {});
export const undo = () => call("POST", person("/undo"), {});
export const command = (text, completionId) => call("POST", person("/commands"), { text, chat: chat(), completion_id: completionId });
export const feedback = (body, key) =>
  call("POST", "/v1/feedback", { user: session.user, ...body }, [], key ? { "Idempotency-Key": key } : {});
export const feedbackState = (id) => call("GET", about(id));
export const chooseScope = (id, body) => call("POST", about(id, "/scope"), body);
export const cancelLesson = (id) => call("POST", about(id, "/cancel"));
export const forget = () => call("DELETE", person());
export const workspaces = () => call("GET", `/api/workspaces?${asPerson()}`);
export const works = () => call("GET", `/api/sessions?${asPerson()}`);
export const beginWork = (workspace) => call("POST", "/api/sessions", { workspace, user: session.user });
export const work = (id) => call("GET", ofWork(id));
export const deleteWork = (id) => call("DELETE", ofWork(id));
export const workspaceNotes = (workspace, text) => call("POST", "/api/workspaces/notes", { workspace, text, user: session.user });
export const decide = (id, what, body) => call("POST", ofWork(id, `/${what}`), body);

/** Yield what happens in an agent's work. */
export async function* workEvents(id, signal) {
  const response = await send("GET", ofWork(id, "/events"), undefined, signal);
  await check(response, []);
  for await (const event of events(response.body)) yield JSON.parse(event);
}

/** Send a message in the stored conversation. Calls `onText(piece, id)` with each piece, and `onWait(n)` while n others
 *  are before it; returns {id, version, isStopped, isRepeating}. */
export const ask = (text, onText, signal, onWait) =>
  stream({ messages: [{ role: "user", content: text }], heed: { chat: chat() } }, onText, signal, onWait);

/** Answer a completion's question again. */
export const regenerate = (completionId, onText, signal, onWait) =>
  stream({ heed: { regenerate: completionId } }, onText, signal, onWait);

async function stream(body, onText, signal, onWait) {
  const whole = { model: "heed", user: session.user, stream: true, ...body };
  const response = await send("POST", "/v1/chat/completions", whole, signal);
  await check(response, []);
  const answer = { id: "", version: 0, isWhole: false };
  for await (const event of events(response.body)) {
    const wait = /^: waiting, (\d+) before you$/.exec(event);
    if (wait) onWait(Number(wait[1]));
    if (wait || event === "[DONE]") continue;
    const chunk = JSON.parse(event);
    if (chunk.error) throw new HeedError(chunk.error.message, 500);
    answer.id = chunk.id;
    if (chunk.heed) Object.assign(answer, { version: chunk.heed.adapter_version, ...endOf(chunk.heed.finish_reason), isWhole: true });
    const text = chunk.choices[0]?.delta.content;
    if (text) onText(text, answer.id);
  }
  if (!answer.isWhole) throw new HeedError(ERRORS.brokenOff, 0);
  return answer;
}

/** Return how an answer ended if it is not by itself. */
export function endOf(reason) {
  return { isStopped: reason === "stopped", isRepeating: reason === "repetition" };
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
const asPerson = () => `user=${encodeURIComponent(session.user)}`;
const ofWork = (id, path = "") => `/api/sessions/${encodeURIComponent(id)}${path}?${asPerson()}`;
const person = (path = "") => `/v1/users/${encodeURIComponent(session.user)}${path}`;
