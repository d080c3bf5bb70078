"""Talks to a running heed over HTTP; what `heed chat` and the other commands use. Starts nothing.

Every failure becomes ServerUnreachable (none is running there) or ServerRefused (it answered with an error).
"""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Self
from urllib.parse import quote

import aiohttp

from bot.errors import ServerRefused, ServerUnreachable

Json = dict[str, Any]
LOOK_EVERY_S = 0.5
CONNECT_TIMEOUT_S = 5.0
READY_TIMEOUT_S = 5.0
READ_TIMEOUT_S = 300.0


class HeedClient:
    """One person's calls to the heed at `url`; use it as an async context manager."""

    def __init__(self, url: str, user: str = "", api_key: str = "", chat: str = "terminal") -> None:
        self.url = url.rstrip("/")
        self.user = user
        self.chat = chat
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._session = aiohttp.ClientSession(headers=headers)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def ready(self) -> Json:
        """Return what /readyz says, also while heed is still starting.

        Soon: anyone who does not answer it is not heed.
        """
        async with self._call("GET", "/readyz", accepts=503, timeout_s=READY_TIMEOUT_S) as response:
            return await _object(response)

    async def metrics(self) -> str:
        """Return what /metrics says."""
        async with self._call("GET", "/metrics") as response:
            return await response.text()

    async def get(self, path: str = "") -> Json:
        """`GET` below this person."""
        async with self._call("GET", self._person(path)) as response:
            return await _object(response)

    async def post(self, path: str, body: Json) -> Json:
        """`POST` below this person."""
        async with self._call("POST", self._person(path), body) as response:
            return await _object(response)

    async def download(self, path: str) -> bytes:
        """`GET` of a file below this person."""
        async with self._call("GET", self._person(path)) as response:
            return await response.read()

    async def upload(self, path: str, content: bytes) -> Json:
        """`POST` of a file below this person."""
        async with self._call("POST", self._person(path), content) as response:
            return await _object(response)

    async def delete(self, path: str = "") -> Json:
        """`DELETE` below this person."""
        async with self._call("DELETE", self._person(path)) as response:
            return await _object(response)

    async def command(self, text: str, completion_id: str | None = None) -> Json:
        """Have a chat command done."""
        return await self.post("/commands", {"text": text, "chat": self.chat, "completion_id": completion_id})

    async def workspace_notes(self, workspace: str, said: str) -> Json:
        """Do what words about a workspace's notes say: a note, `delete 2`, or nothing to list them."""
        body = {"user": self.user, "workspace": workspace, "text": said}
        async with self._call("POST", "/api/workspaces/notes", body) as response:
            return await _object(response)

    async def feedback(self, body: Json, key: str = "") -> Json:
        """`POST /v1/feedback`, waiting for what was learned. The same `key` is the same feedback."""
        headers = {"Idempotency-Key": key} if key else None
        async with self._call("POST", "/v1/feedback", {"user": self.user, **body}, headers=headers) as response:
            return await _object(response)

    async def feedback_state(self, feedback_id: str) -> Json:
        """Return what became of a piece of feedback, or how far its lesson is."""
        async with self._call("GET", self._about(feedback_id)) as response:
            return await _object(response)

    async def phases(self, feedback_id: str) -> AsyncGenerator[str, None]:
        """Yield a line for each phase of a lesson, until it neither waits nor runs."""
        phase = None
        while (state := await self.feedback_state(feedback_id))["progress"]:
            progress = state["progress"]
            if phase != (phase := (progress["status"], progress["phase"], progress["place"])):
                yield progress["text"]
            await asyncio.sleep(LOOK_EVERY_S)

    async def choose_always(self, feedback_id: str, wait_s: float) -> Json:
        """Have a correction reach every answer from now on; return what became of it."""
        body = {"scope": "always", "wait": wait_s}
        async with self._call("POST", self._about(feedback_id, "/scope"), body) as response:
            return await _object(response)

    async def cancel_lesson(self, feedback_id: str) -> Json:
        """Stop a lesson that waits or runs."""
        async with self._call("POST", self._about(feedback_id, "/cancel")) as response:
            return await _object(response)

    async def stop(self, completion_id: str) -> bool:
        """End an answer that is being written. Return False if it is not, or not any more."""
        path = f"/v1/chat/completions/{quote(completion_id, safe='')}/stop?user={quote(self.user, safe='')}"
        async with self._call("POST", path) as response:
            return bool((await _object(response))["stopped"])

    async def ask(self, text: str, chat: str = "") -> AsyncGenerator[Json, None]:
        """Say something in a kept conversation, the client's own if none is named; the answer's pieces as they come."""
        said = {"messages": [{"role": "user", "content": text}], "heed": {"chat": chat or self.chat}}
        async for chunk in self._chat(said):
            yield chunk

    async def answer(self, messages: list[Json], tools: list[Json]) -> Json:
        """Return the answer to a conversation that is not kept, which may call tools; too long a one is refused."""
        whole = {"truncation": "disabled"}
        body = {"model": "heed", "user": self.user, "messages": messages, "tools": tools, "heed": whole}
        async with self._call("POST", "/v1/chat/completions", body) as response:
            return await _object(response)

    async def regenerate(self, completion_id: str) -> AsyncGenerator[Json, None]:
        """Yield the same question answered once more."""
        async for chunk in self._chat({"heed": {"regenerate": completion_id}}):
            yield chunk

    async def _chat(self, body: Json) -> AsyncGenerator[Json, None]:
        whole = {"model": "heed", "user": self.user, "stream": True, **body}
        async with self._call("POST", "/v1/chat/completions", whole) as response:
            async for line in response.content:
                data = line.strip().removeprefix(b"data: ")
                if data.startswith(b":"):  # a comment says how many wait before this call
                    yield {"waiting": data[1:].strip().decode()}
                elif data and data != b"[DONE]":
                    yield _checked(json.loads(data), response.status)

    def _person(self, path: str) -> str:
        return f"/v1/users/{quote(self.user or 'local', safe='')}{path}"

    def _about(self, feedback_id: str, path: str = "") -> str:
        return f"/v1/feedback/{quote(feedback_id, safe='')}{path}?user={quote(self.user, safe='')}"

    @asynccontextmanager
    async def _call(
        self,
        method: str,
        path: str,
        body: Json | bytes | None = None,
        accepts: int = 200,
        timeout_s: float | None = None,
        headers: dict[str, str] | None = None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        try:
            timeout = aiohttp.ClientTimeout(timeout_s, sock_connect=CONNECT_TIMEOUT_S, sock_read=READ_TIMEOUT_S)
            sent = {"data": body} if isinstance(body, bytes) else {"json": body}
            async with self._session.request(
                method, self.url + path, timeout=timeout, headers=headers, **sent
            ) as response:
                if response.status not in (200, accepts):
                    _checked(await _object(response), response.status)
                yield response
        except (aiohttp.ClientConnectionError, TimeoutError) as error:
            raise ServerUnreachable(f"No heed answers at {self.url}. Start one with `heed run`.") from error
        except aiohttp.ClientError as error:
            raise ServerUnreachable(f"{self.url} does not answer as heed does: {error}.") from error


async def _object(response: aiohttp.ClientResponse) -> Json:
    try:
        data = json.loads(await response.read())
    except ValueError:
        data = None
    if not isinstance(data, dict):
        raise ServerRefused(f"{response.url} is not heed (status {response.status}).", response.status)
    return data


def _checked(data: Json, status: int) -> Json:
    if status != 200 or "error" in data:
        error = data.get("error") or {}
        raise ServerRefused(str(error.get("message", f"status {status}")), status, str(error.get("code") or ""))
    return data
