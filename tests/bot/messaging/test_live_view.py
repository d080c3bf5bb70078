"""bot.messaging.live_view: the newest text wins, and nothing a platform does harms the answer."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from bot.channel import Channel, Gone, Limits, Post, SlowDown, Unreachable
from bot.messaging.live_view import CURSOR, AnswerView, LiveView
from bot.messaging.rate_limit import Limiter
from tests.bot.fake_channel import GROUP, HOME, FakeChannel, FakePlatform
from tests.patience import until


@pytest.fixture
def platform() -> FakePlatform:
    """Nothing shown yet."""
    return FakePlatform()


class Kept:
    """Remembers what was noted of a placeholder."""

    def __init__(self) -> None:
        self.ids: list[str] = []

    async def __call__(self, message_id: str) -> None:
        """Note it."""
        self.ids.append(message_id)


async def at_once() -> None:
    """Nothing is to be shown before."""


def live_text(
    channel: Channel,
    kept: Callable[[str], Any],
    *,
    place: Any = HOME,
    message_id: str = "",
    may_show: Callable[[], bool] = lambda: True,
) -> LiveView:
    """A live view that has begun."""
    post = Post(place, "", reply_to="5")
    view = AnswerView(channel, Limiter(channel.limits), post, 1, kept, at_once, may_show, message_id)
    live = LiveView(view)
    live.start()
    return live


async def test_a_placeholder_is_posted_once_and_then_edited(platform: FakePlatform) -> None:
    """Its id is noted as soon as it is known; the last text shown is the newest."""
    kept = Kept()
    live = live_text(FakeChannel(platform), kept)
    live.add("one")
    await until(lambda: platform.texts() == ["one" + CURSOR])
    live.add(" two")
    live.add(" three")
    await until(lambda: platform.texts() == ["one two three" + CURSOR])
    assert await live.finish() == kept.ids[0] == "1000"
    assert platform.messages[0].reply_to == "5"
    live.add(" four")
    await asyncio.sleep(0)
    assert platform.texts() == ["one two three" + CURSOR]


async def test_typing_is_shown_until_there_is_a_text(platform: FakePlatform) -> None:
    """Blank pieces are no text yet."""
    live = live_text(FakeChannel(platform), Kept())
    live.add(" ")
    await until(lambda: ("typing", HOME.external_id) in platform.calls)
    assert await live.finish() == ""
    assert platform.messages == []


async def test_nothing_more_is_shown_once_the_platform_is_anothers(platform: FakePlatform) -> None:
    """What was shown before stays."""
    is_ours = True
    live = live_text(FakeChannel(platform), Kept(), may_show=lambda: is_ours)
    live.add("one")
    await until(lambda: platform.texts() == ["one" + CURSOR])
    is_ours = False
    live.add(" two")
    await asyncio.sleep(0.1)
    assert await live.finish() == "1000"
    assert platform.texts() == ["one" + CURSOR]


async def test_drafts_are_used_where_there_are_any(platform: FakePlatform) -> None:
    """In private only; a draft has no message."""
    live = live_text(FakeChannel(platform, has_drafts=True), Kept())
    live.add("one")
    await until(lambda: platform.drafts == ["one"])
    assert await live.finish() == ""
    group = live_text(FakeChannel(platform, has_drafts=True), Kept(), place=GROUP)
    group.add("one")
    await until(lambda: len(platform.messages) == 1)
    assert await group.finish() == "1000"
    assert platform.drafts == ["one"]


async def test_an_earlier_placeholder_is_used_again(platform: FakePlatform) -> None:
    """No second one is posted."""
    channel = FakeChannel(platform)
    message_id = await channel.post(Post(HOME, "…"))
    live = live_text(channel, Kept(), message_id=message_id)
    live.add("one")
    await until(lambda: platform.texts() == ["one" + CURSOR])
    assert await live.finish() == message_id


@pytest.mark.parametrize("error", [Gone("blocked"), Unreachable("?", is_ambiguous=True), ValueError("a bug")])
async def test_a_platform_that_refuses_ends_the_view_only(platform: FakePlatform, error: Exception) -> None:
    """`finish` returns as always."""
    platform.failures["post"] = [error]
    live = live_text(FakeChannel(platform), Kept())
    live.add("one")
    await until(lambda: ("post", HOME.external_id) in platform.calls)
    assert await live.finish() == ""


async def test_a_wait_the_platform_asks_for_is_kept(platform: FakePlatform) -> None:
    """Nothing is sent meanwhile, and `finish` does not wait for it."""
    platform.failures["post"] = [SlowDown("slow", 600.0)]
    live = live_text(FakeChannel(platform), Kept())
    live.add("one")
    await until(lambda: ("post", HOME.external_id) in platform.calls)
    live.add(" two")
    assert await live.finish() == ""
    assert [name for name, _ in platform.calls].count("post") == 1


async def test_a_post_under_way_is_waited_for(platform: FakePlatform) -> None:
    """Its message would be left behind unknown otherwise."""
    channel = FakeChannel(platform)
    gate, has_begun = asyncio.Event(), asyncio.Event()
    post = channel.post

    async def slow_post(wanted: Post) -> str:
        has_begun.set()
        await gate.wait()
        return await post(wanted)

    channel.post = slow_post  # type: ignore[method-assign]
    kept = Kept()
    live = live_text(channel, kept)
    live.add("one")
    await has_begun.wait()
    finishing = asyncio.create_task(live.finish())
    await asyncio.sleep(0)
    gate.set()
    assert await finishing == "1000"
    assert kept.ids == ["1000"]


async def test_a_long_text_is_shown_as_its_first_part(platform: FakePlatform) -> None:
    """A placeholder always fits, cursor included."""
    live = live_text(FakeChannel(platform, limits=Limits(40, len, 0.0, 0.0, 9)), Kept())
    live.add("word " * 40)
    await until(lambda: len(platform.messages) == 1)
    await live.finish()
    assert len(platform.texts()[0]) <= 40
