"""feedback_handler: a lesson counts once, also where heed is killed between the lesson and its done mark."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.events import ButtonPressed, CommandReceived, MessageReceived, ReactionChanged
from bot.messaging.feedback_handler import CHIP_REASONS, CHIP_ROWS
from bot.messaging.inbox import Done
from storage.database import Session
from tests.bot.fake_channel import ANA, HOME, FakeChannel, FakePlatform, Shown
from tests.bot.fake_engine import EMOJI
from tests.bot.messaging.test_dispatcher import Counter
from tests.bot.platform_rig import rig
from tests.storage.new_data_dir import copy_to

COUNTED = ("correction", "chip", "undo", "down", "turn", "again", "note", "reaction", "worse")


class Killed(Done):
    """The done mark of a heed that is killed before the commit."""

    def __call__(self, s: Session) -> None:
        """Undo the transaction."""
        raise InterruptedError


@pytest.fixture
async def counter(tmp_path: Path) -> AsyncIterator[Counter]:
    """A dispatcher that may learn from Ana."""
    copy_to(tmp_path / "data")
    async with rig(tmp_path / "data", FakeChannel(FakePlatform())) as heed:
        counter = Counter(heed)
        await counter.say("hello")
        await counter.press(counter.platform.messages[0], "learn:yes")
        yield counter


@pytest.mark.parametrize("what", COUNTED)
async def test_what_was_cut_short_is_finished_once(counter: Counter, what: str) -> None:
    """Handled twice, the first time up to its last transaction: the same outcome as once."""
    (answer,) = await counter.say("bees")
    (question,) = await counter.press(answer, "down")
    notice, again = await counter.say("too long", reply_to=answer.message_id)
    known = await counter.feedback()
    records = {
        "correction": MessageReceived(ANA, HOME, "n", "no emoji, please", answer.message_id),
        "chip": ButtonPressed(ANA, HOME, question.message_id, "why:1", "t"),
        "undo": ButtonPressed(ANA, HOME, notice.message_id, "undo", "t"),
        "down": ButtonPressed(ANA, HOME, answer.message_id, "down", "t"),
        "turn": MessageReceived(ANA, HOME, "n", "cats"),
        "again": ButtonPressed(ANA, HOME, answer.message_id, "again", "t"),
        "worse": MessageReceived(ANA, HOME, "n", "it was better before", again.message_id),
        "note": CommandReceived(ANA, HOME, "n", "note", "my dog is Rex"),
        "reaction": ReactionChanged(ANA, HOME, answer.message_id, added=("👎",)),
    }
    expected = {  # messages, feedback, active version
        "correction": (2, 1, 2), "chip": (2, 1, 2), "undo": (1, 0, 0), "down": (1, 1, 1), "turn": (1, 0, 1),
        "again": (1, 0, 1), "note": (1, 1, 1), "reaction": (1, 1, 1), "worse": (2, 1, 0),
    }  # fmt: skip
    item = await counter.heed.take(counter.heed.channel.update(records[what], "cut"))
    before = len(counter.platform.messages)
    with pytest.raises(InterruptedError):
        await counter.dispatcher.handle(item, Killed(item.seq or 0))
    item.attempts = 1
    await counter.dispatcher.handle(item, Done(item.seq or 0))
    await counter.heed.shown()
    shown: list[Shown] = counter.platform.messages[before:]
    finals = [message for message in shown if not message.text.endswith(" …")]
    version = (await counter.heed.gateway.known(ANA)).active_version
    assert (len(finals), len(await counter.feedback()) - len(known), version) == expected[what]


async def test_answers_that_got_worse_take_the_lesson_back(counter: Counter) -> None:
    """A reason is asked for once; at the second thumb the person is told what was taken back, and answered again."""
    (answer,) = await counter.say("bees")
    _, again = await counter.say("no emoji", reply_to=answer.message_id)
    (asked,) = await counter.press(again, "down")
    assert asked.text == "What should be different?"
    (other,) = await counter.say("wasps")
    told, before = await counter.press(other, "down")
    assert told.text.startswith(
        "The last lesson (v1) is undone, because 2 of its first answers were disliked. The untrained model answers"
    )
    assert told.rows == ()
    assert EMOJI in before.text


async def test_words_without_a_wish_are_asked_about(counter: Counter) -> None:
    """Where no lesson is on probation, "go back" teaches nothing and the person is told of /undo."""
    (answer,) = await counter.say("bees")
    (asked,) = await counter.say("go back", reply_to=answer.message_id)
    assert "/undo takes back" in asked.text
    assert len(asked.rows) == len(CHIP_ROWS)


def test_every_chip_has_its_reason_but_the_last() -> None:
    """The last one asks for words."""
    actions = [button.action for row in CHIP_ROWS for button in row]
    assert actions == [f"why:{number}" for number in range(len(CHIP_REASONS) + 1)]


async def test_updates_are_limited_with_a_word(tmp_path: Path) -> None:
    """Above the limit nothing is learned, and the person is told when it is again."""
    copy_to(tmp_path / "data")
    access = {"mode": "open", "updates_per_hour": 1}
    async with rig(tmp_path / "data", FakeChannel(FakePlatform()), access=access) as heed:
        counter = Counter(heed)
        _, answer = await counter.say("bees")
        await counter.say("too long", reply_to=answer.message_id)
        (notice,) = await counter.say("no emoji", reply_to=answer.message_id)
        assert "which is the limit here" in notice.text
        assert len(await counter.feedback()) == 1


async def test_a_lesson_taken_up_again_is_counted_once(tmp_path: Path) -> None:
    """The last correction of an hour that a crash cut short is told as learned, not as one too many."""
    copy_to(tmp_path / "data")
    access = {"mode": "open", "updates_per_hour": 1}
    async with rig(tmp_path / "data", FakeChannel(FakePlatform()), access=access) as heed:
        counter = Counter(heed)
        _, answer = await counter.say("bees")
        await counter.press(counter.platform.messages[0], "learn:yes")
        item = await heed.take(
            heed.channel.update(MessageReceived(ANA, HOME, "n", "too long", answer.message_id), "cut")
        )
        with pytest.raises(InterruptedError):
            await counter.dispatcher.handle(item, Killed(item.seq or 0))
        await counter.dispatcher.handle(item, Done(item.seq or 0))
        await heed.shown()
        texts = [message.text for message in counter.platform.messages]
        assert not any("which is the limit here" in text for text in texts)
        assert any(text.startswith("Learned: v1") for text in texts)


async def test_the_two_buttons_of_a_notice(counter: Counter) -> None:
    """What was taught like that is only noted; the other choice undoes the lesson and teaches it again."""
    (answer,) = await counter.say("bees")
    notice, _ = await counter.say("too long", reply_to=answer.message_id)
    labels = [button.label for row in notice.rows for button in row]
    assert labels == ["undo", "Just this answer", "From now on"]
    _, just_this, from_now_on = (button.action for row in notice.rows for button in row)
    assert [shown.text for shown in await counter.press(notice, from_now_on)] == ["Noted. That is how it was learned."]
    told, again = await counter.press(notice, just_this)
    assert told.text.startswith("Learned: v2 in")
    assert again.text == "You asked about bees. 🙂 Would you like to know more?"
    assert [status for *_, status in await counter.feedback()] == ["undone", "learned"]


async def test_where_heed_is_unsure_it_asks_how_far(counter: Counter) -> None:
    """Nothing is taught; the next try is written with the words, the notice asks, and its button teaches."""
    (answer,) = await counter.say("bees")
    asked, again = await counter.say("unsure, too long", reply_to=answer.message_id)
    assert again.message_id != asked.message_id
    assert asked.text.endswith("Only this answer, or from now on?")
    ((_, always),) = asked.rows
    told, _ = await counter.press(asked, always.action)
    assert told.text.startswith("Learned: v1 in")


async def test_the_two_commands(counter: Counter) -> None:
    """/justthis and /fromnowon are about the newest correction; before there is one they say so."""
    (refused,) = await counter.command("justthis")
    assert refused.text == "You have corrected nothing yet."
    (answer,) = await counter.say("bees")
    await counter.say("too long", reply_to=answer.message_id)
    (noted,) = await counter.command("fromnowon")
    assert noted.text == "Noted. That is how it was learned."
    told, _ = await counter.command("justthis")
    assert told.text.startswith("Learned: v2 in")


async def test_a_notice_repeats_words_as_they_were_written(counter: Counter) -> None:
    """The marks in a person's wish are letters, also in what a lesson's notice says of it."""
    (answer,) = await counter.say("bees")
    for _ in range(2):
        notice, _ = await counter.say("2*3*4, __init__.py", reply_to=answer.message_id)
    assert notice.text == r"I already keep that in mind: 2\*3\*4, \_\_init\_\_.py."


async def test_a_number_means_the_same_note_however_often_it_is_handled(counter: Counter) -> None:
    """Killed between the deletion and its answer: the next note has the number by then, and stays."""
    for text in ("call me Ana", "my dog is Rex"):
        await counter.command("note", text)
    deletion = CommandReceived(ANA, HOME, "n", "notes", "delete 1")
    item = await counter.heed.take(counter.heed.channel.update(deletion, "deletion"))
    with pytest.raises(InterruptedError):
        await counter.dispatcher.handle(item, Killed(item.seq or 0))
    item.attempts = 1
    await counter.dispatcher.handle(item, Done(item.seq or 0))
    await counter.heed.shown()
    assert counter.platform.texts()[-1] == "Deleted: call me Ana"
    (listed,) = await counter.command("notes")
    assert "my dog is Rex" in listed.text
