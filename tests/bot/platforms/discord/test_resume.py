"""Tests of bot.platforms.discord.resume: what came while heed was down, and is in no history, is replayed."""

import asyncio
from pathlib import Path

import pytest

from bot.channel import Button, Post
from bot.events import Place
from bot.platforms.discord.resume import Position, ResumePoint
from bot.platforms.discord.shard import Shard
from storage.database import Database
from tests.bot.platforms.discord_bench import Bench

DM = Place("discord", "500")


@pytest.fixture
def database(quick_dir: Path) -> Database:
    """A database of its own."""
    return Database.open(quick_dir)


def at(sequence: int, session_id: str = "one") -> Position:
    """A position of a session."""
    return Position(session_id, sequence, "ws://nowhere")


async def test_the_first_words_in_a_private_chat_are_heard_by_the_next_heed(table: Bench) -> None:
    """No bot can ask which private chats it has, so no history could be looked into."""
    await table.resumable()
    await table.channel.close()
    said = await table.server.say(table.server.dm("777"), "hello, stranger")
    await table.start()
    await table.until(lambda: table.keys)
    assert table.keys == [f"m:{said['id']}"]
    assert len(table.server.sockets.resumed) == 1


async def test_a_press_that_was_answered_and_not_stored_is_taken(table: Bench) -> None:
    """The heed that was killed in between had given the first answer; Discord refuses a second one."""
    message = await table.channel.post(Post(DM, "a llama", ((Button("👍", "up"),),)))
    await table.resumable()
    await table.channel.close()
    pressed = await table.server.press(table.server.dm().messages[message], "up")
    pressed.first = {"type": 6}
    await table.start()
    await table.until(lambda: table.keys)
    assert table.keys == [f"i:{pressed.payload['id']}"]


async def test_a_session_that_discord_dropped_begins_anew(table: Bench) -> None:
    """The position is tried, refused, and replaced by that of the new session."""
    await table.resumable()
    await table.restart()
    sockets = table.server.sockets
    await table.until(lambda: len(sockets.identified) == 2)
    await table.resumable()
    assert len(sockets.resumed) == 1
    await table.channel.close()
    await table.start()
    await table.until(lambda: len(sockets.resumed) == 2)
    assert len(sockets.identified) == 2


async def test_what_is_not_committed_is_not_passed(database: Database) -> None:
    """The position stays before the oldest work that is open, and before work that was given up."""
    resume_point, works = ResumePoint(database, Shard()), [asyncio.get_running_loop().create_future() for _ in range(3)]
    await resume_point.recall("bot")
    for sequence, work in enumerate(works, 10):
        resume_point.hear(at(sequence))
        resume_point.hold(work)
    resume_point.hear(at(13))
    for done, expected in ((1, 9), (0, 11)):
        works[done].set_result(None)
        await asyncio.sleep(0)
        await resume_point.close()
        assert await ResumePoint(database, Shard()).recall("bot") == at(expected)
    works[2].cancel()
    await asyncio.sleep(0)
    await resume_point.close()
    assert await ResumePoint(database, Shard()).recall("bot") == at(11)
    await database.close()


async def test_work_of_an_earlier_session_holds_nothing_back(database: Database) -> None:
    """Numbers begin anew with a session."""
    resume_point, work = ResumePoint(database, Shard()), asyncio.get_running_loop().create_future()
    await resume_point.recall("bot")
    resume_point.hear(at(5))
    resume_point.hold(work)
    resume_point.hear(at(7, "two"))
    await resume_point.close()
    assert await ResumePoint(database, Shard()).recall("bot") == at(7, "two")
    assert not (await ResumePoint(database, Shard()).recall("another bot")).can_resume
    await database.close()
