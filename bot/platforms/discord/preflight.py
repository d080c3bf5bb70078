"""Checks of a Discord bot before it can work, over plain HTTP without opening a session.

A session costs one of the day's starts; these two calls cost nothing. Changes nothing, and never shows the token.
"""

import asyncio
from typing import Any

import aiohttp

from bot.config import DiscordSettings
from bot.platforms.discord.gateway import NO_CONTENT, REFUSED

TIMEOUT_S = 10.0
HAS_CONTENT = 1 << 18 | 1 << 19  # the flags of an application that may read messages: large, and below 100 servers
UNAUTHORISED = 401


async def problems(settings: DiscordSettings) -> list[str]:
    """Everything that is wrong with the bot of these settings, for `heed doctor`."""
    if settings.token is None:
        return []
    headers = {"Authorization": f"Bot {settings.token.get_secret_value()}"}
    try:
        async with aiohttp.ClientSession(headers=headers) as session, asyncio.timeout(TIMEOUT_S):
            application = await _application(session, settings.api_base)
    except (aiohttp.ClientError, OSError, ValueError) as error:
        return [f"Discord does not answer at {settings.api_base} ({type(error).__name__}); try again later"]
    if application is None:
        return [REFUSED]
    return [] if application.get("flags", HAS_CONTENT) & HAS_CONTENT else [NO_CONTENT]


async def _application(session: aiohttp.ClientSession, api_base: str) -> dict[str, Any] | None:
    """Return the bot's application, or None if the token is refused."""
    async with session.get(f"{api_base}/oauth2/applications/@me") as response:
        if response.status == UNAUTHORISED:
            return None
        response.raise_for_status()
        found = await response.json()
    if not isinstance(found, dict):
        raise aiohttp.ClientPayloadError("no application")
    return found
