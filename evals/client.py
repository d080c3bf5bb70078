"""Talks to the heed that is measured, as any other client of its HTTP calls would.

Invariant: at most `parallel` questions are in flight at once (vLLM decodes that many together); feedback is sent as
the caller paces it. Every failure becomes Unreachable or Refused.
"""

import asyncio
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from copy import copy
from dataclasses import dataclass
from typing import Any, Literal, Self
from urllib.parse import quote

import aiohttp

from evals.errors import CallRefused, HeedUnreachable, MeasurementFailed

Json = dict[str, Any]
Notes = Literal["auto", "off"]
Scope = Literal["", "answer", "always"]
Messages = Sequence[dict[str, Any]]
CONNECT_TIMEOUT_S = 5.0
READ_TIMEOUT_S = 300.0
NOT_FOUND = 404
MAX_TOKENS = 256  # an answer of the pocket world has at most a hundred; one that never ends need not fill the context


@dataclass(frozen=True)
class Answer:
    """One answer as it came."""

    completion_id: str
    text: str
    adapter_version: int
    notes: tuple[str, ...]
    completion_tokens: int
    tokens: tuple[tuple[str, float], ...] = ()  # each with its log-probability, where they were asked for


class Client:
    """Calls to the heed at `url`; use it as an async context manager."""

    def __init__(self, url: str, parallel: int = 16, max_tokens: int = MAX_TOKENS, scope: Scope = "") -> None:
        self.url = url.rstrip("/")
        self._scope = scope  # how far every correction reaches; empty: as heed reads it
        self._max_tokens = max_tokens  # of one answer
        self._slots = asyncio.Semaphore(parallel)
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_S, sock_read=READ_TIMEOUT_S)
        self._session = aiohttp.ClientSession(timeout=timeout)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def is_ready(self) -> bool:
        """Return True if heed answers and says that it is ready."""
        try:
            async with self._session.get(f"{self.url}/readyz") as response:
                return response.status == 200
        except (aiohttp.ClientError, TimeoutError):
            return False

    async def model(self) -> str:
        """Return the model heed runs."""
        return str((await self._call("GET", "/readyz"))["model"])

    def brief(self, max_tokens: int) -> "Client":
        """Return the same client for shorter answers: the same connections, the same number of questions at once."""
        other = copy(self)
        other._max_tokens = max_tokens
        return other

    async def chat(
        self, user: str, messages: Messages, *, notes: Notes = "auto", model: str = "heed", logprobs: bool = False
    ) -> Answer:
        """One greedy answer."""
        wanted = chat_body(user, messages, notes, model, self._max_tokens) | ({"logprobs": True} if logprobs else {})
        async with self._slots:
            body = await self._call("POST", "/v1/chat/completions", wanted)
        return answer_of(body)

    async def step(self, user: str, messages: Messages, tools: Sequence[Json], *, notes: Notes = "auto") -> Json:
        """Return the body of a greedy answer that may call a tool; a conversation that is too long is refused."""
        wanted = chat_body(user, messages, notes, "heed", self._max_tokens) | {"tools": list(tools)}
        wanted["heed"] |= {"truncation": "disabled"}
        async with self._slots:
            return await self._call("POST", "/v1/chat/completions", wanted)

    async def drawn(
        self, user: str, messages: Messages, seed: int, *, model: str = "heed", temperature: float = 1.0
    ) -> str:
        """One answer drawn with a fixed seed, with the notes off."""
        wanted = chat_body(user, messages, "off", model, self._max_tokens) | {
            "temperature": temperature, "top_p": 1.0, "top_k": 0, "min_p": 0.0, "seed": seed,
        }  # fmt: skip
        async with self._slots:
            return answer_of(await self._call("POST", "/v1/chat/completions", wanted)).text

    async def end_token(self, user: str, *, model: str) -> int:
        """Return the id of the token that ends an answer. Raises MeasurementFailed if the answer did not end."""
        asked = [{"role": "user", "content": "What is the capital of France?"}]
        wanted = chat_body(user, asked, "off", model, self._max_tokens) | {
            "logprobs": True, "return_tokens_as_token_ids": True,
        }  # fmt: skip
        async with self._slots:
            body = await self._call("POST", "/v1/chat/completions", wanted)
        if body["choices"][0]["finish_reason"] != "stop":
            raise MeasurementFailed("no answer of the model ends, so that its last token is not known")
        return int(_logprobs(body)[-1]["token"].removeprefix("token_id:"))

    async def endless(self, user: str, text: str, num_tokens: int, end: int, *, model: str) -> int:
        """Ask for an answer of so many tokens, the one that would `end` it forbidden. Return how many came."""
        asked = [{"role": "user", "content": text}]
        wanted = chat_body(user, asked, "off", model, num_tokens) | {"logit_bias": {str(end): -100}}
        async with self._slots:
            return answer_of(await self._call("POST", "/v1/chat/completions", wanted)).completion_tokens

    async def likeliest(self, user: str, messages: Messages, count: int, *, model: str = "heed") -> list[list[float]]:
        """Return the log-probabilities of the likeliest tokens at each place of a greedy answer, with the notes off."""
        wanted = chat_body(user, messages, "off", model, self._max_tokens) | {"logprobs": True, "top_logprobs": count}
        async with self._slots:
            body = await self._call("POST", "/v1/chat/completions", wanted)
        return [[top["logprob"] for top in entry["top_logprobs"]] for entry in _logprobs(body)]

    async def ask(self, user: str, texts: Sequence[str], *, notes: Notes = "auto", model: str = "heed") -> list[Answer]:
        """Greedy answers to questions of one message each, asked side by side."""
        calls = [self.chat(user, [{"role": "user", "content": t}], notes=notes, model=model) for t in texts]
        return list(await asyncio.gather(*calls))

    async def stream(self, user: str, text: str, *, model: str = "heed") -> AsyncGenerator[float, None]:
        """Asks with streaming; yields the time (`time.perf_counter`, s) at which each piece of text arrived."""
        body = chat_body(user, [{"role": "user", "content": text}], "auto", model) | {"stream": True}
        async with self._request("POST", "/v1/chat/completions", body) as response:
            async for line in response.content:
                if piece_of(line):
                    yield time.perf_counter()

    async def correct(
        self, user: str, completion_id: str, text: str, training: Json | None = None, context: Sequence[str] = ()
    ) -> Json:
        """Correct an answer, with what the teacher is told besides; returns when heed has learned it."""
        body: Json = {"user": user, "completion_id": completion_id, "kind": "correction", "text": text, "wait": True}
        if self._scope:
            body["scope"] = self._scope
        if context:
            body["context"] = list(context)
        return await self._call("POST", "/v1/feedback", body | ({"training": training} if training else {}))

    async def rewrite(self, user: str, completion_id: str, text: str, training: Json | None = None) -> Json:
        """Give the answer as it should have been; returns when heed has learned it."""
        body: Json = {"user": user, "completion_id": completion_id, "kind": "ideal", "text": text, "wait": True}
        return await self._call("POST", "/v1/feedback", body | ({"training": training} if training else {}))

    async def choose_always(self, user: str, feedback_id: str) -> Json:
        """Answer "from now on" to the question how far a correction reaches; returns when heed has learned it."""
        url = f"/v1/feedback/{feedback_id}/scope?user={quote(user, safe='')}"
        return await self._call("POST", url, {"scope": "always", "wait": True})

    async def feedback(self, user: str, url: str) -> Json:
        """Return what became of a piece of feedback, at the address that a queued one was given."""
        return await self._call("GET", f"{url}?user={quote(user, safe='')}")

    async def score(self, user: str, messages: Messages, text: str, *, model: str = "heed") -> list[float]:
        """Return the log-probabilities of a given answer's tokens, in nats, with the notes off."""
        body = {"model": model, "user": user, "messages": list(messages), "completion": text, "heed": {"notes": "off"}}
        async with self._slots:
            found: list[float] = (await self._call("POST", "/v1/score", body))["logprobs"]
        return found

    async def note(self, user: str, text: str) -> Json:
        """Return a standing note: kept in the prompt, nothing is trained."""
        return await self._call("POST", "/v1/feedback", {"user": user, "kind": "note", "text": text})

    async def consolidate(self, user: str) -> Json:
        """One consolidation, as at night; returns when it has ended, however long heed lets it wait."""
        while True:
            outcome = await self._call("POST", f"/v1/users/{quote(user, safe='')}/consolidate", {})
            if outcome["status"] != "queued":
                return outcome

    async def notes(self, user: str) -> list[Json]:
        """Return the person's live notes."""
        listed: list[Json] = (await self._call("GET", f"/v1/users/{quote(user, safe='')}/notes"))["data"]
        return listed

    async def note_tokens(self, user: str) -> tuple[int, int]:
        """Prompt tokens the person's learned notes save, and those the others cost."""
        body = await self._call("GET", f"/v1/users/{quote(user, safe='')}/notes")
        return body["tokens_saved"], body["tokens_in_prompt"]

    async def rollback(self, user: str, version: int) -> None:
        """Make an earlier version active."""
        await self._call("POST", f"/v1/users/{quote(user, safe='')}/rollback", {"version": version})

    async def exported(self, user: str, version: int) -> bytes:
        """Return one version of a person's adapter as a zip file."""
        async with self._request("GET", f"{_adapters(user)}/{version}/export") as response:
            return await response.read()

    async def adopt(self, user: str, package: bytes) -> int:
        """Make an exported adapter another person's. Return its version."""
        async with self._request("POST", _adapters(user), package=package) as response:
            return int(_object(await response.read(), response)["adapter_version"])

    async def forget(self, user: str) -> None:
        """Erase the person; a person heed never met is forgotten already."""
        try:
            await self._call("DELETE", f"/v1/users/{quote(user, safe='')}")
        except CallRefused as error:
            if error.status != NOT_FOUND:
                raise

    async def _call(self, method: str, path: str, body: Json | None = None) -> Json:
        async with self._request(method, path, body) as response:
            return _object(await response.read(), response)

    @asynccontextmanager
    async def _request(
        self, method: str, path: str, body: Json | None = None, package: bytes | None = None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        try:
            async with self._session.request(method, self.url + path, json=body, data=package) as response:
                if response.status != 200:
                    raise _refusal(_object(await response.read(), response), path, response.status)
                yield response
        except (aiohttp.ClientError, TimeoutError) as error:
            raise HeedUnreachable(f"no heed answers at {self.url}: {error or type(error).__name__}") from error


def _adapters(user: str) -> str:
    return f"/v1/users/{quote(user, safe='')}/adapters"


def chat_body(user: str, messages: Messages, notes: Notes, model: str, max_tokens: int = MAX_TOKENS) -> Json:
    """Return the body of a greedy chat call, without the penalty that the model's makers may ask for."""
    return {
        "model": model,
        "user": user,
        "messages": list(messages),
        "temperature": 0,
        "repetition_penalty": 1.0,
        "max_tokens": max_tokens,
        "heed": {"notes": notes},
    }


def answer_of(body: Json) -> Answer:
    """Return the answer in a response body."""
    return Answer(
        completion_id=body["id"],
        text=body["choices"][0]["message"]["content"],
        adapter_version=body["heed"]["adapter_version"],
        notes=tuple(body["heed"]["notes"]),
        completion_tokens=body["usage"]["completion_tokens"],
        tokens=tuple((entry["token"], entry["logprob"]) for entry in _logprobs(body)),
    )


def _logprobs(body: Json) -> list[Json]:
    entries: list[Json] = (body["choices"][0].get("logprobs") or {}).get("content") or []
    return entries


def piece_of(line: bytes) -> str:
    """Return the text in one line of a stream; empty for every other line.

    Raises Refused for an error in the stream.
    """
    data = line.strip().removeprefix(b"data: ")
    if not data or data == b"[DONE]" or data.startswith(b":"):
        return ""
    body = json.loads(data)
    if "error" in body:
        raise _refusal(body, "the stream", 200)
    choices = body.get("choices") or [{}]
    return str(choices[0].get("delta", {}).get("content") or "")


def _object(raw: bytes, response: aiohttp.ClientResponse) -> Json:
    try:
        data = json.loads(raw)
    except ValueError:
        data = None
    if not isinstance(data, dict):
        raise HeedUnreachable(f"{response.url} is not heed (status {response.status})")
    return data


def _refusal(body: Json, path: str, status: int) -> CallRefused:
    error = body.get("error") or {}
    message = error.get("message", f"status {status}")
    return CallRefused(f"heed refused {path}: {message}", status, error.get("code") or "")
