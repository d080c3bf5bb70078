"""Calls to Discord's HTTP API through discord.py's own client, with its errors in the words of `bot.channel`.

discord.py keeps the rate limit buckets and waits short limits out by itself; a longer one comes back as SlowDown, so
that one chat's wait holds up no one else. A refused token ends all calls: Discord bans who keeps trying.
"""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import aiohttp
import discord
from discord.http import HTTPClient, Route

from bot.channel import ChannelError, File, Gone, Refused, SlowDown, Unreachable
from bot.platforms.discord.events import Json

LONGEST_WAIT_S = 5.0  # rate limits up to this long are waited out inside discord.py
UNKNOWN_PAUSE_S = 60.0  # where Discord says "too much" and not for how long
GONE = frozenset({10003, 10008, 10015, 10062, 50001, 50007, 50027})
ALREADY_ANSWERED = 40060  # an interaction
UNAUTHORISED = 401
BAD_WEBHOOK_TOKEN = 50027  # an interaction's token ran out: a 401 that says nothing about the bot's own token


class AlreadyAnswered(Refused):
    """An interaction has its first answer."""


class DiscordRest:
    """The HTTP side of one bot; usable once `http` is set."""

    def __init__(self, timeout_s: float, on_refused_token: Callable[[], None]) -> None:
        self.http: HTTPClient | None = None
        self.is_token_refused = False
        self._timeout_s = timeout_s
        self._on_refused_token = on_refused_token

    async def call(
        self,
        method: str,
        path: str,
        keys: Mapping[str, str] = MappingProxyType({}),
        *,
        body: Any = None,
        params: Json | None = None,
        files: Sequence[File] = (),
    ) -> Any:
        """Return the answer to one call, None if it has no content. `keys` fill the path. Raises ChannelError."""
        if self.http is None or self.is_token_refused:
            raise Unreachable("not connected to Discord", is_ambiguous=False)
        options: Json = {"params": params} if params else {}
        if files:
            options["form"] = _form(body, files)
        elif body is not None:
            options["json"] = body
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self.http.request(Route(method, path, **keys), **options)
        except (discord.DiscordException, aiohttp.ClientError, OSError, ValueError, RuntimeError) as error:
            raise self._named(error, f"{method} {path}") from None

    def _named(self, error: Exception, what: str) -> ChannelError:
        if isinstance(error, discord.RateLimited):
            return SlowDown(f"{what}: too much for Discord", error.retry_after)
        if isinstance(error, discord.HTTPException) and not isinstance(error, discord.DiscordServerError):
            return self._refusal(error, f"{what}: {error.status}, code {error.code}")
        never_left = isinstance(error, aiohttp.ClientConnectorError)
        return Unreachable(f"{what}: {type(error).__name__}", is_ambiguous=not never_left)

    def _refusal(self, error: discord.HTTPException, what: str) -> ChannelError:
        if error.status == UNAUTHORISED and error.code != BAD_WEBHOOK_TOKEN:
            self.is_token_refused = True
            self._on_refused_token()
            return Unreachable(f"{what}: the token is refused", is_ambiguous=False)
        if error.status == 429:
            return SlowDown(what, _pause_s(error))
        if error.code == ALREADY_ANSWERED:
            return AlreadyAnswered(what)
        return Gone(what) if error.code in GONE else Refused(what)


def _pause_s(error: discord.HTTPException) -> float:
    try:
        return float(error.response.headers.get("Retry-After", UNKNOWN_PAUSE_S))
    except ValueError:
        return UNKNOWN_PAUSE_S


def _form(body: Any, files: Sequence[File]) -> list[Json]:
    parts: list[Json] = [{"name": "payload_json", "value": json.dumps(body), "content_type": "application/json"}]
    for number, file in enumerate(files):
        content_type = "application/octet-stream"
        parts.append(
            {"name": f"files[{number}]", "value": file.content, "filename": file.name, "content_type": content_type}
        )
    return parts
