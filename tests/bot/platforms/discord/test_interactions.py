"""Tests of bot.platforms.discord.interactions; most of what they do is in test_discord."""

from dataclasses import replace

import pytest

from bot.channel import Button, Post, Unreachable
from bot.events import Place
from bot.platforms.discord import interactions
from tests.bot.platforms.discord_bench import Bench
from tests.contract.discord_server import Fault

DM = Place("discord", "500")
ORIGINAL = r"/webhooks/.*/@original"


async def token_of(table: Bench) -> str:
    """The token of the only interaction there was."""
    await table.until(lambda: table.keys)
    token: str = table.taken[-1].payload["data"]["token"]
    return token


async def test_an_answer_that_got_lost_is_given_once(table: Bench) -> None:
    """Editing the first answer a second time shows it once."""
    await table.server.command(table.server.dm(), "help")
    token = await token_of(table)
    table.server.fail("PATCH", ORIGINAL, Fault(status=503, is_done=True))
    with pytest.raises(Unreachable):
        await table.channel.post(Post(DM, "help", token=token))
    await table.channel.post(Post(DM, "help", token=token))
    assert table.server.said(table.server.dm()) == ["help"]


async def test_further_parts_follow_as_messages(table: Bench) -> None:
    """The first part is the answer itself, the next ones are ordinary messages with their nonce."""
    await table.server.command(table.server.dm(), "help")
    token = await token_of(table)
    for _ in range(2):
        for number in (1, 2):
            await table.channel.post(Post(DM, f"part {number}", token=token if number == 1 else "", nonce=f"n{number}"))
    assert "part 2" in table.server.said(table.server.dm())
    assert table.server.said(table.server.dm()).count("part 2") == 1


async def test_further_private_parts_take_nothing_away_after_a_restart(table: Bench) -> None:
    """Whoever shows the second part need not have shown the first: it follows to the asker alone."""
    given = await table.server.command(table.server.text(), "privacy")
    token = await token_of(table)
    post = Post(Place("discord", "600", is_private=False), "part 1", token=token, is_private=True)
    await table.channel.post(post)
    await table.restart()
    await table.channel.post(replace(post, text="part 2", number=1))
    assert table.server.said(table.server.text()) == ["part 1"]
    assert [part["content"] for part in given.follow_ups] == ["part 2"]


async def test_a_command_without_an_answer_is_ended(table: Bench) -> None:
    """Where there is nothing to say the waiting sign goes away; a notice replaces it."""
    given = await table.server.command(table.server.dm(), "help")
    token = await token_of(table)
    await table.channel.acknowledge(token)
    assert given.deleted
    table.taken.clear()
    given = await table.server.command(table.server.dm(), "help")
    await table.channel.acknowledge(await token_of(table), "not now")
    assert table.server.said(table.server.dm()) == ["not now"]


async def test_an_answered_command_is_not_taken_away(table: Bench) -> None:
    """Acknowledging after the answer leaves the answer."""
    given = await table.server.command(table.server.dm(), "help")
    token = await token_of(table)
    await table.channel.post(Post(DM, "help", token=token))
    await table.channel.acknowledge(token)
    assert not given.deleted


async def test_a_press_works_after_a_restart(table: Bench) -> None:
    """A button carries its action, and an interaction's token works for whoever runs the bot now."""
    answer = await table.channel.post(Post(DM, "a llama", ((Button("👍", "up"),),)))
    await table.restart()
    pressed = await table.server.press(table.server.dm().messages[answer], "up")
    token = await token_of(table)
    await table.restart()
    await table.channel.acknowledge(token, "thank you")
    assert [part["content"] for part in pressed.follow_ups] == ["thank you"]


async def test_what_is_remembered_is_bounded(table: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bot that runs for months does not keep every interaction it answered."""
    monkeypatch.setattr(interactions, "MAX_REMEMBERED", 2)
    for _ in range(4):
        table.taken.clear()
        await table.server.command(table.server.dm(), "help")
        await table.channel.post(Post(DM, "help", token=await token_of(table)))
    assert len(table.channel._interactions._finished) == 2
