"""The instant engine and the instant channel answer every call at once."""

import pytest

from bench.instant import ANSWER, InstantChannel, InstantEngine, update
from bot.channel import NotOffered, Post, SlowDown
from bot.events import MessageReceived, Place
from engine.requests import GenerateRequest, Sampling

HOME = Place("telegram", "7")


async def test_an_answer_comes_whole_and_its_moment_is_noted() -> None:
    """The last piece has the result."""
    engine = InstantEngine()
    request = GenerateRequest("u", [{"role": "user", "content": "7-1"}], Sampling(0.0, 1.0, 9))
    deltas = [delta async for delta in engine.generate(request)]
    assert "".join(delta.text for delta in deltas) == "".join(ANSWER)
    assert deltas[-1].result is not None
    assert engine.asked_s["7-1"] > 0


async def test_final_texts_are_counted() -> None:
    """Placeholders are not."""
    channel = InstantChannel()
    message_id = await channel.post(Post(HOME, "…"))
    await channel.edit(HOME, message_id, "".join(ANSWER))
    assert channel.shown == 1
    with pytest.raises(NotOffered):
        await channel.draft(HOME, 1, "x")


async def test_one_account_can_be_told_to_wait() -> None:
    """It alone, and nothing of it counts as shown."""
    channel = InstantChannel(slow_account="7")
    with pytest.raises(SlowDown):
        await channel.post(Post(HOME, "".join(ANSWER)))
    await channel.post(Post(Place("telegram", "8"), "".join(ANSWER)))
    await channel.until_shown_to(["8"])
    assert (channel.shown, set(channel.shown_s)) == (1, {"8"})


def test_an_update_reads_as_its_message() -> None:
    """From whom, where and what."""
    (said,) = InstantChannel().read(update(7, 1).payload)
    assert isinstance(said, MessageReceived)
    assert (said.author.account, said.place, said.text) == ("7", HOME, "7-1")
