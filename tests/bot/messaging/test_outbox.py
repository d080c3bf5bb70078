"""bot.messaging.outbox: said once, in order, whatever the platform does and whenever heed ends."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from bot.channel import Button, Gone, Limits, Post, Refused, SlowDown, Unreachable
from bot.core.gateway import Turn
from bot.errors import NotReady
from bot.messaging.inbox import AlreadyDone, Done
from bot.messaging.live_view import CURSOR
from bot.messaging.outbox_item import OutboxItem
from engine.errors import AdapterLoadError, ConversationRefused, EngineRestarting, PromptTooLongError
from storage.conversations import completions, inbox, message_roles, outbox
from storage.errors import DatabaseLost
from storage.kinds import OutboxState
from storage.people import erasure
from storage.tables import Inbox
from tests.bot.fake_channel import ANA, BEN, HOME, FakeChannel, FakePlatform
from tests.bot.platform_rig import Rig, rig
from tests.patience import until
from tests.storage import rows
from tests.storage.new_data_dir import copy_to

ROWS = ((Button("👍", "up"),),)
ANSWER = "You asked about bees. It is a fine subject with many sides"
OTHER = type(HOME)("telegram", "12")

StartRig = Callable[..., AbstractAsyncContextManager[Rig]]


@pytest.fixture
def start(tmp_path: Path) -> StartRig:
    """Starts a core on the same data directory and platform each time."""
    copy_to(tmp_path / "data")
    shown = FakePlatform()

    def started(limits: Limits | None = None, **options: Any) -> AbstractAsyncContextManager[Rig]:
        return rig(tmp_path / "data", FakeChannel(shown, limits=limits), **options)

    return started


class Held:
    """A way to wait that takes until it is let go, and then as long as it was asked for."""

    def __init__(self) -> None:
        self.let_go = asyncio.Event()

    async def sleep(self, wait_s: float) -> None:
        """Wait."""
        await self.let_go.wait()
        await asyncio.sleep(wait_s)


@pytest.fixture
async def heed(start: StartRig) -> AsyncIterator[Rig]:
    """A running core."""
    async with start() as running:
        yield running


async def asked(heed: Rig, text: str = "bees") -> tuple[Turn, Inbox, Done]:
    """A turn, and the update that asked for it."""
    user_id = await heed.gateway.person(ANA)
    item = await heed.take(rows.inbox(f"u-{text}", HOME.external_id))
    chat = await heed.gateway.chat(user_id, HOME)
    turn = Turn(user_id, [{"role": "user", "content": text}], heed.gateway.sampling(), chat.id)
    return turn, item, Done(item.seq or 0)


async def until_edited(heed: Rig) -> None:
    """Wait until an answer is shown as far as it is held, and then edited; its last word is held."""
    messages = heed.channel.shown.messages
    await until(lambda: messages)
    heed.engine.go_on(hold_at=-1)
    await until(lambda: len(messages[0].texts) > 1)


async def test_an_answer_is_shown_and_stored_and_its_update_done(heed: Rig) -> None:
    """The message that shows it has the buttons, and leads back to the stored turn."""
    turn, item, done = await asked(heed)
    completion = await heed.outbox.answer(turn, item, done, Post(HOME, "", ROWS, reply_to="5"))
    shown = (await heed.shown()).messages
    assert completion is not None
    assert [message.text for message in shown] == [completion.text]
    assert (shown[0].rows, shown[0].reply_to) == (ROWS, "5")
    found = await heed.database.read(
        lambda s: completions.by_message(s, "telegram", "11", shown[0].message_id, user_id=turn.user_id)
    )
    assert found.id == completion.id
    assert await heed.database.read(inbox.num_waiting) == 0


async def test_an_answer_is_live(heed: Rig) -> None:
    """While it is written its placeholder grows; the final text has no cursor."""
    heed.engine.hold_at = 4
    turn, item, done = await asked(heed)
    task = asyncio.create_task(heed.outbox.answer(turn, item, done, Post(HOME, "", ROWS)))
    await until_edited(heed)
    heed.engine.go_on()
    await task
    (message,) = (await heed.shown()).messages
    assert len(message.texts) > 2
    assert all(text.endswith(CURSOR) for text in message.texts[:-1])
    assert not message.text.endswith(CURSOR)


async def test_thoughts_are_never_shown(heed: Rig) -> None:
    """Neither while the answer is written nor at its end; its tokens are kept."""
    heed.engine.token_delay_s, heed.engine.thoughts = 0.01, "They want bees."
    turn, item, done = await asked(heed)
    completion = await heed.outbox.answer(turn, item, done, Post(HOME, "", ROWS))
    (message,) = (await heed.shown()).messages
    assert completion is not None
    assert len(completion.completion_token_ids) > len(completion.text.split())
    assert not any("They want" in text for text in message.texts)


async def test_an_answer_that_was_given_before_changes_nothing(heed: Rig) -> None:
    """The stored turn, what is shown and the done mark are one transaction."""
    turn, item, done = await asked(heed)
    await heed.database.write(lambda s: inbox.mark_done(s, item.seq or 0))
    with pytest.raises(AlreadyDone):
        await heed.outbox.answer(turn, item, done, Post(HOME, "", ROWS))
    assert await heed.database.read(lambda s: completions.recent(s, turn.user_id, 9)) == []
    assert heed.outbox.num_waiting == 0


async def test_a_long_answer_has_several_messages(start: StartRig) -> None:
    """The first answers, the last has the buttons, and each leads to the stored turn."""
    async with start(limits=Limits(40, len, 0.0, 0.0, 100, calls_per_s=1e9)) as heed:
        turn, item, done = await asked(heed)
        await heed.outbox.answer(turn, item, done, Post(HOME, "", ROWS, reply_to="5"))
        shown = (await heed.shown()).messages
        assert len(shown) > 2
        assert [message.reply_to for message in shown][:2] == ["5", None]
        assert [message.rows for message in shown][-2:] == [(), ROWS]
        for message in shown:
            await heed.database.read(
                lambda s, m=message: completions.by_message(s, "telegram", "11", m.message_id, user_id=turn.user_id)
            )


async def test_a_restart_edits_the_same_placeholder(start: StartRig) -> None:
    """An answer cut short by a crash is given again in the message that was begun."""
    async with start() as heed:
        heed.engine.hold_at = 4
        turn, item, done = await asked(heed)
        task = asyncio.create_task(heed.outbox.answer(turn, item, done, Post(HOME, "", ROWS)))
        await until_edited(heed)  # its id is noted before it is edited
        kept = await heed.database.read(lambda s: outbox.get(s, f"answer-{item.seq}"))
        assert kept is not None
        assert kept.state == OutboxState.DRAFT
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    async with start() as heed:
        item.attempts = 1
        await heed.outbox.answer(turn, item, Done(item.seq or 0), Post(HOME, "", ROWS))
        (message,) = (await heed.shown()).messages
        assert message.text.startswith(ANSWER)


async def test_what_was_stored_and_not_shown_is_shown_by_the_next_heed(start: StartRig) -> None:
    """A final text survives a crash between its transaction and the platform."""
    async with start() as heed:
        heed.channel.shown.failures["post"] = [Unreachable("down", is_ambiguous=False)] * 50
        turn, item, done = await asked(heed)
        await heed.outbox.answer(turn, item, done, Post(HOME, "", ROWS))
        assert heed.outbox.num_waiting == 1
    heed.channel.shown.failures["post"].clear()
    async with start() as heed:
        (message,) = (await heed.shown()).messages
        assert message.text.startswith(ANSWER)


async def test_what_is_shown_while_a_platform_opens_is_not_shown_again(
    start: StartRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reading that looks for unshown messages may be older than the moment it is used."""
    async with start() as heed:
        user_id = await heed.gateway.person(ANA)
        await heed.outbox.say(Post(HOME, "hello"), user_id, "greeting")
        await heed.shown()
        stale = await heed.database.read(lambda s: outbox.get(s, "greeting"))
        assert stale is not None
        stale.state = OutboxState.WAITING
        stale.payload = OutboxItem.of_post(Post(HOME, "hello"), user_id, "greeting").row().payload
        monkeypatch.setattr(outbox, "waiting", lambda _: [stale])
        await heed.outbox.open(HOME.platform)
        assert (await heed.shown()).texts() == ["hello"]


async def test_what_is_said_at_once_is_not_read_again(start: StartRig, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was stored a moment ago; a message that waited behind it is read once."""
    read, get, held = [], outbox.get, Held()
    monkeypatch.setattr(outbox, "get", lambda s, outbox_id: (read.append(outbox_id), get(s, outbox_id))[1])
    async with start(sleep=held.sleep) as heed:
        user_id = await heed.gateway.person(ANA)
        heed.channel.shown.failures["post"] = [SlowDown("slow", 0.1)]
        await heed.outbox.say(Post(HOME, "hello"), user_id, "first")
        await heed.outbox.say(Post(HOME, "again"), user_id, "second")
        held.let_go.set()
        assert (await heed.shown()).texts() == ["hello", "again"]
    assert read == ["second"]


async def test_what_waits_for_a_person_who_is_erased_is_not_shown(start: StartRig) -> None:
    """It stood behind another person's message in the same chat."""
    held = Held()
    async with start(sleep=held.sleep) as heed:
        user_id = await heed.gateway.person(BEN)
        heed.channel.shown.failures["post"] = [SlowDown("slow", 0.1)]
        await heed.outbox.say(Post(HOME, "to Ana"), await heed.gateway.person(ANA))
        await heed.outbox.say(Post(HOME, "to Ben"), user_id)
        await erasure.forget_person(heed.database, user_id)
        held.let_go.set()
        assert (await heed.shown()).texts() == ["to Ana"]


async def test_nothing_is_given_up_while_the_database_is_away(start: StartRig) -> None:
    """However often it cannot be noted what was shown, the rest is shown once it can."""
    async with start(sleep=lambda _: asyncio.sleep(0)) as heed:
        heed.channel.shown.failures["post"] = [DatabaseLost("gone")] * 10
        user_id = await heed.gateway.person(ANA)
        await heed.outbox.say(Post(HOME, "hello"), user_id)
        assert (await heed.shown()).texts() == ["hello"]


@pytest.mark.parametrize("has_nonces", [True, False])
async def test_a_final_text_is_not_doubled_by_a_lost_reply(start: StartRig, *, has_nonces: bool) -> None:
    """The platform did it and the reply was lost: with nonces nothing is doubled, without one placeholder more is."""
    limits = Limits(4096, len, 0.0, 0.0, 100, calls_per_s=1e9, has_nonces=has_nonces)
    async with start(limits=limits, sleep=lambda _: asyncio.sleep(0)) as heed:
        platform = heed.channel.shown
        platform.lost["post"] = [Unreachable("lost", is_ambiguous=True)] * 2
        turn, item, done = await asked(heed)
        await heed.outbox.answer(turn, item, done, Post(HOME, "", ROWS))
        texts = (await heed.shown()).texts()
    assert len([text for text in texts if text.startswith(ANSWER) and not text.endswith(CURSOR)]) == 1
    if has_nonces:
        assert len(texts) == 1


async def test_messages_of_a_chat_come_in_order(start: StartRig) -> None:
    """One that has to wait holds up those behind it, and no other chat."""
    held = Held()
    async with start(sleep=held.sleep) as heed:
        user_id = await heed.gateway.person(ANA)
        platform = heed.channel.shown
        platform.failures["post"] = [SlowDown("slow", 0.1)]
        for number in range(3):
            await heed.outbox.say(Post(HOME, str(number)), user_id)
        await heed.outbox.say(Post(OTHER, "other"), user_id)
        await until(lambda: platform.texts() == ["other"])
        held.let_go.set()
        await heed.shown()
        assert platform.texts() == ["other", "0", "1", "2"]


async def test_a_message_is_said_once_however_often_it_is_queued(heed: Rig) -> None:
    """The same key is the same message, before and after it was shown."""
    for _ in range(3):
        await heed.outbox.say(Post(HOME, "learned"), None, "learned-1")
    await heed.shown()
    await heed.outbox.say(Post(HOME, "learned"), None, "learned-1")
    assert (await heed.shown()).texts() == ["learned"]


async def test_what_a_message_is_for_is_kept(heed: Rig) -> None:
    """A notice about something learned leads to the version."""
    user_id = await heed.gateway.person(ANA)
    await heed.outbox.say(Post(HOME, "Learned: v3"), user_id, role=message_roles.Role.LESSON, about="3")
    (message,) = (await heed.shown()).messages
    role = await heed.database.read(lambda s: message_roles.find(s, user_id, "telegram", "11", message.message_id))
    assert role is not None
    assert (role.role, role.about) == ("lesson", "3")


@pytest.mark.parametrize("error", [Gone("blocked"), Refused("malformed")])
async def test_what_the_platform_never_takes_is_given_up(heed: Rig, error: Exception) -> None:
    """The chat goes on with the next message."""
    heed.channel.shown.failures["post"] = [error]
    await heed.outbox.say(Post(HOME, "first"), None, "first")
    await heed.outbox.say(Post(HOME, "second"), None)
    assert (await heed.shown()).texts() == ["second"]
    given_up = await heed.database.read(lambda s: outbox.get(s, "first"))
    assert given_up is not None
    assert (given_up.state, given_up.payload) == (OutboxState.DEAD, {})


async def test_a_bug_in_a_channel_does_not_stop_the_chat(start: StartRig) -> None:
    """An error nobody planned for is tried again, and then given up."""
    async with start(sleep=lambda _: asyncio.sleep(0)) as heed:
        heed.channel.shown.failures["post"] = [ValueError("bug")] * 3
        await heed.outbox.say(Post(HOME, "first"), None)
        await heed.outbox.say(Post(HOME, "second"), None)
        assert (await heed.shown()).texts() == ["second"]


@pytest.mark.parametrize("has_nonces", [True, False])
async def test_a_placeholder_that_is_gone_is_replaced(start: StartRig, *, has_nonces: bool) -> None:
    """Somebody deleted it: the answer comes in a new message, also where a nonce would find the deleted one."""
    limits = Limits(4096, len, 0.0, 0.0, 100, calls_per_s=1e9, has_nonces=has_nonces)
    async with start(limits=limits) as heed:
        heed.engine.hold_at = 4
        turn, item, done = await asked(heed)
        task = asyncio.create_task(heed.outbox.answer(turn, item, done, Post(HOME, "", ROWS)))
        await until(lambda: bool(heed.channel.shown.messages))
        failures = heed.channel.shown.failures["edit"] = [Gone("deleted")] * 2
        heed.engine.go_on(hold_at=-1)
        await until(lambda: len(failures) == 1)
        heed.engine.go_on()
        await task
        shown = (await heed.shown()).messages
        assert len(shown) == 2
        assert shown[-1].text.startswith(ANSWER)


@pytest.mark.parametrize("error", [NotReady("starting"), EngineRestarting("again")])
async def test_an_engine_that_is_not_there_is_for_another_try(heed: Rig, error: Exception) -> None:
    """Nothing is said and nothing is done."""
    heed.engine.failure = error
    turn, item, done = await asked(heed)
    with pytest.raises(type(error)):
        await heed.outbox.answer(turn, item, done, Post(HOME, "", ROWS))
    assert await heed.database.read(inbox.num_waiting) == 1
    assert (await heed.shown()).texts() == []


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (PromptTooLongError("1234 tokens, shorten it"), "1234 tokens"),
        (ConversationRefused("roles must alternate"), "refuses this conversation: roles must alternate"),
        (ConversationRefused("no *system* role"), r"no \*system\* role"),
        (AdapterLoadError("v3"), "could not answer"),
    ],
)
async def test_a_question_that_cannot_be_answered_gets_a_word(heed: Rig, error: Exception, words: str) -> None:
    """The person is told what to do, there is nothing to press, and the update is done."""
    heed.engine.failure = error
    turn, item, done = await asked(heed)
    assert await heed.outbox.answer(turn, item, done, Post(HOME, "", ROWS)) is None
    (message,) = (await heed.shown()).messages
    assert words in message.text
    assert message.rows == ()
    assert await heed.database.read(inbox.num_waiting) == 0


async def test_an_answer_waits_for_what_was_said_before(heed: Rig) -> None:
    """A notice comes before the answer that follows it, even where the platform made the notice wait."""
    user_id = await heed.gateway.person(BEN)
    heed.channel.shown.failures["post"] = [SlowDown("slow", 0.05)]
    await heed.outbox.say(Post(HOME, "learned"), user_id)
    turn, item, done = await asked(heed)
    await heed.outbox.answer(turn, item, done, Post(HOME, "", ROWS))
    texts = (await heed.shown()).texts()
    assert texts[0] == "learned"
    assert len(texts) == 2
