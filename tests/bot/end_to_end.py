"""A person in a private chat with heed, told the same way for every platform."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.contract import discord_world
from tests.contract.discord_server import DiscordServer
from tests.contract.telegram_server import ANA, TelegramServer, private
from tests.patience import until


@dataclass(frozen=True)
class Shown:
    """A message of heed's; the ids of later ones are greater."""

    id: int
    text: str
    actions: tuple[str, ...]


class Chat(ABC):
    """Somebody's private chat with heed. All of it happens on the loop of the platform's server."""

    @abstractmethod
    async def say(self, text: str, reply_to: Shown | None = None) -> int:
        """Write something; the message's id."""

    @abstractmethod
    async def press(self, shown: Shown, action: str) -> None:
        """Press a button."""

    @abstractmethod
    async def command(self, name: str) -> None:
        """Give a command."""

    @abstractmethod
    def _shown(self) -> Iterator[Shown]:
        """heed's messages as they are now."""

    async def sees(self, words: str = "", action: str = "", *, after: int = 0) -> Shown:
        """The first message of heed with these words and this button that is younger than `after`, once it is there."""
        found: list[Shown] = []

        def is_there() -> bool:
            found[:] = [
                shown
                for shown in self._shown()
                if shown.id > after and words in shown.text and (not action or action in shown.actions)
            ]
            return bool(found)

        try:
            await until(is_there)
        except TimeoutError:
            pytest.fail(f"no {words!r} with the button {action!r} after {after} among {[*self._shown()]}")
        return found[0]

    async def ask(self, text: str) -> Shown:
        """The finished answer, the one with buttons, to a question in a conversation of its own."""
        newest = max((shown.id for shown in self._shown()), default=0)
        await self.command("reset")
        await self.sees("A new conversation", after=newest)
        return await self.go_on(text)

    async def go_on(self, text: str) -> Shown:
        """The finished answer to a question in the same conversation."""
        return await self.sees(action="fix", after=await self.say(text))

    async def correct(self, answer: Shown, wish: str) -> tuple[Shown, Shown]:
        """Reply to an answer with a wish: the notice that it is learned, and the answer given again."""
        notice = await self.sees("Learned", action="undo", after=await self.say(wish, answer))
        return notice, await self.sees(action="fix", after=notice.id)


class TelegramChat(Chat):
    """Ana on Telegram."""

    def __init__(self, server: TelegramServer) -> None:
        self._server = server
        self._home = private(ANA)

    async def say(self, text: str, reply_to: Shown | None = None) -> int:
        message_id: int = self._server.say(text, reply_to=reply_to.id if reply_to else None)["message_id"]
        return message_id

    async def press(self, shown: Shown, action: str) -> None:
        assert action in shown.actions
        self._server.press(self._home, shown.id, action)

    async def command(self, name: str) -> None:
        self._server.say(f"/{name}")

    def _shown(self) -> Iterator[Shown]:
        for message in self._server.shown(self._home):
            rows = (message.get("reply_markup") or {}).get("inline_keyboard", [])
            actions = tuple(button["callback_data"] for row in rows for button in row)
            yield Shown(message["message_id"], message.get("text", ""), actions)


class DiscordChat(Chat):
    """Ana on Discord."""

    def __init__(self, server: DiscordServer) -> None:
        self._server = server
        self._channel = server.dm()

    async def say(self, text: str, reply_to: Shown | None = None) -> int:
        message = await self._server.say(self._channel, text, reply_to=str(reply_to.id) if reply_to else None)
        return int(message["id"])

    async def press(self, shown: Shown, action: str) -> None:
        assert action in shown.actions
        await self._server.press(self._channel.messages[str(shown.id)], action)

    async def command(self, name: str) -> None:
        await self._server.command(self._channel, name)

    def _shown(self) -> Iterator[Shown]:
        for message in self._channel.messages.values():
            if message["author"] == discord_world.BOT:
                actions = tuple(button["custom_id"] for row in message["components"] for button in row["components"])
                yield Shown(int(message["id"]), message["content"], actions)
