"""bot.messaging.work_handler: work in a folder from a private chat, each call after a yes."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from bot.account_settings import AccessSettings
from bot.agent.live_session import LiveSession
from bot.agent.service import AgentService
from bot.agent.workspace_notes import NOTED
from bot.events import Author, ButtonPressed, CommandReceived, FormSubmitted, Inbound, MessageReceived, Place
from bot.messaging import work_handler, work_texts
from bot.messaging.dispatcher import Dispatcher
from bot.messaging.inbox import AlreadyDone, Done
from bot.messaging.request import NOT_YOURS
from storage.conversations import inbox
from storage.people import people
from storage.tables import Inbox
from tests.bot.agent.minds import piece
from tests.bot.agent.repositories import make_repository
from tests.bot.agent.workspaces import USER, can_run, folder, names, put
from tests.bot.fake_channel import ANA, BEN, GROUP, HOME, FakeChannel, FakePlatform, Shown
from tests.bot.platform_rig import Rig, rig
from tests.patience import until
from tests.storage.new_data_dir import copy_to

__all__ = ["can_run", "folder"]


class Worker:
    """A chat of Ana's with a heed that lets her work in a folder."""

    def __init__(self, heed: Rig) -> None:
        self.heed = heed
        self.agents = AgentService(heed.core)
        self.dispatcher = Dispatcher(heed.core, heed.outbox, {heed.channel.platform: heed.channel}, self.agents)
        self.number = 0

    async def do(self, record: Inbound, times: int = 1) -> list[Shown]:
        """Handle what somebody did, as often as a crash makes it; the messages that came of it."""
        before = len(self.heed.channel.shown.messages)
        item = await self.heed.take(self.heed.channel.update(record, f"{id(self)}-{self.number}"))
        self.number += 1
        for attempt in range(times):
            item.attempts = attempt
            try:
                await self.dispatcher.handle(item, Done(item.seq or 0))
            except AlreadyDone:
                continue
        await self.heed.shown()
        return self.heed.channel.shown.messages[before:]

    async def command(self, text: str, author: Author = ANA, place: Place = HOME, times: int = 1) -> list[Shown]:
        """A slash command."""
        name, _, argument = text.partition(" ")
        return await self.do(CommandReceived(author, place, str(self.number), name, argument), times)

    async def say(self, text: str, reply_to: str | None = None, times: int = 1) -> list[Shown]:
        """A message of Ana's."""
        return await self.do(MessageReceived(ANA, HOME, f"m{self.number}", text, reply_to), times)

    async def press(self, shown: Shown, label: str, author: Author = ANA, times: int = 1) -> list[Shown]:
        """A press on a button by its label."""
        action = next(button.action for row in shown.rows for button in row if button.label == label)
        return await self.do(ButtonPressed(author, HOME, shown.message_id, action, "t"), times)

    def will_call(self, tool: str, **arguments: Any) -> None:
        """From now on every answer calls this."""
        self.heed.engine.calls = [piece(tool, json.dumps(arguments))]

    async def live(self) -> LiveSession:
        """The work in the chat."""
        found = await self.agents.at(await self.heed.gateway.person(ANA), "telegram/11")
        assert found is not None
        return found


def settings(folder: Path) -> dict[str, Any]:
    """Ana may work in the folder; Ben may not."""
    agent = {"folders": (folder,), "account": USER, "scratch": folder.parent / "scratch", "allow": ("telegram:11",)}
    return {"agent": agent}


@pytest.fixture
async def chat(tmp_path: Path, folder: Path, can_run: None) -> AsyncIterator[Worker]:
    """A heed that has greeted Ana, and works in the folder with her."""
    copy_to(tmp_path / "data")
    async with rig(tmp_path / "data", FakeChannel(FakePlatform()), **settings(folder)) as heed:
        worker = Worker(heed)
        await worker.say("hello")
        user_id = await heed.gateway.person(ANA)
        await heed.database.write(lambda s: people.set_learning(s, user_id, True))
        (begun,) = await worker.command("work work")
        assert begun.text.startswith("Say what is to be done in work.")
        yield worker
        await worker.agents.close()


async def test_a_call_is_a_card_and_runs_once_after_a_yes(chat: Worker, folder: Path) -> None:
    """However often the updates are handled; the buttons go, and the agent goes on."""
    put(folder, "a.txt", "one\n")
    chat.will_call("write", path="a.txt", content="two\n")
    (card,) = await chat.say("Write two.", times=3)
    assert card.text.startswith("May I use write?")
    assert "-one\n+two" in card.text
    assert (folder / "a.txt").read_text() == "one\n"
    chat.heed.engine.calls = []
    ran, said = await chat.press(card, "Yes", times=2)
    assert ran.text.startswith("✓ write a.txt")
    assert said.text
    assert (folder / "a.txt").read_text() == "two\n"
    assert card.rows == ()
    (late,) = await chat.press(Shown(HOME, card.message_id, [card.text], work_texts.FAILED_ROWS), "other …")
    assert late.text == work_texts.NOT_WAITING


async def test_a_no_with_a_reason_is_learned(chat: Worker) -> None:
    """By a button, in words behind "other", or in reply to the card; without a word nothing is."""
    chat.will_call("bash", command="rm -r .")
    (card,) = await chat.say("Clean up.")
    learned, again = await chat.press(card, "read first")
    assert learned.text.startswith("Learned: v1")
    (question,) = await chat.press(again, "other …")
    assert question.text.startswith("What was wrong?")
    learned, again = await chat.say("Never delete.", question.message_id)
    assert learned.text.startswith("Learned: v2")
    learned, again = await chat.say("Ask me first.", again.message_id)
    assert learned.text.startswith("Learned: v3")
    assert await chat.press(again, "No") == []
    assert (await chat.live()).status == "idle"
    assert chat.heed.engine.num_learned == 3


async def test_where_heed_is_unsure_how_far_a_no_reaches_it_says_how_to_say_it(chat: Worker) -> None:
    """By a command, which is learned."""
    chat.will_call("bash", command="rm -r .")
    (card,) = await chat.say("Clean up.")
    asked, _ = await chat.say("unsure, ask me first", card.message_id)
    assert asked.text.endswith("Only this answer, or from now on? /justthis or /fromnowon says so.")
    (learned,) = await chat.command("fromnowon")  # and no answer to the call once more
    assert learned.text.startswith("Learned: v1")
    assert chat.heed.engine.num_learned == 1


async def test_a_note_about_the_folder_is_kept_or_deleted_once(chat: Worker) -> None:
    """However often the update is handled: the next note has the number of the one that is gone."""
    await chat.command("work here Two spaces.", times=2)
    await chat.command("work here Uses Poetry.")
    (deleted,) = await chat.command("work here delete 1", times=3)
    assert deleted.text == "Deleted: Two spaces."
    assert (await chat.command("work here"))[-1].text == "1. Uses Poetry."


async def test_lessons_are_told_of_the_work(chat: Worker) -> None:
    """Where there is work, and something to tell."""
    assert (await chat.command("work tell"))[-1].text == work_texts.TELL_WHAT
    assert (await chat.command("work tell It uses Poetry."))[-1].text == work_texts.TOLD
    assert (await chat.live()).session.state.told == ["It uses Poetry."]
    assert (await chat.command("work here Two spaces."))[-1].text == NOTED
    assert (await chat.command("work here"))[-1].text == "1. Two spaces."
    assert (await chat.live()).session.here == ["Two spaces."]
    await chat.command("work off")
    assert (await chat.command("work tell It uses Poetry."))[-1].text == work_texts.NO_WORK


async def test_a_form_is_as_a_reply(chat: Worker) -> None:
    """Where a platform has forms."""
    chat.will_call("bash", command="ls")
    (card,) = await chat.say("Look.")
    learned, again = await chat.do(FormSubmitted(ANA, HOME, card.message_id, "words", "Use glob.", "t"))
    assert (learned.text[:12], again.text[:14]) == ("Learned: v1 ", "May I use bash")


async def test_other_arguments_come_as_a_reply(chat: Worker, folder: Path) -> None:
    """They are learned and wait for a yes; the old card's buttons run nothing."""
    chat.will_call("write", path="a.txt", content="one\n")
    (card,) = await chat.say("Write one.")
    learned, changed = await chat.say('{"path": "b.txt", "content": "one\\n"}', card.message_id)
    assert learned.text.startswith("Learned: v1")
    assert changed.text.startswith("May I use write? (with your changes)")
    (late,) = await chat.press(card, "Yes")
    assert (late.text, names(folder)) == (work_texts.NOT_WAITING, set())
    chat.heed.engine.calls = []
    await chat.press(changed, "Yes")
    assert names(folder) == {"b.txt"}
    chat.will_call("write", path="c.txt", content="x")
    (card,) = await chat.say("Write x.")
    wrong, card = await chat.say('{"path": 3}', card.message_id)
    assert "path" in wrong.text
    assert card.text.startswith("May I use write?")


async def test_a_failure_can_be_taught(chat: Worker) -> None:
    """Or the agent sees it."""
    chat.will_call("read", path="none")
    (card,) = await chat.say("Read it.")
    ran, failed = await chat.press(card, "Yes")
    assert (ran.text[:6], failed.text) == ("✗ read", work_texts.FAILED)
    learned, card = await chat.press(failed, "it cannot work")
    assert learned.text.startswith("Learned: v1")
    _, failed = await chat.press(card, "Yes, read from now on")
    chat.heed.engine.calls = []
    (said,) = await chat.press(failed, "let it see that")
    assert (bool(said.text), chat.heed.engine.num_learned) == (True, 1)


async def test_a_card_outlives_heed(chat: Worker, tmp_path: Path, folder: Path) -> None:
    """Its buttons work in the next one, and /work shows it again."""
    chat.will_call("write", path="a.txt", content="one\n")
    (card,) = await chat.say("Write one.")
    await chat.agents.close()
    async with rig(tmp_path / "data", chat.heed.channel, **settings(folder)) as heed:
        later = Worker(heed)
        begun, again = await later.command("work")
        assert (begun.text[:12], again.text) == ("Say what is ", card.text)
        await later.press(card, "Yes")
        assert names(folder) == {"a.txt"}
        await later.agents.close()


async def test_the_repository_is_said(chat: Worker, folder: Path) -> None:
    """Where work begins, and where it is asked how it stands."""
    make_repository(folder)
    put(folder, "b.txt", "x")
    for command in ("work work", "work"):
        (begun,) = await chat.command(command)
        assert begun.text.replace("\\", "").startswith("Say what is to be done in work (main, 1 changed file).")


async def test_a_question_of_yesterday_runs_nothing(
    chat: Worker, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is a no without a word."""
    chat.will_call("bash", command="touch a")
    (card,) = await chat.say("Touch it.")
    monkeypatch.setattr(work_handler, "ANSWERED_FOR_S", 0.0)
    (late,) = await chat.press(card, "Yes")
    assert (late.text, names(folder), (await chat.live()).status) == (work_texts.TOO_OLD, set(), "idle")
    assert chat.heed.engine.num_learned == 0


async def test_only_whom_the_operator_allows_and_whom_it_belongs_to(chat: Worker, folder: Path) -> None:
    """Another person neither begins work nor presses; groups have none."""
    refused = (await chat.command("work work", BEN, Place("telegram", "12")))[-1]
    assert "HEED_AGENT_ALLOW" in refused.text.replace("\\", "")
    chat.will_call("bash", command="touch a")
    (card,) = await chat.say("Touch it.")
    await chat.press(card, "Yes", BEN)
    assert chat.heed.channel.shown.notices[-1][1] == NOT_YOURS
    assert names(folder) == set()
    shown = await chat.command("work work", ANA, GROUP)
    assert shown[-1].text == work_texts.IN_PRIVATE
    (unknown,) = await chat.command("work etc")
    assert "You can work in: work, or" in unknown.text
    assert (await chat.live()).status == "waiting"  # a slip of the pen ends nothing


async def test_an_account_that_is_not_allowed_any_more_can_only_end_its_work(
    chat: Worker, tmp_path: Path, folder: Path
) -> None:
    """What it says reaches no agent until then, and is an ordinary conversation after that."""
    chat.will_call("bash", command="ls")
    await chat.agents.close()
    changed = settings(folder)
    changed["agent"]["allow"] = ("telegram:12",)
    async with rig(tmp_path / "data", chat.heed.channel, **changed) as heed:
        later = Worker(heed)
        later.will_call("bash", command="ls")
        (refused,) = await later.say("Look.")
        assert "HEED_AGENT_ALLOW" in refused.text.replace("\\", "")
        assert (await later.live()).status == "idle"
        (left,) = await later.command("work off")
        assert left.text == work_texts.LEFT
        heed.engine.calls = []
        (answer,) = await later.say("bees")
        assert answer.rows
        await later.agents.close()


async def test_a_message_is_counted_once(chat: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one in an ordinary conversation is: the first was said before the work."""
    monkeypatch.setattr(chat.heed.core.access, "_settings", AccessSettings(mode="open", messages_per_hour=3))
    for text in ("one", "two"):
        assert "limit" not in (await chat.say(text))[-1].text
    assert "which is the limit here" in (await chat.say("three"))[-1].text


async def test_lessons_about_calls_are_counted(chat: Worker, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By button and in words alike; a yes and a no without a word are none."""
    monkeypatch.setattr(chat.heed.core.access, "_settings", AccessSettings(mode="open", updates_per_hour=1))
    chat.will_call("bash", command="touch a")
    (card,) = await chat.say("Touch it.")
    _, again = await chat.press(card, "read first")
    (by_button,) = await chat.press(again, "wrong file")
    (in_words,) = await chat.say("Never.", again.message_id)
    assert all("1 lesson in an hour" in shown.text for shown in (by_button, in_words))
    assert chat.heed.engine.num_learned == 1
    chat.heed.engine.calls = []
    await chat.press(again, "Yes")
    assert names(folder) == {"a"}


@pytest.mark.parametrize("command", ["work off", "work scratch"])
async def test_a_card_of_work_that_was_left_runs_nothing(chat: Worker, folder: Path, command: str) -> None:
    """Its question is no longer open, though the session still has it."""
    chat.will_call("bash", command="touch a")
    (card,) = await chat.say("Touch it.")
    await chat.command(command)
    (late,) = await chat.press(card, "Yes")
    (words,) = await chat.say("Never.", card.message_id)
    assert (late.text, words.text, names(folder)) == (work_texts.NOT_WAITING, work_texts.NOT_WAITING, set())
    assert chat.heed.engine.num_learned == 0


async def test_a_card_about_a_failure_is_about_that_one(chat: Worker) -> None:
    """Not about the next call that fails."""
    chat.will_call("read", path="none")
    old = ""
    for _ in range(2):
        (card,) = await chat.say("Read it.")
        _, failed = await chat.press(card, "Yes")
        old = old or failed.message_id
    (late,) = await chat.press(Shown(HOME, old, [work_texts.FAILED], work_texts.FAILED_ROWS), "it cannot work")
    assert (late.text, chat.heed.engine.num_learned) == (work_texts.NOT_WAITING, 0)
    learned, _ = await chat.press(failed, "it cannot work")
    assert learned.text.startswith("Learned: v1")


async def test_where_nothing_can_run_the_remedy_is_said(chat: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    """And what was done here goes on."""
    monkeypatch.setattr("bot.agent.sandbox.BUBBLEWRAP", "no-such-program")
    (refused,) = await chat.command("work scratch")
    assert "apt install bubblewrap" in refused.text
    assert (await chat.live()).workspace == "work"


async def test_a_running_tool_is_stopped_from_the_chat(chat: Worker, folder: Path) -> None:
    """The chat goes on while it runs; what was broken off is told to the agent."""
    chat.will_call("bash", command="touch begun; sleep 4728")
    (card,) = await chat.say("Wait.")
    running = asyncio.create_task(chat.press(card, "Yes"))
    await until((folder / "begun").exists)
    stopped = await chat.command("stop")
    assert work_texts.STOPPED in [shown.text for shown in stopped]
    await running
    assert (await chat.live()).status == "idle"


async def ended_and_begun_again(chat: Worker, doing: "asyncio.Task[list[Shown]]") -> Inbox:
    """End the work as a killed heed leaves it, and begin it in the same chat. The update that was not done."""
    (item,) = await chat.heed.database.read(inbox.waiting)
    doing.cancel()
    await asyncio.gather(doing, return_exceptions=True)
    await chat.agents.close()
    chat.agents = AgentService(chat.heed.core)
    heed = chat.heed
    chat.dispatcher = Dispatcher(heed.core, heed.outbox, {heed.channel.platform: heed.channel}, chat.agents)
    item.attempts = 1
    return item


async def test_a_message_is_answered_by_the_heed_that_follows(chat: Worker) -> None:
    """It is not said to the agent twice."""
    chat.heed.engine.token_delay_s = 3600.0
    saying = asyncio.create_task(chat.say("What is there?"))
    live = await chat.live()
    await until(lambda: live.session.state.is_due)
    item = await ended_and_begun_again(chat, saying)
    chat.heed.engine.token_delay_s = 0.0
    before = len(chat.heed.channel.shown.messages)
    await chat.dispatcher.handle(item, Done(item.seq or 0))
    await chat.heed.shown()
    (answer,) = chat.heed.channel.shown.messages[before:]
    messages = (await chat.live()).session.state.messages
    assert [m["role"] for m in messages] == ["system", "user", "assistant"]
    assert answer.text == messages[-1]["content"]


async def test_a_yes_that_heeds_end_broke_off_is_told(chat: Worker, folder: Path) -> None:
    """The call does not run again, and the person knows that it may be done in part."""
    chat.will_call("bash", command="echo once >> log; sleep 4730")
    (card,) = await chat.say("Work.")
    pressing = asyncio.create_task(chat.press(card, "Yes"))
    log = folder / "log"
    await until(lambda: log.exists() and log.read_text())
    item = await ended_and_begun_again(chat, pressing)
    before = len(chat.heed.channel.shown.messages)
    await chat.dispatcher.handle(item, Done(item.seq or 0))
    await chat.heed.shown()
    (told,) = chat.heed.channel.shown.messages[before:]
    assert (told.text, log.read_text()) == (work_texts.BROKEN_OFF, "once\n")


async def test_an_end_and_a_stop(chat: Worker) -> None:
    """After /work off the chat is an ordinary one; /stop with nothing to stop says so."""
    (nothing,) = await chat.command("stop")
    assert nothing.text == work_texts.NOTHING_TO_STOP
    (left,) = await chat.command("work off")
    assert left.text.startswith("This is an ordinary conversation")
    (answer,) = await chat.say("bees")
    assert answer.rows
    (none,) = await chat.command("work")
    assert "/work scratch" in none.text.replace("\\", "")
    (begun,) = await chat.command("work scratch")
    assert "your scratch folder" in begun.text
