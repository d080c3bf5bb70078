"""bot.platforms.telegram.menu: the menu of commands."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from bot.platforms.telegram.client import TelegramClient
from bot.platforms.telegram.menu import entries, sync
from tests.bot.platforms.telegram_bench import settings
from tests.contract.telegram_server import ANA, TelegramServer, private


@dataclass(frozen=True)
class Entry:
    """A command, as `bot.commands.person.menu` lists it."""

    name: str
    summary: str
    argument_hint: str = ""
    is_admin: bool = False
    is_private: bool = False
    choices: tuple[str, ...] = ()


COMMANDS = (
    Entry("help", "what you can say"),
    Entry("note", "always keep in mind", "text"),
    Entry("export", "everything about you", is_private=True),
    Entry("stats", "figures", is_admin=True),
)
PEOPLE = [("help", "what you can say"), ("note", "text: always keep in mind"), ("export", "everything about you")]


@pytest.fixture
async def server() -> AsyncIterator[TelegramServer]:
    """A Bot API server."""
    async with TelegramServer() as server:
        yield server


@pytest.fixture
async def client(server: TelegramServer) -> AsyncIterator[TelegramClient]:
    """A client of it."""
    client = TelegramClient(settings(server))
    yield client
    await client.close()


def menu(server: TelegramServer, **scope: object) -> list[tuple[str, str]]:
    """What Telegram has for a scope."""
    return [(entry["command"], entry["description"]) for entry in server.commands[json.dumps(scope, sort_keys=True)]]


async def test_each_scope_has_its_list(server: TelegramServer, client: TelegramClient) -> None:
    """In groups nothing that is private, admins' commands for admins only."""
    server.meet(private(ANA))
    assert await sync(client.bot, COMMANDS, ["111"]) == 3  # type: ignore[arg-type]
    assert menu(server, type="all_private_chats") == PEOPLE
    assert menu(server, type="all_group_chats") == PEOPLE[:2]
    assert menu(server, type="chat", chat_id=111) == [*PEOPLE, ("stats", "figures")]


async def test_nothing_is_set_twice(server: TelegramServer, client: TelegramClient) -> None:
    """Only what changed."""
    await sync(client.bot, COMMANDS, [])  # type: ignore[arg-type]
    assert await sync(client.bot, COMMANDS, []) == 0  # type: ignore[arg-type]
    changed = (*COMMANDS, Entry("forget", "erase me", is_private=True))
    assert await sync(client.bot, changed, []) == 1  # type: ignore[arg-type]
    assert len(server.called("setMyCommands")) == 3


async def test_an_admin_who_never_wrote_is_left_out(server: TelegramServer, client: TelegramClient) -> None:
    """Telegram knows no chat with them; the others' lists are set."""
    assert await sync(client.bot, COMMANDS, ["999"]) == 2  # type: ignore[arg-type]


def test_entries_are_as_telegram_takes_them() -> None:
    """Names in small letters, descriptions of at most 256 characters, a hundred commands."""
    odd = [Entry("Help-me", "x"), Entry("x" * 33, "x"), Entry("note", "x" * 300, "text"), Entry("bare", "")]
    shown = entries([*odd, *(Entry(f"c{number}", "x") for number in range(200))])  # type: ignore[list-item]
    assert [entry.command for entry in shown[:2]] == ["note", "bare"]
    assert len(shown[0].description) == 256
    assert shown[1].description == "bare"
    assert len(shown) == 100
