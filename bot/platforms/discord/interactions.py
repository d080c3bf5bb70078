"""Slash commands, presses and forms: answered within Discord's three seconds, worked on later, finished at most once.

The first answer only says that heed is at it (or opens a form, which Discord takes as a first answer only), and must
be given before anything slow such as a commit. One that Discord took without saying so counts. What comes of it edits
that first answer, so doing it twice shows it once. Discord keeps an interaction's token for fifteen minutes; after that
what everybody may see goes out as an ordinary message.
"""

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from bot.channel import ChannelError, CommandMenu, Gone, Post, Unreachable
from bot.platforms.discord.commands import completions
from bot.platforms.discord.components import form_payload, opens_form
from bot.platforms.discord.events import AUTOCOMPLETE, COMMAND, FORM, PRESS, Json
from bot.platforms.discord.messages import NO_PREVIEWS, DiscordMessages, content
from bot.platforms.discord.rest import AlreadyAnswered, DiscordRest

DEFER, DEFER_UPDATE, COMPLETE, OPEN_FORM = 5, 6, 8, 9  # types of first answers
EPHEMERAL = 1 << 6  # message flag: the asker alone sees it
OPEN, PRIVATE, QUIET = "c", "e", "p"  # how a token was first answered: for all, for the asker, not visibly
ELSEWHERE = "Only you can see the answer."
MAX_REMEMBERED = 1000
ORIGINAL = "/webhooks/{webhook_id}/{webhook_token}/messages/@original"
FOLLOW_UP = "/webhooks/{webhook_id}/{webhook_token}"


class DiscordInteractions:
    """Commands, buttons and forms of one bot."""

    def __init__(
        self, rest: DiscordRest, messages: DiscordMessages, menus: Sequence[CommandMenu], first_answer_s: float
    ) -> None:
        self._rest = rest
        self._messages = messages
        self._menus = menus
        self._first_answer_s = first_answer_s
        self._finished: OrderedDict[str, None] = OrderedDict()

    async def begin(self, interaction: Json) -> str | None:
        """Give the first answer. Return the token for the last one, or None if nothing is left to do.

        Raises ChannelError or TimeoutError if Discord did not take it: then no one may act on it.
        """
        kind, said = interaction["type"], interaction.get("data") or {}
        if kind == AUTOCOMPLETE:
            await self._first(interaction, COMPLETE, {"choices": completions(self._menus, said)})
            return None
        if kind == PRESS and opens_form(said["custom_id"]):
            await self._first(interaction, OPEN_FORM, form_payload(said["custom_id"]))
            return None
        if kind not in (COMMAND, PRESS, FORM):
            return None
        mode = self._mode(kind, interaction)
        flags = {"flags": EPHEMERAL} if mode == PRIVATE else {}
        try:
            await self._first(interaction, DEFER_UPDATE if mode == QUIET else DEFER, flags)
        except (TimeoutError, Unreachable) as error:
            if not await self._has_begun(interaction):
                raise error from None
        return f"{mode}:{interaction['application_id']}:{interaction['token']}"

    async def answer(self, post: Post) -> str:
        """Show what came of it; the id of the message. Raises ChannelError."""
        mode, application, token = post.token.split(":", 2)
        try:
            return await self._answer(post, mode, {"webhook_id": application, "webhook_token": token})
        except Gone:
            if post.is_private or mode == PRIVATE:
                raise
            return await self._messages.send(post)

    async def acknowledge(self, token: str, text: str) -> None:
        """End an interaction, with a notice for the asker alone if there is one. Raises ChannelError."""
        mode, application, secret = token.split(":", 2)
        keys = {"webhook_id": application, "webhook_token": secret}
        if mode == QUIET and text:
            await self._follow_up(content(text), keys)
        elif mode != QUIET and text:
            await self._rest.call("PATCH", ORIGINAL, keys, body=content(text))
        elif mode != QUIET and secret not in self._finished:
            await self._rest.call("DELETE", ORIGINAL, keys)

    def _mode(self, kind: int, interaction: Json) -> str:
        if kind == COMMAND:
            private = {menu.name for menu in self._menus if menu.is_private}
            return PRIVATE if interaction["data"]["name"] in private else OPEN
        return QUIET if interaction.get("message") else PRIVATE

    async def _first(self, interaction: Json, kind: int, data: Json) -> None:
        path = "/interactions/{webhook_id}/{webhook_token}/callback"
        keys = {"webhook_id": str(interaction["id"]), "webhook_token": str(interaction["token"])}
        # Who gave it before is this bot: a heed that was killed before it had stored the interaction.
        with contextlib.suppress(AlreadyAnswered):
            async with asyncio.timeout(self._first_answer_s):
                await self._rest.call("POST", path, keys, body={"type": kind, "data": data})

    async def _has_begun(self, interaction: Json) -> bool:
        """Return True if a first answer without a reply was taken all the same: then the person sees heed at it."""
        keys = {"webhook_id": str(interaction["application_id"]), "webhook_token": str(interaction["token"])}
        try:
            await self._rest.call("GET", ORIGINAL, keys)
        except ChannelError:
            return False
        return True

    async def _answer(self, post: Post, mode: str, keys: dict[str, str]) -> str:
        is_private = post.is_private or mode == PRIVATE
        is_first = mode != QUIET and post.number == 0 and keys["webhook_token"] not in self._finished
        body = content(post.text, post.rows)
        if is_first and (mode == PRIVATE or not is_private):
            shown = await self._rest.call("PATCH", ORIGINAL, keys, body=body, files=post.files)
            self._remember(keys["webhook_token"])
            return str(shown["id"])
        if not is_private:
            return await self._messages.send(post)
        if is_first:
            await self._rest.call("PATCH", ORIGINAL, keys, body=content(ELSEWHERE))
        shown = await self._follow_up(body, keys, post)
        self._remember(keys["webhook_token"])
        return str(shown["id"])

    async def _follow_up(self, body: Json, keys: dict[str, str], post: Post | None = None) -> Any:
        files, private = post.files if post else (), {"flags": EPHEMERAL | NO_PREVIEWS}
        return await self._rest.call("POST", FOLLOW_UP, keys, body=body | private, files=files, params={"wait": "true"})

    def _remember(self, token: str) -> None:
        self._finished[token] = None
        while len(self._finished) > MAX_REMEMBERED:
            self._finished.popitem(last=False)
