"""Tests of bot.platforms.discord.intake: nothing heard is lost for lack of room."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from bot.events import MessageReceived
from bot.platforms.discord import intake
from bot.platforms.discord.gateway import Pace
from storage.errors import NotStorable, StorageFull
from storage.tables import Inbox
from tests.bot.platforms.discord_bench import PACE, Bench, bench
from tests.contract.discord_world import BOT
from tests.patience import PATIENCE_S

MENTION = f"<@{BOT['id']}>"


class Gate:
    """Stands before an inbox and fails, or lets nothing through until it is opened."""

    def __init__(self, table: Bench) -> None:
        self.table = table
        self.is_open = asyncio.Event()
        self.errors: list[Exception] = []
        self.never = ""  # a text that cannot be stored
        self.is_open.set()

    async def take(self, row: Inbox) -> bool:
        await self.is_open.wait()
        if self.errors and row.update_id.startswith("m:"):
            raise self.errors.pop()
        if self.never and row.payload["data"].get("text") == self.never:
            raise NotStorable("NaN")
        return await self.table.take(row)


@asynccontextmanager
async def gated(data_dir: Path, pace: Pace = PACE) -> AsyncIterator[Gate]:
    """A connected channel behind a gate."""
    async with bench(data_dir, pace, is_started=False) as table:
        made = Gate(table)
        table.server.dm()
        table.channel = table.new_channel()
        await table.channel.start(made.take)
        await table.settled()
        yield made
        made.is_open.set()


@pytest_asyncio.fixture
async def gate(quick_dir: Path) -> AsyncIterator[Gate]:
    """The same, with room for as much as there is."""
    async with gated(quick_dir) as made:
        yield made


async def test_a_full_disk_is_waited_for(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    """What could not be stored is offered again until it is, and what comes after it waits."""
    monkeypatch.setattr(intake, "RETRY_S", 0.01)
    gate.errors = [StorageFull("no space left")] * 2
    for text in ("one", "two"):
        await gate.table.server.say(gate.table.server.dm(), text)
    await gate.table.until(lambda: len(gate.table.keys) == 2)
    assert [said.text for said in gate.table.said if isinstance(said, MessageReceived)] == ["one", "two"]


async def test_what_can_never_be_stored_is_left_out(gate: Gate) -> None:
    """One message that cannot be stored does not stop those after it."""
    gate.never = "one"
    for text in ("one", "two"):
        await gate.table.server.say(gate.table.server.dm(), text)
    await gate.table.until(lambda: gate.table.keys)
    assert [said.text for said in gate.table.said if isinstance(said, MessageReceived)] == ["two"]


async def test_too_many_at_once_are_found_in_the_history(quick_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond what may wait in memory events are left, and taken from the history once there is room."""
    monkeypatch.setattr(intake, "MAX_OPEN", 3)
    async with gated(quick_dir) as held:
        table = held.table
        held.is_open.clear()
        for number in range(20):
            await table.server.say(table.server.dm(), f"{number}")
        await table.until(lambda: table.channel._intake._missed)
        held.is_open.set()
        await table.until(lambda: len(table.keys) == 20)
        assert [said.text for said in table.said if isinstance(said, MessageReceived)] == [f"{n}" for n in range(20)]


async def test_what_comes_after_the_missed_waits_for_them(quick_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Room for one chat while another is held up takes nothing newer than what was left: it would be lost for good."""
    monkeypatch.setattr(intake, "MAX_OPEN", 3)
    async with bench(quick_dir, is_started=False) as table:
        group, private = Gate(table), Gate(table)
        dm, text = table.server.dm(), table.server.text()
        table.channel = table.new_channel()
        await table.channel.start(lambda row: (group if row.chat_key == text.id else private).take(row))
        await table.server.say(dm, "hello")
        await table.until(lambda: table.keys and table.channel._intake.is_idle)  # this chat is looked into
        group.is_open.clear(), private.is_open.clear()
        for number in range(2):
            await table.server.say(text, f"{MENTION} {number}")
        for number in range(2):
            await table.server.say(dm, f"{number}")
        await table.until(lambda: table.channel._intake._missed)
        private.is_open.set()
        await table.until(lambda: len(table.keys) == 2)
        await table.server.say(dm, "2")
        await table.until(lambda: table.channel._intake._gateway._here().sequence == table.server.last_sequence)
        group.is_open.set()
        await table.until(lambda: len(table.keys) == 6)
        said = [it.text for it in table.said if isinstance(it, MessageReceived) and it.place.external_id == dm.id]
        assert said == ["hello", "0", "1", "2"]


async def test_the_first_words_of_a_chat_are_missed_no_more_than_others(
    quick_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A chat that nothing was ever taken from is looked into where something of it was left."""
    monkeypatch.setattr(intake, "MAX_OPEN", 1)
    async with gated(quick_dir) as held:
        table = held.table
        held.is_open.clear()
        await table.server.say(table.server.dm(), "one")
        await table.server.say(table.server.dm("501"), "another")
        await table.until(lambda: table.channel._intake._missed)
        held.is_open.set()
        await table.until(lambda: len(table.keys) == 2)
        assert [said.text for said in table.said if isinstance(said, MessageReceived)] == ["one", "another"]


async def test_an_interaction_is_answered_before_it_is_stored(gate: Gate) -> None:
    """Discord waits three seconds for the first answer, however long storing takes."""
    gate.is_open.clear()
    given = await gate.table.server.command(gate.table.server.dm(), "help")
    await gate.table.until(lambda: given.first is not None)
    assert gate.table.keys == []
    gate.is_open.set()
    await gate.table.until(lambda: gate.table.keys)


async def test_stopping_commits_what_was_heard(quick_dir: Path) -> None:
    """A message heard before the stop is in the inbox after it."""
    async with gated(quick_dir, replace(PACE, drain_s=PATIENCE_S)) as gate:
        table = gate.table
        await table.server.say(table.server.dm(), "goodbye")
        await table.until(lambda: not table.channel._intake.is_idle or table.keys)
        await table.channel.stop()
        assert len(table.keys) == 1
