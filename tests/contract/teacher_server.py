"""An endpoint with OpenAI's chat calls on a loopback socket: the teacher that the curriculum asks.

It answers what `answer` makes of a conversation; what goes wrong is asked for with `fail`, one fault a call.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from aiohttp import web

Json = dict[str, Any]
KEY = "a key that only the endpoint knows"
MODEL = "a-large-model"


@dataclass(frozen=True)
class Fault:
    """A fault injected into one call."""

    status: int = 200
    body: bytes | None = None  # answered instead of a reply of the right form
    location: str = ""
    hangs: bool = False
    cuts: bool = False  # the connection ends without an answer


class TeacherServer:
    """One endpoint; use it as an asynchronous context manager."""

    def __init__(self, answer: Callable[[list[dict[str, str]]], str] = lambda _messages: "Yes.") -> None:
        self.answer = answer
        self.calls: list[Json] = []
        self.finish_reason = "stop"
        self._faults: deque[Fault] = deque()
        self._release = asyncio.Event()
        self._runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        """The value for HEED_CURRICULUM_URL."""
        assert self._runner is not None
        return f"http://127.0.0.1:{self._runner.addresses[0][1]}/v1"

    def settings(self, **fields: Any) -> Json:
        """The settings of a curriculum with this teacher."""
        return {"url": self.url, "model": MODEL, "api_key": KEY, **fields}

    def fail(self, *faults: Fault) -> None:
        """The next calls go wrong."""
        self._faults.extend(faults)

    async def __aenter__(self) -> "TeacherServer":
        app = web.Application()
        app.router.add_post("/v1/chat/completions", self._complete)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._release.set()
        assert self._runner is not None
        await self._runner.cleanup()

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.calls.append(body)
        if self._faults:
            return await self._fail(request, self._faults.popleft())
        if request.headers.get("Authorization") != f"Bearer {KEY}":
            return web.json_response({"error": {"message": "no key"}}, status=401)
        message = {"role": "assistant", "content": self.answer(body["messages"])}
        choice = {"index": 0, "message": message, "finish_reason": self.finish_reason}
        return web.json_response({"object": "chat.completion", "model": MODEL, "choices": [choice]})

    async def _fail(self, request: web.Request, fault: Fault) -> web.StreamResponse:
        if fault.hangs:
            await self._release.wait()
        if fault.cuts and request.transport is not None:
            request.transport.abort()
        headers = {"Location": fault.location} if fault.location else {}
        return web.Response(status=fault.status, body=fault.body or b"", headers=headers)
