"""Tests of bot.platforms.discord.gateway: a connection that comes back, whatever happens to it."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from discord.gateway import DiscordWebSocket

from bot.channel import Post
from bot.events import MessageReceived, Place
from tests.bot.platforms.discord_bench import PACE, Bench, bench
from tests.patience import PATIENCE_S

DM = Place("discord", "500")


def texts(table: Bench) -> list[str]:
    """What was taken, in order."""
    return [said.text for said in table.said if isinstance(said, MessageReceived)]


async def test_a_lost_connection_is_resumed(table: Bench) -> None:
    """What was said while the line was dead comes with the resumed session; no new session is used up."""
    table.server.sockets.cut()
    await table.server.say(table.server.dm(), "into the dark")
    await table.until(lambda: table.keys)
    assert texts(table) == ["into the dark"]
    assert (len(table.server.sockets.identified), len(table.server.sockets.resumed)) == (1, 1)
    await table.until(lambda: table.channel.health() == "ok")
    assert table.channel.reconnects == 1


@pytest.mark.parametrize("frame", ['{"op": 7, "d": null}', '{"op": 9, "d": true}'])
async def test_discord_may_ask_for_a_new_connection(table: Bench, frame: str) -> None:
    """A request to reconnect is followed, and the session goes on."""
    await table.server.sockets.send_raw(frame)
    await table.until(lambda: table.server.sockets.resumed)
    await table.server.say(table.server.dm(), "hello")
    await table.until(lambda: table.keys)
    assert len(table.server.sockets.identified) == 1


async def test_a_session_that_cannot_be_resumed_begins_anew(table: Bench) -> None:
    """Where Discord forgot the session a new one begins, and what was missed is found in the history."""
    await table.server.say(table.server.dm(), "first")
    await table.until(lambda: table.keys)
    await table.settled()
    table.server.sockets.forget()
    await table.server.say(table.server.dm(), "nobody hears this")
    table.server.sockets.cut()
    await table.until(lambda: len(table.keys) == 2)
    assert texts(table) == ["first", "nobody hears this"]
    assert (len(table.server.sockets.identified), len(table.server.sockets.resumed)) == (2, 1)


async def test_a_server_that_was_away_is_found_again(table: Bench) -> None:
    """A server that goes down and comes back is connected to again, and health tells the time between."""
    await table.server.stop()
    await table.until(lambda: table.channel.health().startswith("reconnecting"))
    await table.server.start()
    await table.until(lambda: table.channel.health() == "ok")
    await table.server.say(table.server.dm(), "hello")
    await table.until(lambda: table.keys)


async def test_a_server_that_is_away_at_the_start_is_waited_for(quick_dir: Path) -> None:
    """Discord being down is no reason not to start; the channel connects when it is back."""
    async with bench(quick_dir, replace(PACE, start_s=0.1), is_started=False) as table:
        await table.server.stop()
        await table.start()
        assert table.channel.health() != "ok"
        await table.server.start()
        await table.until(lambda: table.channel.health() == "ok")


@pytest.mark.parametrize(
    ("event", "data"),
    [
        ("MESSAGE_REACTION_ADD", {"emoji": {"name": "x"}, "user_id": "111", "channel_id": "500", "message_id": "1"}),
        ("MESSAGE_REACTION_ADD", {}),
        ("MESSAGE_CREATE", {"id": "not a number"}),
        ("MESSAGE_CREATE", []),
        ("MESSAGE_CREATE", None),
        ("MESSAGE_UPDATE", {"id": "5"}),
        ("INTERACTION_CREATE", {"type": 3}),
        ("INTERACTION_CREATE", {"type": 3, "data": {"custom_id": 7}, "id": "1", "token": "t"}),
        ("MESSAGE_REACTION_REMOVE_ALL", {"channel_id": 5}),
        ("GUILD_CREATE", {"id": "x"}),
        ("NO_SUCH_EVENT", {"a": 1}),
    ],
)
async def test_a_malformed_event_is_skipped(table: Bench, event: str, data: object) -> None:
    """Nonsense costs nothing: the connection stays, and what comes after it arrives."""
    await table.server.sockets.send(event, data)
    await table.server.say(table.server.dm(), "still there?")
    await table.until(lambda: texts(table))
    assert table.channel.reconnects == 0


@pytest.mark.parametrize("frame", ["not json", "[1, 2]", '{"op": 0, "t": "READY", "d": {}}', '"'])
async def test_a_malformed_frame_costs_one_reconnect(table: Bench, frame: str) -> None:
    """What is no frame at all breaks the connection, never the process; nothing is lost."""
    await table.server.sockets.send_raw(frame)
    await table.server.say(table.server.dm(), "still there?")
    await table.until(lambda: texts(table))
    assert texts(table) == ["still there?"]
    await table.until(lambda: table.channel.health() == "ok")


async def test_heartbeats_are_sent_and_their_silence_is_told(quick_dir: Path) -> None:
    """Health is ok while Discord acknowledges heartbeats, and says since when it does not."""
    async with bench(quick_dir, replace(PACE, stale_s=0.5), is_started=False) as table:
        table.server.sockets.heartbeat_ms = 20
        await table.start()
        await table.until(lambda: table.server.sockets.heartbeats > 3)
        await table.until(lambda: table.channel.health() == "ok")
        table.server.sockets.is_deaf = True
        await table.until(lambda: table.channel.health().startswith("no heartbeat for"))
        assert (table.channel.heartbeat_age_s or 0.0) > 0.5


async def test_no_session_is_opened_where_none_is_left(quick_dir: Path) -> None:
    """Discord counts sessions and resets the token of who opens too many: heed waits until it may."""
    async with bench(quick_dir, replace(PACE, start_s=0.1), is_started=False) as table:
        table.server.sessions_left, table.server.sessions_back_ms = 0, 3_600_000
        await table.start()
        await table.until(lambda: "no new session" in table.channel.health())
        assert table.server.sockets.identified == []


@pytest.mark.parametrize(("code", "words"), [(4014, "Message Content Intent"), (4004, "token"), (4011, "sharding")])
async def test_what_cannot_get_better_ends_the_platform(table: Bench, code: int, words: str) -> None:
    """Some ways of closing mean that trying again is useless: the platform ends, with the reason in health."""
    await table.server.sockets.close(code)
    await table.until(lambda: words in table.channel.health())
    await table.channel.stop()
    assert len(table.server.sockets.identified) == 1


async def test_any_other_closing_is_survived(table: Bench) -> None:
    """Codes that mean "again, please" are followed, also the plain one."""
    for number, code in enumerate((4000, 4007, 4009, 1000, 1011), 1):
        await table.server.sockets.close(code)
        await table.until(lambda number=number: table.channel.reconnects >= number and table.channel.health() == "ok")
    await table.channel.post(Post(DM, "here"))


@pytest.mark.parametrize("turns", range(6))
async def test_an_end_as_the_connection_opens_is_one(
    quick_dir: Path, monkeypatch: pytest.MonkeyPatch, turns: int
) -> None:
    """However many turns of the loop later it comes: a cancellation that got lost would leave heed waiting for ever."""
    real, opened, may_go_on = DiscordWebSocket.from_client, asyncio.Event(), asyncio.Event()

    async def held(*args: Any, **options: Any) -> Any:
        ws = await real(*args, **options)
        opened.set()
        await may_go_on.wait()
        return ws

    monkeypatch.setattr(DiscordWebSocket, "from_client", held)
    async with bench(quick_dir, is_started=False) as table:
        starting = asyncio.create_task(table.start())
        await opened.wait()
        may_go_on.set()
        for _ in range(turns):
            await asyncio.sleep(0)
        await asyncio.wait_for(table.channel.stop(), PATIENCE_S)
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
