"""Tests of bot.platforms.discord.backfill: what happened while nobody listened."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from bot.channel import Post
from bot.events import MessageEdited, MessageReceived, Place, ReactionChanged
from bot.platforms.discord.events import CREATED, message_row
from storage.conversations import chats
from storage.people import people
from tests.bot.platforms.discord_bench import Bench, bench
from tests.contract.discord_server import Fault
from tests.contract.discord_world import ANA, BEN, BOT, NO_ACCESS, Refusal

DM = Place("discord", "500")
MENTION = f"<@{BOT['id']}>"
DAY_S = 24 * 3600.0


@pytest_asyncio.fixture
async def table(quick_dir: Path) -> AsyncIterator[Bench]:
    """A channel that heard something in private and on a server."""
    async with bench(quick_dir, is_started=False) as made:
        made.server.dm()
        made.server.text()
        await made.start()
        await made.server.say(made.server.dm(), "first")
        await made.server.say(made.server.text(), f"{MENTION} first")
        await made.until(lambda: len(made.keys) == 2)
        await made.settled()
        made.taken.clear()
        yield made


def texts(table: Bench) -> list[str]:
    """What was taken, in order."""
    return [said.text for said in table.said if isinstance(said, MessageReceived | MessageEdited)]


async def test_missed_messages_are_taken_in_order_and_once(table: Bench) -> None:
    """What was said while heed was dead is taken as it was said; coming back again adds nothing."""

    async def meanwhile() -> None:
        for number in range(250):
            await table.server.say(table.server.dm(), f"missed {number}")
        await table.server.say(table.server.text(), f"{MENTION} missed")
        await table.server.say(table.server.text(), "not for heed")

    await table.restart(meanwhile)
    await table.settled()
    assert [text for text in texts(table) if text != "missed"] == [f"missed {number}" for number in range(250)]
    assert len(table.keys) == 251
    await table.restart()
    await table.settled()
    assert len(table.keys) == 251


async def test_what_is_said_on_coming_back_comes_after_what_was_missed(table: Bench) -> None:
    """A live message waits until its chat's history was looked through."""

    async def meanwhile() -> None:
        await table.server.say(table.server.dm(), "missed")

    await table.restart(meanwhile)
    await table.server.say(table.server.dm(), "live")
    await table.until(lambda: len(table.keys) == 2)
    assert texts(table) == ["missed", "live"]


async def test_a_message_of_a_chat_never_heard_of_is_found(table: Bench) -> None:
    """A server's channel that heed has nothing from is looked through where something is new in it."""

    async def meanwhile() -> None:
        await table.server.say(table.server.text("601"), f"{MENTION} over here")

    await table.restart(meanwhile)
    await table.until(lambda: table.keys)
    assert texts(table) == ["over here"]


async def test_a_new_chat_is_found_where_something_newer_was_taken_elsewhere(table: Bench) -> None:
    """A heed that was killed may have taken the later of two messages and not the earlier one."""

    async def meanwhile() -> None:
        await table.server.say(table.server.text("601"), f"{MENTION} earlier", age_s=-0.1)
        newest = await table.server.say(table.server.dm(), "later", age_s=-0.2)
        data = {"author": newest["author"], "content": "later", "channel_id": "500", "id": newest["id"]}
        taken = message_row(CREATED, data, BOT["id"], is_private=True)
        assert taken is not None
        await table.take(taken)

    await table.restart(meanwhile)
    await table.until(lambda: len(table.keys) == 2)
    assert texts(table) == ["later", "earlier"]


async def test_a_chat_that_is_only_in_the_store_is_looked_through(table: Bench) -> None:
    """A private chat whose keys were pruned long ago is still known as somebody's conversation."""
    user = await table.database.write(lambda s: people.resolve(s, "discord", "111"))
    await table.database.write(lambda s: chats.resolve(s, user.id, "discord", "502"))

    async def meanwhile() -> None:
        await table.server.say(table.server.dm("502"), "anybody?")

    await table.restart(meanwhile)
    await table.until(lambda: table.keys)
    assert texts(table) == ["anybody?"]


async def test_missed_edits_are_taken_once(table: Bench) -> None:
    """An edit of a known message is an edit; a missed message that was edited since is only its last words."""
    known = next(iter(table.server.dm().messages.values()))

    async def meanwhile() -> None:
        await table.server.edit(known, "first, better")
        await table.server.edit(await table.server.say(table.server.dm(), "draft"), "final")

    await table.restart(meanwhile)
    await table.until(lambda: len(table.keys) == 3)
    assert [(type(said), said.text) for said in table.said if isinstance(said, MessageReceived | MessageEdited)] == [
        (MessageEdited, "first, better"),
        (MessageReceived, "final"),
    ]
    await table.restart()
    await table.settled()
    assert len(table.keys) == 3


@pytest.mark.parametrize(
    ("code", "words"), [(10008, "Unknown Message"), (10014, "Unknown Emoji"), (0, "404: Not Found")]
)
async def test_reactions_that_cannot_be_looked_up_cost_their_message_only(table: Bench, code: int, words: str) -> None:
    """The rest of what the chat missed is taken."""
    answer = table.server.dm().messages[await table.channel.post(Post(DM, "a llama"))]

    async def meanwhile() -> None:
        await table.server.say(table.server.dm(), "before")
        await table.server.react(answer, "👎")
        await table.server.say(table.server.dm(), "after")

    body = json.dumps({"message": words, "code": code}).encode()
    table.server.fail("GET", "/channels/500/messages/.*/reactions/.*", Fault(status=404, body=body))
    await table.restart(meanwhile)
    await table.settled()
    assert texts(table) == ["before", "after"]


async def test_missed_reactions_are_found_both_ways(table: Bench) -> None:
    """Emoji put on and taken off meanwhile are taken as such, once."""
    answer = table.server.dm().messages[await table.channel.post(Post(DM, "a llama"))]
    await table.server.react(answer, "👍")
    await table.until(lambda: table.keys)

    async def meanwhile() -> None:
        await table.server.react(answer, "👍", on=False)
        await table.server.react(answer, "👎")
        await table.server.react(answer, "🤖", user=BEN | {"bot": True})

    await table.restart(meanwhile)
    await table.until(lambda: len(table.keys) == 3)
    await table.settled()
    changes = [said for said in table.said if isinstance(said, ReactionChanged)][1:]
    assert {(said.added, said.removed) for said in changes} == {(("👎",), ()), ((), ("👍",))}
    assert {said.author.account for said in changes} == {ANA["id"]}
    await table.restart()
    await table.settled()
    assert len(table.keys) == 3


async def test_everything_off_is_found_too(table: Bench) -> None:
    """A message that shows no reaction any more had one: it was taken off."""
    answer = table.server.dm().messages[await table.channel.post(Post(DM, "a llama"))]
    await table.server.react(answer, "👍")
    await table.until(lambda: table.keys)

    async def meanwhile() -> None:
        await table.server.react(answer, "👍", on=False)

    await table.restart(meanwhile)
    await table.until(lambda: len(table.keys) == 2)
    assert table.keys[1].startswith("r:remove:")


async def test_what_is_older_than_a_day_is_left_alone(table: Bench) -> None:
    """Nobody wants an answer to what they said the day before yesterday."""

    async def meanwhile() -> None:
        await table.server.say(table.server.text("601"), f"{MENTION} long ago", age_s=DAY_S + 60)
        await table.server.say(table.server.text("601"), f"{MENTION} just now")

    await table.restart(meanwhile)
    await table.until(lambda: table.keys)
    await table.settled()
    assert texts(table) == ["just now"]


async def test_the_first_start_looks_at_no_history(quick_dir: Path) -> None:
    """What was said before heed ever listened was not said to it; what was missed after the first start is found."""
    async with bench(quick_dir, is_started=False) as table:
        await table.server.say(table.server.text(), f"{MENTION} before", age_s=3600.0)
        await table.start()
        await table.settled()
        assert table.keys == []

        async def meanwhile() -> None:
            await table.server.say(table.server.text(), f"{MENTION} after")

        await table.restart(meanwhile)
        await table.until(lambda: table.keys)
        assert texts(table) == ["after"]


async def test_a_history_heed_may_not_read_stops_nothing(table: Bench) -> None:
    """Where the history is forbidden or the server fails, live messages are taken all the same."""
    for fault in (Fault(status=503), Fault(status=200, body=b"[")):
        table.server.fail("GET", "/channels/500/messages", *[fault] * 3)
        await table.restart()
        message = await table.server.say(table.server.dm(), "live")
        await table.until(lambda message=message: f"m:{message['id']}" in table.keys)
    table.server.dm().messages["9" * 19] = {"id": "9" * 19, "content": "by nobody"}
    await table.restart()
    await table.server.say(table.server.dm(), "no access")
    table.server.dm().refusal = Refusal(403, NO_ACCESS, "Missing Access")
    await table.restart()
    await table.settled()
    table.server.dm().refusal = None
