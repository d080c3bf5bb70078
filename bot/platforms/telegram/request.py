"""The library's requests as heed uses them: they fail without noise, and a call that has begun is never cancelled.

Invariants: httpcore sees no more calls at once than it has connections, and no cancelled one. It loses the connection
of a call that is cancelled while others wait for one (https://github.com/encode/httpcore/issues/1093), until none is
left and nothing can be sent any more.
"""

import asyncio
import json
import ssl
from functools import cache
from typing import Any

import httpx
from telegram import error as telegram_error
from telegram.request import HTTPXRequest


class Request(HTTPXRequest):
    """PTB's requests. Who gives up waiting for a call leaves it to end by itself, within its own timeouts."""

    def __init__(self, *, connection_pool_size: int, **options: Any) -> None:
        """PTB's own options. All requests trust the same certificates: reading them takes a processor 30 ms."""
        super().__init__(connection_pool_size, httpx_kwargs={"verify": _trusted()}, **options)
        self._room = asyncio.Semaphore(connection_pool_size)
        self._calls: set[asyncio.Task[tuple[int, bytes]]] = set()

    async def do_request(self, *args: Any, **options: Any) -> tuple[int, bytes]:
        """Carry out one call, in its turn. Raises TelegramError."""
        await self._room.acquire()
        call = asyncio.create_task(super().do_request(*args, **options), name="telegram call")
        self._calls.add(call)
        call.add_done_callback(self._note_end)
        try:
            return await asyncio.shield(call)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if call.cancelled() and task is not None and not task.cancelling():
                raise telegram_error.NetworkError("the connection was closed") from None
            raise

    async def shutdown(self) -> None:
        """End every call and close every connection."""
        for call in self._calls:
            call.cancel()
        await asyncio.gather(*self._calls, return_exceptions=True)
        await super().shutdown()

    @staticmethod
    def parse_json_payload(payload: bytes) -> dict[str, Any]:
        """Return the answer. Raises TelegramError if it is not one of the Bot API's."""
        try:
            answer = json.loads(payload.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            raise telegram_error.TelegramError("the answer is not JSON") from None
        if not isinstance(answer, dict) or ("result" not in answer and answer.get("ok") is not False):
            raise telegram_error.TelegramError("the answer is not one of the Bot API")
        return answer

    def _note_end(self, call: asyncio.Task[tuple[int, bytes]]) -> None:
        self._calls.discard(call)
        self._room.release()
        if not call.cancelled():
            call.exception()  # nobody may be left to read it


@cache
def _trusted() -> ssl.SSLContext:
    return httpx.create_ssl_context()
