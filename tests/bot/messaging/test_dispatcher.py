"""bot.messaging.dispatcher: what arrives from a platform means the right thing, for the right person, once."""

from collections.abc import AsyncIterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from bot.agent.service import AgentService
from bot.core.scope_choice import NOT_THE_NEWEST
from bot.events import (
    Author,
    ButtonPressed,
    ChatMigrated,
    CommandReceived,
    FormSubmitted,
    Inbound,
    MessageEdited,
    MessageReceived,
    Place,
    ReactionChanged,
)
from bot.messaging.dispatcher import Dispatcher
from bot.messaging.feedback_handler import ALREADY_TAKEN_BACK
from bot.messaging.inbox import AlreadyDone, Done
from bot.messaging.request import NOT_YOURS
from storage.conversations import chats, completions
from storage.kinds import ConsentChoice, FeedbackStatus
from storage.learning import feedback as stored
from storage.people import consent
from tests.bot.fake_channel import ANA, BEN, GROUP, HOME, FakeChannel, FakePlatform, Shown
from tests.bot.fake_engine import EMOJI
from tests.bot.platform_rig import Rig, rig
from tests.storage.new_data_dir import copy_to

SHORT = "too long"


class Counter:
    """At a dispatcher: what people do, one thing after the other."""

    def __init__(self, heed: Rig) -> None:
        self.heed = heed
        self.dispatcher = Dispatcher(
            heed.core, heed.outbox, {heed.channel.platform: heed.channel}, AgentService(heed.core)
        )
        heed.core.access.when_paired.append(self.dispatcher.let_in)
        self.num_updates = 0
        self.num_messages = 0

    @property
    def platform(self) -> FakePlatform:
        """What is shown."""
        return self.heed.channel.shown

    async def do(self, record: Inbound, times: int = 1) -> list[Shown]:
        """Handle what somebody did, as often as a crash makes it; the messages that came of it."""
        self.num_updates += 1
        before = len(self.platform.messages)
        item = await self.heed.take(self.heed.channel.update(record, str(self.num_updates)))
        for attempt in range(times):
            item.attempts = attempt
            await self.dispatcher.handle(item, Done(item.seq or 0))
        await self.heed.shown()
        return self.platform.messages[before:]

    async def say(self, text: str, *, author: Author = ANA, place: Place = HOME, **fields: Any) -> list[Shown]:
        """A message."""
        self.num_messages += 1
        return await self.do(MessageReceived(author, place, f"m{self.num_messages}", text, **fields))

    async def command(self, name: str, argument: str = "", *, author: Author = ANA, **fields: Any) -> list[Shown]:
        """A command."""
        self.num_messages += 1
        return await self.do(CommandReceived(author, HOME, f"m{self.num_messages}", name, argument, **fields))

    async def press(self, shown: Shown, action: str, author: Author = ANA) -> list[Shown]:
        """A press on a message's button."""
        assert action in [button.action for row in shown.rows for button in row]
        return await self.do(ButtonPressed(author, shown.place, shown.message_id, action, f"t{self.num_updates}"))

    async def user_id(self, author: Author = ANA) -> str:
        """The person's id."""
        return (await self.heed.gateway.known(author)).id

    async def feedback(self) -> list[tuple[str, str, str]]:
        """What Ana has said about answers, oldest first."""
        user_id = await self.user_id()
        rows = await self.heed.database.read(lambda s: stored.history(s, user_id, 99))
        return [(row.kind, row.text, row.status) for row in reversed(rows)]


@pytest.fixture
async def counter(tmp_path: Path) -> AsyncIterator[Counter]:
    """A dispatcher that has met nobody."""
    copy_to(tmp_path / "data")
    async with rig(tmp_path / "data", FakeChannel(FakePlatform())) as heed:
        yield Counter(heed)


@pytest.fixture
async def ana(counter: Counter) -> Counter:
    """A dispatcher that Ana has told to learn from her."""
    await counter.say("hello")
    await counter.press(counter.platform.messages[0], "learn:yes")
    return counter


def actions(shown: Shown) -> list[str]:
    """The buttons of a message."""
    return [button.action for row in shown.rows for button in row]


async def test_the_first_contact_asks_for_consent_and_answers(counter: Counter) -> None:
    """The greeting comes first, with its two buttons, and only once; learning is off."""
    greeting, answer = await counter.say("bees")
    assert actions(greeting) == ["learn:yes", "learn:no"]
    assert answer.text.startswith("You asked about bees")
    assert actions(answer) == ["up", "down", "fix", "again"]
    assert len(await counter.say("cats")) == 1
    assert not (await counter.heed.gateway.known(ANA)).is_learning


async def test_yes_turns_learning_on_and_is_kept(ana: Counter) -> None:
    """With the person's own press."""
    user_id = await ana.user_id()
    step = await ana.heed.database.read(lambda s: consent.newest(s, user_id))
    assert step is not None
    assert step.choice == ConsentChoice.YES
    assert (await ana.heed.gateway.known(ANA)).is_learning


async def test_a_conversation_goes_on(ana: Counter) -> None:
    """Earlier turns are what the model sees."""
    await ana.say("bees")
    await ana.say("cats")
    said = [message["content"] for message in ana.heed.engine.requests[-1].messages if message["role"] == "user"]
    assert said == ["hello", "bees", "cats"]


async def test_a_reply_to_an_answer_corrects_it(ana: Counter) -> None:
    """A notice with an undo, then the new answer; pressing undo brings the old behaviour back."""
    (answer,) = await ana.say("bees")
    notice, better = await ana.say(SHORT, reply_to=answer.message_id)
    assert notice.text.startswith("Learned: v1 in")
    assert len(better.text) < len(answer.text)
    assert actions(better) == ["up", "down", "fix", "again"]
    (undone,) = await ana.press(notice, "undo")
    assert undone.text.startswith("Undone. The untrained model")
    (again,) = await ana.say("bees")
    assert again.text == answer.text


async def test_say_it_like_this_is_the_ideal_answer(ana: Counter) -> None:
    """The rewritten answer is what is learned."""
    (answer,) = await ana.say("bees")
    _, better = await ana.say("say it like this: Bees!", reply_to=answer.message_id)
    assert better.text == "Bees!"
    assert (await ana.feedback())[-1][:2] == ("ideal", "Bees!")


async def test_an_edited_correction_is_a_newer_one(ana: Counter) -> None:
    """Other changed messages mean nothing."""
    (answer,) = await ana.say("bees")
    await ana.say(SHORT, reply_to=answer.message_id)
    notice, _ = await ana.do(MessageEdited(ANA, HOME, f"m{ana.num_messages}", "no emoji, please"))
    assert notice.text.startswith("Learned: v2")
    assert [text for _, text, _ in await ana.feedback()] == [SHORT, "no emoji, please"]
    assert await ana.do(MessageEdited(ANA, HOME, "m1", "other words")) == []


@pytest.mark.parametrize("text", ["/feedback no emoji, please", "/Feedback\nno emoji, please"])
async def test_an_edited_feedback_command_is_a_newer_correction(ana: Counter, text: str) -> None:
    """Its words without the command's name."""
    await ana.say("bees")
    await ana.command("feedback", SHORT)
    notice, _ = await ana.do(MessageEdited(ANA, HOME, f"m{ana.num_messages}", text))
    assert notice.text.startswith("Learned: v2")
    assert (await ana.feedback())[-1][1] == "no emoji, please"


async def test_a_thumb_down_asks_for_a_reason(ana: Counter) -> None:
    """A chip is the reason; what is learned is about the answer that was pressed."""
    (answer,) = await ana.say("bees")
    (question,) = await ana.press(answer, "down")
    assert actions(question) == [f"why:{number}" for number in range(5)]
    notice, better = await ana.press(question, "why:0")
    assert notice.text.startswith("Learned")
    assert len(better.text) < len(answer.text)


async def test_another_reason_is_asked_for_in_words(ana: Counter) -> None:
    """The reply to the question is the reason."""
    (answer,) = await ana.say("bees")
    (question,) = await ana.press(answer, "down")
    (asked,) = await ana.press(question, "why:4")
    notice, better = await ana.say("no emoji, please", reply_to=asked.message_id)
    assert notice.text.startswith("Learned")
    assert EMOJI not in better.text


async def test_correct_asks_for_words(ana: Counter) -> None:
    """As a reply on Telegram, as a form on Discord."""
    (answer,) = await ana.say("bees")
    (asked,) = await ana.press(answer, "fix")
    assert (await ana.say(SHORT, reply_to=asked.message_id))[0].text.startswith("Learned: v1")
    notice, _ = await ana.do(FormSubmitted(ANA, HOME, answer.message_id, "fix", "no emoji, please", "t"))
    assert notice.text.startswith("Learned: v2")
    assert [text for _, text, _ in await ana.feedback()] == [SHORT, "no emoji, please"]


async def test_a_thumb_up_is_gold_until_it_is_taken_back(ana: Counter) -> None:
    """By button or reaction; nothing is said in the chat."""
    (answer,) = await ana.say("bees")
    user_id = await ana.user_id()

    async def is_gold() -> bool:
        found = await ana.heed.database.read(
            lambda s: completions.by_message(s, "telegram", "11", answer.message_id, user_id=user_id)
        )
        return found.is_gold

    assert await ana.press(answer, "up") == []
    assert ana.platform.notices[-1][1]
    assert await is_gold()
    await ana.do(ReactionChanged(ANA, HOME, answer.message_id, removed=("👍",)))
    assert not await is_gold()
    await ana.do(ReactionChanged(ANA, HOME, answer.message_id, added=("❤️",)))
    assert await is_gold()
    (question,) = await ana.do(ReactionChanged(ANA, HOME, answer.message_id, added=("👎🏽",), removed=("❤️",)))
    assert actions(question)[0] == "why:0"
    assert not await is_gold()


async def test_what_is_found_fault_with_is_gold_no_more(ana: Counter) -> None:
    """A thumb down, or a correction, after a thumb up: gates do not hold that answer any longer."""
    (answer,) = await ana.say("bees")
    user_id = await ana.user_id()
    for fault in (
        ButtonPressed(ANA, HOME, answer.message_id, "down", "t"),
        MessageReceived(ANA, HOME, "n", SHORT, answer.message_id),
        CommandReceived(ANA, HOME, "n", "feedback", "no emoji, please", answer.message_id),
    ):
        await ana.press(answer, "up")
        assert await gold(ana, user_id)
        await ana.do(fault)
        assert not await gold(ana, user_id)


async def gold(counter: Counter, user_id: str) -> list[str]:
    """The ids of the answers that count as approved."""
    known = await counter.heed.database.read(lambda s: completions.recent(s, user_id, 99))
    return [answer.id for answer in known if answer.is_gold]


async def test_again_answers_differently_in_a_new_message(ana: Counter) -> None:
    """The new answer takes the place of the old one in the conversation."""
    (answer,) = await ana.say("bees")
    (other,) = await ana.press(answer, "again")
    assert other.text.endswith(answer.text)
    await ana.say("cats")
    seen = [message["content"] for message in ana.heed.engine.requests[-1].messages]
    assert other.text in seen
    assert answer.text not in seen


async def test_only_the_asker_may_press_correct_and_react(ana: Counter) -> None:
    """Others are told, or ignored, and nothing is learned."""
    (answer,) = await ana.say("bees", place=GROUP)
    (question,) = await ana.press(answer, "down")
    await ana.say("hello", author=BEN)
    for shown, action in (
        (answer, "up"),
        (answer, "again"),
        (question, "why:0"),
        (ana.platform.messages[0], "learn:no"),
    ):
        assert await ana.press(shown, action, BEN) == []
        assert ana.platform.notices[-1][1] == NOT_YOURS
    assert await ana.do(ReactionChanged(BEN, GROUP, answer.message_id, added=("👎",))) == []
    (reply,) = await ana.say(SHORT, author=BEN, place=GROUP, reply_to=answer.message_id)
    assert reply.text.startswith("You asked about too long")
    assert [kind for kind, _, _ in await ana.feedback()] == ["reaction"]
    assert (await ana.heed.gateway.known(ANA)).is_learning


async def test_bystanders_stay_unknown(ana: Counter) -> None:
    """Whoever reacts to another person's answer, or presses there, is told where a press waits, and is not kept."""
    (answer,) = await ana.say("bees", place=GROUP)
    assert await ana.do(ReactionChanged(BEN, GROUP, answer.message_id, added=("👍",))) == []
    assert await ana.press(answer, "up", BEN) == []
    assert await ana.do(FormSubmitted(BEN, GROUP, answer.message_id, "fix", "shorter", "form")) == []
    assert [notice for _, notice in ana.platform.notices[-2:]] == [NOT_YOURS] * 2
    assert await ana.user_id(BEN) == ""


async def test_in_groups_heed_answers_when_addressed_and_to_whom(ana: Counter) -> None:
    """What people say to each other is not read; the answer replies to the question."""
    assert await ana.say("psst", place=GROUP, is_addressed=False) == []
    (answer,) = await ana.say("bees", place=GROUP)
    assert answer.reply_to == f"m{ana.num_messages}"
    (private,) = await ana.say("bees")
    assert private.reply_to is None


async def test_an_old_notice_takes_back_nothing(ana: Counter) -> None:
    """Its button undoes its own lesson, or nothing."""
    (answer,) = await ana.say("bees")
    old, _ = await ana.say(SHORT, reply_to=answer.message_id)
    await ana.say("no emoji, please", reply_to=answer.message_id)
    (said,) = await ana.press(old, "undo")
    assert said.text == NOT_THE_NEWEST
    assert (await ana.heed.gateway.known(ANA)).active_version == 2


async def test_an_undo_that_is_pressed_twice_says_so(ana: Counter) -> None:
    """The first press takes the button away; one that was on its way says that the lesson is taken back."""
    (answer,) = await ana.say("bees")
    notice, _ = await ana.say(SHORT, reply_to=answer.message_id)
    pressed = ButtonPressed(ANA, HOME, notice.message_id, "undo", "t")
    (first,) = await ana.do(pressed)
    assert first.text.startswith("Undone")
    assert notice.rows == ()
    (second,) = await ana.do(pressed)
    assert second.text == ALREADY_TAKEN_BACK
    await ana.say("no emoji, please", reply_to=answer.message_id)
    (third,) = await ana.do(pressed)
    assert third.text == ALREADY_TAKEN_BACK
    assert (await ana.heed.gateway.known(ANA)).active_version == 2


async def test_ones_own_old_buttons_after_forgetting(ana: Counter) -> None:
    """The person who asked and had all of it erased is not told of another person."""
    (answer,) = await ana.say("bees")
    await ana.command("forget", "everything")
    assert await ana.press(answer, "up") == []
    await ana.say("hello")
    assert await ana.press(answer, "up") == []
    assert all("heed has erased what they belong to" in notice for _, notice in ana.platform.notices[-2:])


async def test_commands_of_the_chat(ana: Counter) -> None:
    """Feedback, note, retry and undo work on the newest answer, the others come from the table."""
    (answer,) = await ana.say("bees")
    notice, better = await ana.command("feedback", SHORT)
    assert notice.text.startswith("Learned: v1")
    assert len(better.text) < len(answer.text)
    assert (await ana.command("note", "call me Ana"))[0].text == "Noted: call me Ana"
    assert (await ana.command("retry"))[0].text
    assert (await ana.command("undo"))[0].text.startswith("Undone")
    assert "/feedback" in (await ana.command("help"))[0].text
    assert "There is no command /nonsense" in (await ana.command("nonsense"))[0].text
    assert "no answer in this conversation yet" in (await ana.command("retry", author=BEN))[-1].text


@pytest.mark.parametrize("name", ["help", "metrics", "versions"])
async def test_columns_are_letters_of_one_width(ana: Counter, name: str) -> None:
    """Each command whose answer has columns shows a block of code, and any other one does not."""
    (said,) = await ana.command(name)
    assert (said.text[:4], said.text[-4:]) == ("```\n", "\n```")
    (said,) = await ana.command("privacy")
    assert "```" not in said.text


async def test_feedback_by_command_that_holds_already_says_so(ana: Counter) -> None:
    """It is no second lesson."""
    (answer,) = await ana.say("bees")
    for _ in range(2):
        told, _ = await ana.command("feedback", SHORT, reply_to=answer.message_id)
    assert told.text == f"I already keep that in mind: {SHORT}."
    assert ana.heed.engine.num_learned == 1


async def test_forgetting_asks_and_then_erases(ana: Counter) -> None:
    """The person is told, and heed meets them anew."""
    (question,) = await ana.command("forget")
    (kept,) = await ana.press(question, "forget:no")
    assert kept.text == "Nothing was erased."
    (erased,) = await ana.press(question, "forget:yes")
    assert erased.text == "Everything about you is erased."
    assert await ana.user_id() == ""
    greeting, _ = await ana.say("hello")
    assert actions(greeting) == ["learn:yes", "learn:no"]


async def test_without_consent_a_correction_is_a_note(counter: Counter) -> None:
    """It is followed at once, and nothing is trained."""
    _, answer = await counter.say("bees")
    _, better = await counter.say(SHORT, reply_to=answer.message_id)
    assert len(better.text) < len(answer.text)
    assert counter.heed.engine.num_learned == 0
    assert [status for _, _, status in await counter.feedback()] == [FeedbackStatus.KEPT]


@pytest.mark.parametrize("what", ["turn", "correction", "down", "chip", "undo", "again", "note", "delete", "up"])
async def test_an_update_handled_again_does_nothing_twice(ana: Counter, what: str) -> None:
    """Killed after everything was said and before heed knew: no second turn, lesson, notice or undo."""
    (answer,) = await ana.say("bees")
    (question,) = await ana.press(answer, "down")
    notice, _ = await ana.say(SHORT, reply_to=answer.message_id)
    await ana.command("note", "call me Ana")
    pressed = {
        "down": (answer, "down"),
        "chip": (question, "why:1"),
        "undo": (notice, "undo"),
        "again": (answer, "again"),
    }
    said = {
        "turn": MessageReceived(ANA, HOME, "n", "cats"),
        "correction": MessageReceived(ANA, HOME, "n", "no emoji, please", answer.message_id),
        "note": CommandReceived(ANA, HOME, "n", "note", "my dog is Rex"),
        "delete": CommandReceived(ANA, HOME, "n", "notes", "delete 1"),
        "up": ButtonPressed(ANA, HOME, answer.message_id, "up", "t"),
    }
    record = said.get(what)
    if record is None:
        shown, action = pressed[what]
        record = ButtonPressed(ANA, HOME, shown.message_id, action, "t")
    ana.num_updates += 1
    item = await ana.heed.take(ana.heed.channel.update(record, "again"))
    before = len(ana.platform.messages)
    await ana.dispatcher.handle(item, Done(item.seq or 0))
    await ana.heed.shown()
    after = (len(ana.platform.messages), await ana.feedback(), (await ana.heed.gateway.known(ANA)).active_version)
    item.attempts = 1
    with nullcontext() if what == "up" else pytest.raises(AlreadyDone):
        await ana.dispatcher.handle(item, Done(item.seq or 0))
    await ana.heed.shown()
    assert (
        len(ana.platform.messages),
        await ana.feedback(),
        (await ana.heed.gateway.known(ANA)).active_version,
    ) == after
    assert len(ana.platform.messages) > before or what == "up"


@pytest.mark.parametrize("argument", ["delete 9", "delete x", "delete", "delete 0", "delete -1", "delete ²"])
async def test_a_note_that_is_not_there_is_answered(ana: Counter, argument: str) -> None:
    """Deleting marks its update done before, and the error is said all the same."""
    await ana.command("note", "call me Ana")
    (said,) = await ana.command("notes", argument)
    assert "note" in said.text
    assert len((await ana.command("notes"))[0].text.splitlines()) == 2


async def test_strangers_get_a_code_and_nothing_else(tmp_path: Path) -> None:
    """By pairing: their words are not processed; once let in they are told."""
    copy_to(tmp_path / "data")
    async with rig(tmp_path / "data", FakeChannel(FakePlatform()), access={"mode": "pair"}) as heed:
        counter = Counter(heed)
        (notice,) = await counter.say("bees")
        code = notice.text.partition("Your code is ")[2][:8]
        assert await counter.user_id() == ""
        assert heed.engine.requests == []
        await heed.core.access.pair(code, "operator")
        platform = await heed.shown()
        assert platform.texts()[-1].startswith("You are in")
        assert len(await counter.say("bees")) == 2


@pytest.mark.parametrize("text", ["x" * 1_000_000, "\n" * 100_000 + "x", "nul \x00", "\ud800 half"])
async def test_what_cannot_be_taken_gets_a_word(ana: Counter, text: str) -> None:
    """Too long, or no text at all: a clear answer, and the next message works."""
    shown = await ana.say(text)
    assert len(shown) == 1
    assert "The text has" in shown[0].text
    assert (await ana.say("bees"))[0].text.startswith("You asked about bees")


async def test_every_press_is_acknowledged(ana: Counter) -> None:
    """Also one with a made-up action under any message of heed's: a platform shows that it waits until then."""
    (answer,) = await ana.say("bees")
    (question,) = await ana.press(answer, "down")
    notice, _ = await ana.press(question, "why:0")
    for number, shown in enumerate((ana.platform.messages[0], answer, question, notice)):
        for action in ("nonsense", "why", "up:", "\u202e"):
            token = f"{number}{action}"
            await ana.do(ButtonPressed(ANA, HOME, shown.message_id, action, token))
            assert token in [acknowledged for acknowledged, _ in ana.platform.notices]


@pytest.mark.parametrize(
    "record",
    [
        ReactionChanged(ANA, HOME, "999", added=("👎",)),
        ButtonPressed(ANA, HOME, "999", "up", "t"),
        FormSubmitted(ANA, HOME, "999", "fix", "words", "t"),
        MessageEdited(ANA, HOME, "999", "words"),
    ],
)
async def test_what_points_at_nothing_is_harmless(ana: Counter, record: Inbound) -> None:
    """A message heed never sent, or that is gone: silence, or a word to whoever pressed."""
    assert await ana.do(record) == []
    assert await ana.feedback() == []


async def test_a_group_that_becomes_a_supergroup_keeps_its_conversation(ana: Counter) -> None:
    """Its new id has the old turns."""
    new = Place("telegram", "-100", is_private=False)
    await ana.say("bees", place=GROUP)
    await ana.do(ChatMigrated(GROUP, new))
    await ana.say("cats", place=new)
    assert "bees" in [message["content"] for message in ana.heed.engine.requests[-1].messages]
    assert GROUP.external_id not in await ana.heed.database.read(lambda s: chats.places(s, "telegram", 9))


async def test_malformed_updates_say_nothing(ana: Counter) -> None:
    """The inbox is not held up."""
    row = ana.heed.channel.update(MessageReceived(ANA, HOME, "x", "bees"), "odd")
    row.payload = {"odd": True}
    item = await ana.heed.take(row)
    await ana.dispatcher.handle(item, Done(item.seq or 0))
    assert len(await ana.say("bees")) == 1
