"""bot.messaging.lesson_line: a lesson that takes its time says how far it is, and keeps nobody waiting."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bot.agent.service import AgentService
from bot.channel import Gone, SlowDown
from bot.events import ButtonPressed, CommandReceived, MessageReceived
from bot.messaging import lesson_line
from bot.messaging.dispatcher import Dispatcher
from bot.messaging.feedback_handler import FeedbackHandler
from bot.messaging.inbox import InboxWorker
from bot.messaging.outbox_item import OutboxItem
from bot.messaging.request import NOT_YOURS, ChatRequest
from storage.kinds import FeedbackStatus
from storage.learning import feedback
from tests.bot.fake_channel import ANA, BEN, HOME, FakeChannel, FakePlatform, Shown
from tests.bot.messaging.test_dispatcher import actions
from tests.bot.platform_rig import Rig, rig
from tests.patience import PATIENCE_S, until
from tests.storage.new_data_dir import copy_to


class Chat:
    """Ana's chat with a running heed, as a platform sees it."""

    def __init__(self, heed: Rig) -> None:
        self.heed = heed
        self.platform: FakePlatform = heed.channel.shown
        self.dispatcher = Dispatcher(
            heed.core, heed.outbox, {heed.channel.platform: heed.channel}, AgentService(heed.core)
        )
        self.worker = InboxWorker(heed.database, self.dispatcher.handle, heed.metrics, is_ours=lambda _: True)
        self.worker.open("telegram")
        self.num_updates = 0

    async def take(self, record: MessageReceived | ButtonPressed | CommandReceived) -> None:
        """An update arrives."""
        self.num_updates += 1
        await self.worker.take(self.heed.channel.update(record, str(self.num_updates)))

    async def say(self, text: str, reply_to: str | None = None) -> None:
        """Ana writes something."""
        await self.take(MessageReceived(ANA, HOME, f"m{self.num_updates}", text, reply_to))

    async def press(self, shown: Shown, action: str) -> None:
        """Ana presses a button."""
        assert action in actions(shown)
        await self.take(ButtonPressed(ANA, HOME, shown.message_id, action, "t"))

    async def shown(self, number: int) -> Shown:
        """The message of a number, once it is there."""
        await until(lambda: len(self.platform.messages) > number)
        return self.platform.messages[number]

    async def quiet(self) -> None:
        """Everything is handled and shown."""
        await until(lambda: self.worker.num_waiting == 0)
        await self.heed.shown()

    async def statuses(self) -> list[str]:
        """How Ana's feedback ended, oldest first."""
        user = await self.heed.gateway.known(ANA)
        rows = await self.heed.database.read(lambda s: feedback.history(s, user.id, 9))
        return [row.status for row in reversed(rows)]


@asynccontextmanager
async def chatting(data_dir: Path, platform: FakePlatform) -> AsyncIterator[Chat]:
    """A heed at work on a data directory."""
    async with rig(data_dir, FakeChannel(platform), access={"mode": "open"}) as heed:
        chat = Chat(heed)
        task = asyncio.create_task(chat.worker.run())
        try:
            yield chat
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await chat.worker.drain(0)


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line is shown soon, and edited often."""
    monkeypatch.setattr(lesson_line, "AFTER_S", 0.02)
    monkeypatch.setattr(lesson_line, "EDIT_S", 0.02)


@pytest.fixture
async def chat(tmp_path: Path) -> AsyncIterator[Chat]:
    """Ana has been greeted, has said yes, and has an answer about bees: the last of three messages."""
    copy_to(tmp_path / "data")
    async with chatting(tmp_path / "data", FakePlatform()) as chat:
        await prepared(chat)
        yield chat


async def prepared(chat: Chat) -> None:
    """Ana is known, learning is on, and the newest message is an answer."""
    await chat.say("hello")
    await chat.quiet()
    await chat.press(chat.platform.messages[0], "learn:yes")
    await chat.quiet()
    await chat.say("bees")
    await chat.quiet()


async def correct(chat: Chat, takes_s: float) -> Shown:
    """Ana corrects the last answer; the line about the lesson, once it is shown."""
    number = len(chat.platform.messages)
    chat.heed.engine.learn_delay_s = takes_s
    await chat.say("too long", chat.platform.messages[-1].message_id)
    line = await chat.shown(number)
    await until(lambda: line.rows != ())
    return line


async def test_the_line_grows_and_becomes_the_notice(chat: Chat) -> None:
    """One message: how far the lesson is, then what was learned, with undo in place of cancel; then the new answer."""
    engine = chat.heed.engine
    engine.lesson_share = 0.2
    line = await correct(chat, 2 * PATIENCE_S)
    assert actions(line) == ["cancel"]
    engine.lesson_share = 0.6
    await until(lambda: line.text.startswith("Learning: training, "))
    engine.finish_lessons()
    await chat.quiet()
    notice, again = chat.platform.messages[-2:]
    assert notice is line
    assert line.texts[0].startswith("Learning: writing examples, ")
    assert line.text.startswith("Learned: v1 in")
    assert "undo" in actions(line)
    assert again.text == "You asked about bees. 🙂 Would you like to know more?"
    await chat.press(line, "undo")
    await chat.quiet()
    assert chat.platform.messages[-1].text.startswith("Undone.")


async def test_a_quick_lesson_has_no_line(chat: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its notice comes at once."""
    monkeypatch.setattr(lesson_line, "AFTER_S", PATIENCE_S)
    number = len(chat.platform.messages)
    await chat.say("too long", chat.platform.messages[-1].message_id)
    await chat.quiet()
    assert not [text for text in chat.platform.messages[number].texts if text.startswith("Learning")]


async def test_the_next_answer_does_not_wait(chat: Chat) -> None:
    """What Ana asks while the lesson runs is answered while it runs."""
    line = await correct(chat, 2 * PATIENCE_S)
    number = len(chat.platform.messages)
    await chat.say("cats")
    await until(lambda: len(chat.platform.messages) > number and chat.platform.messages[-1].rows != ())
    assert chat.platform.messages[-1].text.startswith("You asked about cats.")
    assert line.text.startswith("Learning")


async def test_cancel_stops_the_lesson(chat: Chat) -> None:
    """The line says so and has no button any more; nothing is learned, and nothing is answered again."""
    line = await correct(chat, 2 * PATIENCE_S)
    number = len(chat.platform.messages)
    await chat.press(line, "cancel")
    await chat.quiet()
    assert (line.text, line.rows) == ("Cancelled. Nothing was learned from it.", ())
    assert await chat.statuses() == [FeedbackStatus.CANCELLED]
    assert len(chat.platform.messages) == number
    assert (await chat.heed.gateway.known(ANA)).active_version == 0


async def test_the_command_cancels_too(chat: Chat) -> None:
    """/cancel stops the newest lesson; without one it says what to do instead."""
    line = await correct(chat, 2 * PATIENCE_S)
    await chat.take(CommandReceived(ANA, HOME, "c1", "cancel"))
    await chat.quiet()
    assert line.text == "Cancelled. Nothing was learned from it."
    await chat.take(CommandReceived(ANA, HOME, "c2", "cancel"))
    await chat.quiet()
    assert "No lesson of yours waits or runs." in chat.platform.messages[-1].text


async def test_another_person_cannot_cancel(chat: Chat) -> None:
    """The button is Ana's."""
    line = await correct(chat, 2 * PATIENCE_S)
    await chat.take(ButtonPressed(BEN, HOME, line.message_id, "cancel", "b"))
    await until(lambda: len(chat.platform.notices) > 1)
    assert chat.platform.notices[-1][1] == NOT_YOURS
    assert await chat.statuses() == [FeedbackStatus.PENDING]


@pytest.mark.parametrize("refusal", [SlowDown("wait", 0.05), Gone("no such message")])
async def test_what_the_platform_refuses_costs_the_line_only(chat: Chat, refusal: Exception) -> None:
    """The lesson is learned and told."""
    engine = chat.heed.engine
    engine.lesson_share = 0.2
    line = await correct(chat, 2 * PATIENCE_S)
    chat.platform.failures["edit"].append(refusal)
    engine.lesson_share = 0.6
    await until(lambda: not chat.platform.failures["edit"])
    engine.finish_lessons()
    await chat.quiet()
    assert "Learned: v1 in" in "\n".join(chat.platform.texts())
    assert line in chat.platform.messages


async def test_a_lesson_that_ends_before_its_line_is_told_as_ended(chat: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    """Too late to be waited for and too soon for a line: the notice says what was learned, not that it will be."""
    looked_for, lessons = FeedbackHandler._notice, chat.heed.core.lessons

    async def slowly(handler: FeedbackHandler, request: ChatRequest, token: str) -> OutboxItem:
        chat.heed.engine.finish_lessons()
        await until(lambda: not lessons._tasks)
        return await looked_for(handler, request, token)

    monkeypatch.setattr(FeedbackHandler, "_notice", slowly)
    chat.heed.engine.learn_delay_s = 2 * PATIENCE_S
    number = len(chat.platform.messages)
    await chat.say("too long", chat.platform.messages[-1].message_id)
    assert (await chat.shown(number)).text.startswith("Learned: v1 in")


async def test_the_next_heed_goes_on_with_the_line(tmp_path: Path) -> None:
    """A heed that ends during a lesson leaves the line; the next one learns, and the line becomes the notice."""
    copy_to(tmp_path / "data")
    platform = FakePlatform()
    async with chatting(tmp_path / "data", platform) as first:
        await prepared(first)
        line = await correct(first, 20.0)
        await until(lambda: len(line.texts) > 1)  # its message is stored by now
    async with chatting(tmp_path / "data", platform) as second:
        await until(lambda: line.text.startswith("Learned: v1 in"))
        await second.quiet()
        assert await second.statuses() == [FeedbackStatus.LEARNED]
        assert [text for text in platform.texts() if text.startswith("Learning")] == []
