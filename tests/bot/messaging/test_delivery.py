"""bot.messaging.delivery: what is complete goes out once, in one call, whatever becomes of the platform's reply."""

import asyncio
from collections.abc import Awaitable, Callable

from bot.channel import Limits, Post, Unreachable
from storage.conversations import message_roles
from tests.bot.fake_channel import ANA, HOME
from tests.bot.messaging.test_outbox import ANSWER, ROWS, StartRig, asked, start

__all__ = ["start"]

# No answer is written for so long that it is shown meanwhile.
QUICK = Limits(4096, len, 600.0, 0.0, 100, calls_per_s=1e9)


async def test_what_is_complete_goes_out_once(start: StartRig) -> None:
    """An answer that was quick, and a notice with buttons, take one call each."""
    async with start(limits=QUICK) as heed:
        turn, item, done = await asked(heed)
        await heed.outbox.answer(turn, item, done, Post(HOME, "", ROWS, newer_than="999"))
        await heed.outbox.say(Post(HOME, "Learned", ROWS), turn.user_id, role=message_roles.Role.LESSON, about="1")
        shown = await heed.shown()
    assert [name for name, _ in shown.calls if name in ("post", "edit")] == ["post", "post"]
    assert [message.rows for message in shown.messages] == [ROWS, ROWS]


async def test_a_post_whose_reply_was_lost_is_found_again(start: StartRig) -> None:
    """Also where an earlier heed made it and was killed: the answer is there once, and nothing else is changed."""
    async with start(limits=QUICK) as heed:
        user_id = await heed.gateway.person(ANA)
        heed.channel.shown.lost["post"] = [Unreachable("lost", is_ambiguous=True)]
        turn, item, done = await asked(heed)
        await heed.outbox.answer(turn, item, done, Post(HOME, "", ROWS, newer_than="999"))
        await heed.shown()
        has_begun = asyncio.Event()
        heed.channel.post = never_answered(heed.channel.post, has_begun)  # type: ignore[method-assign]
        await heed.outbox.say(Post(HOME, "Learned", ROWS), user_id, role=message_roles.Role.LESSON, about="1")
        await has_begun.wait()
    async with start(limits=QUICK) as heed:
        texts = (await heed.shown()).texts()
    assert len(texts) == 2
    assert texts[0].startswith(ANSWER)
    assert texts[1] == "Learned"


async def test_what_is_known_is_not_taken_for_a_lost_post(start: StartRig) -> None:
    """A post of which it is not known if it was made is looked for among messages that mean nothing to heed."""
    async with start(limits=QUICK) as heed:
        turn, item, done = await asked(heed)
        await heed.outbox.answer(turn, item, done, Post(HOME, "", ROWS, newer_than="999"))
        await heed.shown()
        heed.channel.shown.failures["post"] = [Unreachable("never came", is_ambiguous=True)]
        heed.outbox._delivery._newest.clear()
        notice = Post(HOME, "Learned", ROWS, newer_than="999")
        await heed.outbox.say(notice, turn.user_id, role=message_roles.Role.LESSON, about="1")
        texts = (await heed.shown()).texts()
    assert len(texts) == 2
    assert texts[0].startswith(ANSWER)
    assert texts[1] == "Learned"


def never_answered(
    post: Callable[[Post], Awaitable[str]], has_begun: asyncio.Event
) -> Callable[[Post], Awaitable[str]]:
    """A post that the platform makes and never answers."""

    async def posted(wanted: Post) -> str:
        await post(wanted)
        has_begun.set()
        return str(await asyncio.Event().wait())

    return posted
