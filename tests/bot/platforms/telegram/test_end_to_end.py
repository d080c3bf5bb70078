"""Telegram from end to end: the real library, inbox, dispatcher and outbox over the fake engine."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from bot.agent.service import AgentService
from bot.channel import Limits
from bot.commands import person
from bot.config import Settings, TelegramSettings
from bot.core.core import Core
from bot.messaging.live_view import CURSOR
from bot.messaging.request import NOT_YOURS
from bot.messaging.supervisor import ChannelSupervisor
from bot.monitoring.metrics import Metrics
from bot.platforms.telegram.channel import LIMITS, TelegramChannel
from engine.config import EngineConfig
from storage.conversations import inbox, outbox
from storage.database import Database
from storage.people import people
from tests.bot.fake_engine import FakeEngine
from tests.bot.platforms.odd import COMMANDS, ODD_TEXTS, failures
from tests.contract.telegram_server import ANA, BEN, FORUM, GROUP, SMALL_GROUP, Fault, Json, TelegramServer, private
from tests.patience import PATIENCE_S
from tests.storage.new_data_dir import copy_to
from tests.storage.people.test_erasure import copies

pytestmark = [
    pytest.mark.usefixtures("short_end"),
    pytest.mark.filterwarnings("ignore:Deprecated since version v22.2"),  # PTB's own use of retry_after
]

HOME = private(ANA)
QUICK = replace(LIMITS, edit_interval_s=0.01, post_interval_s=0.001, group_interval_s=0.001)


@dataclass
class Talk:
    """A heed on Telegram, and the people who talk to it."""

    server: TelegramServer
    channels: ChannelSupervisor
    core: Core
    engine: FakeEngine

    async def shows(self, words: str, chat: Json = HOME, *, after: int = 0) -> Json:
        """The newest message of heed with these words, once it is there; its id is above `after`."""
        found: list[Json] = []

        def is_there() -> bool:
            found[:] = [
                message
                for message in self.server.shown(chat)
                if words in message.get("text", "") and message["message_id"] > after
            ]
            return bool(found)

        await self.server.until(is_there)
        return found[-1]

    async def quiet(self) -> None:
        """Wait until everything that was said is handled and everything heed says is shown."""
        await self.server.until(lambda: self.server.num_pending == 0)
        async with asyncio.timeout(PATIENCE_S):
            while await self.core.database.read(lambda s: inbox.num_waiting(s) or outbox.waiting(s)):  # noqa: ASYNC110  rows tell nobody
                await asyncio.sleep(0.001)

    async def all_shown(self) -> None:
        """Wait until everything heed says is shown, and known to be."""
        async with asyncio.timeout(PATIENCE_S):
            while await self.core.database.read(outbox.waiting):  # noqa: ASYNC110  rows tell nobody
                await asyncio.sleep(0.001)

    async def ask(self, text: str, chat: Json = HOME, **fields: Any) -> Json:
        """Say something; the finished answer."""
        asked = self.server.say(text, chat=chat, **fields)
        return await self.shows("know more?", chat, after=asked["message_id"])


def buttons(message: Json) -> list[str]:
    """The actions under a message."""
    rows = (message.get("reply_markup") or {}).get("inline_keyboard", [])
    return [button["callback_data"] for row in rows for button in row]


@asynccontextmanager
async def heed_on(
    server: TelegramServer, data_dir: Path, *, limits: Limits = QUICK, **settings: Any
) -> AsyncIterator[Talk]:
    """A running heed."""
    telegram = TelegramSettings(token=SecretStr(server.token), api_base=server.url)
    chosen = Settings(data_dir=data_dir, telegram=telegram, **({"access": {"mode": "open"}} | settings))
    database = Database.open(data_dir)
    engine: Any = FakeEngine(EngineConfig("fake", data_dir), database)
    await engine.start(lambda _: None)
    metrics = Metrics()
    core = Core.build(chosen, database, engine, metrics)
    admins = [admin.partition(":")[2] for admin in chosen.access.admins]
    channel = TelegramChannel(chosen.telegram, person.menu(), admins=admins)
    channel.limits = limits
    channels = ChannelSupervisor([channel], core, metrics, AgentService(core))
    await core.lessons.start()
    channels.start()
    try:
        yield Talk(server, channels, core, engine)
    finally:
        server.release()
        await channels.stop(1.0)
        await core.lessons.drain()
        await database.close()


@pytest.fixture
async def talk(tmp_path: Path) -> AsyncIterator[Talk]:
    """Ana has said hello and yes."""
    copy_to(tmp_path / "data")
    async with TelegramServer() as server, heed_on(server, tmp_path / "data") as talk:
        await server.polled.wait()
        server.say("hello")
        greeting = await talk.shows("learn")
        server.press(HOME, greeting["message_id"], "learn:yes")
        await talk.quiet()
        yield talk


async def test_first_contact(talk: Talk) -> None:
    """A greeting with a choice, the answer, and what the choice means."""
    texts = talk.server.texts(HOME)
    assert len(texts) == 3
    assert any("You asked about hello" in text for text in texts)
    assert "on" in texts[-1]


async def test_a_correction_by_reply(talk: Talk) -> None:
    """The notice with an undo comes first, then the changed answer; after the undo the old one is back."""
    answer = await talk.ask("bees")
    assert buttons(answer) == ["up", "down", "fix", "again"]
    talk.server.say("too long", reply_to=answer["message_id"])
    notice = await talk.shows("Learned: v1")
    again = await talk.shows("You asked about bees", after=notice["message_id"])
    assert again["text"] != answer["text"]
    talk.server.press(HOME, notice["message_id"], "undo")
    await talk.shows("Undone")
    await talk.server.until(lambda: not buttons(talk.server.messages[HOME["id"]][notice["message_id"]]))
    assert (await talk.ask("bees"))["text"] == answer["text"]


async def test_an_edited_correction_is_a_newer_one(talk: Talk) -> None:
    """The words as they are now."""
    answer = await talk.ask("bees")
    correction = talk.server.say("too lang", reply_to=answer["message_id"])
    await talk.shows("Learned: v1")
    talk.server.edit(correction, "too long")
    await talk.shows("Learned: v2")


async def test_an_edit_that_changes_no_words_teaches_nothing(talk: Talk) -> None:
    """Telegram tells of changes that a bot does not see."""
    answer = await talk.ask("bees")
    correction = talk.server.say("too long", reply_to=answer["message_id"])
    await talk.shows("Learned: v1")
    talk.server.edit(correction, "too long")
    await talk.quiet()
    assert sum("Learned" in text for text in talk.server.texts(HOME)[3:]) == 1


async def test_reactions_count(talk: Talk) -> None:
    """A thumb down asks why, and a chip answers; taking it off does nothing."""
    answer = await talk.ask("bees")
    talk.server.react(HOME, answer["message_id"], ["👎"])
    question = await talk.shows("What should be different?")
    await talk.quiet()
    said = talk.server.texts(HOME)
    talk.server.react(HOME, answer["message_id"], [], ["👎"])
    await talk.quiet()
    assert talk.server.texts(HOME) == said
    talk.server.press(HOME, question["message_id"], "why:0")
    await talk.shows("Learned: v1")


async def test_words_are_asked_for(talk: Talk) -> None:
    """The button for a correction opens the field; the reply to the question teaches."""
    answer = await talk.ask("bees")
    query = talk.server.press(HOME, answer["message_id"], "fix")
    question = await talk.shows("What should be different?")
    talk.server.say("say it like this: Buzz.", reply_to=question["message_id"])
    await talk.shows("Learned: v1")
    assert talk.server.answered[query] == ""


async def test_words_are_asked_for_in_a_group(talk: Talk) -> None:
    """The question names the person who pressed, for Telegram opens the field of those alone whom a message names."""
    answer = await talk.ask("@heed_bot bees", GROUP)
    await talk.quiet()
    talk.server.press(GROUP, answer["message_id"], "fix")
    question = await talk.shows("What should be different?", GROUP)
    assert question["text"].startswith("Ana: ")
    assert [entity["user"]["id"] for entity in question["entities"]] == [ANA["id"]]


async def test_a_wait_keeps_no_question_back(talk: Talk, caplog: pytest.LogCaptureFixture) -> None:
    """Where Telegram asks to wait again and again, the question comes afterwards, and its reply teaches."""
    answer = await talk.ask("bees")
    await talk.quiet()
    talk.server.fail("sendMessage", *[Fault(retry_after=0)] * 5)
    talk.server.press(HOME, answer["message_id"], "fix")
    question = await talk.shows("What should be different?")
    talk.server.say("too long", reply_to=question["message_id"])
    await talk.shows("Learned: v1")
    assert failures(caplog) == []


async def test_drafts_are_shown_in_private(talk: Talk) -> None:
    """Then the final text stays, once."""
    talk.engine.token_delay_s = 0.02
    await talk.ask("ants")
    await talk.quiet()
    assert talk.server.drafts
    assert sum("You asked about ants" in text for text in talk.server.texts(HOME)) == 1


async def test_a_group_takes_no_drafts_away(talk: Talk) -> None:
    """An answer in a group has none; the next one in private has."""
    talk.engine.token_delay_s = 0.02
    await talk.ask("@heed_bot wasps", GROUP, sender=BEN)
    await talk.quiet()
    num_before = len(talk.server.drafts)
    await talk.ask("ants")
    await talk.quiet()
    assert len(talk.server.drafts) == num_before + 1


async def test_a_group_is_answered_when_it_asks(talk: Talk) -> None:
    """Only when heed is named; under the question; and only who asked may press."""
    talk.server.say("nothing for heed", chat=GROUP, sender=BEN)
    answer = await talk.ask("@heed_bot wasps", GROUP, sender=BEN)
    await talk.quiet()
    assert answer["reply_to_message"]["text"] == "@heed_bot wasps"
    query = talk.server.press(GROUP, answer["message_id"], "up", ANA)
    await talk.server.until(lambda: query in talk.server.answered)
    assert talk.server.answered[query] == NOT_YOURS


async def test_a_bare_mention_is_answered(talk: Talk) -> None:
    """Whoever calls heed without a word learns that it listens."""
    talk.server.say("@heed_bot", chat=GROUP)
    await talk.shows("write what you want to ask", GROUP)


async def test_topics_are_apart(talk: Talk) -> None:
    """Each answer in its own, also in the general one; reactions name no topic and are understood."""
    answer = await talk.ask("@heed_bot bees", FORUM, thread=9)
    general = await talk.ask("@heed_bot ants", FORUM)
    assert answer["message_thread_id"] == 9
    assert "message_thread_id" not in general
    await talk.quiet()
    talk.server.react(FORUM, answer["message_id"], ["👎"])
    question = await talk.shows("What should be different?", FORUM)
    assert (question["chat"], question["message_thread_id"]) == (FORUM, 9)


async def test_a_group_becomes_a_supergroup(talk: Talk) -> None:
    """The conversation goes on in its new chat."""
    await talk.ask("@heed_bot bees", SMALL_GROUP)
    await talk.quiet()
    talk.server.migrate(SMALL_GROUP, GROUP)
    await talk.ask("@heed_bot ants", GROUP)
    history = talk.engine.requests[-1].messages
    assert any("bees" in message["content"] for message in history)


async def test_commands_are_done(talk: Talk) -> None:
    """Known ones; others get a pointer to the list."""
    talk.server.say("/note call me Ana")
    await talk.shows("Noted")
    talk.server.say("/dance")
    await talk.shows("/help lists them")


async def test_a_command_that_fails_is_answered(talk: Talk) -> None:
    """Also where its update was marked done before it failed."""
    for argument in ("delete 9", "delete x"):
        asked = talk.server.say(f"/notes {argument}")
        await talk.shows("/notes lists your notes", after=asked["message_id"])


async def test_a_persons_own_words_come_back_as_they_were_written(talk: Talk) -> None:
    """Telegram shows every letter of them, and none in bold."""
    talk.server.say("/note 2*3*4, __init__.py")
    noted = await talk.shows("Noted")
    assert noted["text"] == "Noted: 2*3*4, __init__.py"
    assert not noted.get("entities")


async def test_every_command_is_there(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Each is in the admin's menu, and each is answered."""
    copy_to(tmp_path / "data")
    access = {"mode": "open", "admins": (f"telegram:{ANA['id']}",)}
    async with TelegramServer() as server, heed_on(server, tmp_path / "data", access=access) as talk:
        await talk.ask("bees")
        await talk.quiet()
        menus = [entry["command"] for call in server.called("setMyCommands") for entry in call.params["commands"]]
        assert set(COMMANDS) <= set(menus)
        for name, argument in COMMANDS.items():
            num_shown = len(server.shown(HOME))
            server.say(f"/{name} {argument}".format(me=ANA["id"]))
            await talk.quiet()
            assert len(server.shown(HOME)) > num_shown, name
    assert failures(caplog) == []


async def test_a_voice_message_is_told_that_it_cannot_be_heard(talk: Talk) -> None:
    """No silence, and nothing that the model would have to make up."""
    talk.server.say("", voice={"file_id": "a", "file_unique_id": "a", "duration": 3})
    await talk.shows("words only")


async def test_an_album_is_told_so_once(talk: Talk) -> None:
    """Telegram sends each of its pictures as a message."""
    for _ in range(3):
        talk.server.say(
            "", photo=[{"file_id": "a", "file_unique_id": "a", "width": 1, "height": 1}], media_group_id="7"
        )
    await talk.ask("bees")
    await talk.quiet()
    assert sum("words only" in text for text in talk.server.texts(HOME)) == 1


async def test_a_wait_holds_up_one_chat_only(talk: Talk) -> None:
    """Ana's is told to wait; Ben is answered meanwhile."""
    ben = private(BEN)
    talk.server.say("hi", sender=BEN)
    await talk.shows("hi", ben)
    await talk.quiet()
    talk.server.fail("sendMessageDraft", Fault(status=404, description="Not Found"))
    talk.server.fail("sendMessage", Fault(retry_after=3600))
    talk.server.say("bees")
    await talk.server.until(lambda: not talk.server._faults["sendMessage"])
    await talk.ask("ants", ben, sender=BEN)


async def test_malformed_and_foreign_updates_do_nothing(talk: Talk) -> None:
    """A reaction on what heed never sent, made-up actions, a deleted message, odd characters, a replay."""
    answer = await talk.ask("bees")
    await talk.quiet()
    before = len(talk.server.shown(HOME))
    talk.server.react(HOME, 9999, ["👎"])
    talk.server.emit_raw({"update_id": 1, "message": {"chat": {"id": 111, "type": "private"}, "from": "?"}})
    queries = [
        talk.server.press(HOME, answer["message_id"], "why:99"),
        talk.server.press(HOME, 9999, "up"),
        talk.server.press(HOME, answer["message_id"], "\u202e" * 20),
    ]
    talk.server.redeliver()
    await talk.server.until(lambda: all(query in talk.server.answered for query in queries))
    await talk.quiet()
    assert len(talk.server.shown(HOME)) == before
    talk.server.say("a\x00b")
    await talk.shows("not valid text")


@pytest.mark.parametrize(("text", "is_taken"), ODD_TEXTS.values(), ids=ODD_TEXTS)
async def test_odd_texts_are_answered(talk: Talk, text: str, is_taken: bool, caplog: pytest.LogCaptureFixture) -> None:
    """As a message, a note, a correction and a changed correction: each says what is wrong, and nothing fails."""

    async def answered(words: str, sent: Json) -> Json:
        return await talk.shows(words if is_taken else "The text has", after=sent["message_id"])

    await answered("know more?", talk.server.say(text))
    await answered("Noted", talk.server.say(f"/note {text}"))
    about = await talk.ask("bees")
    await talk.quiet()
    await answered("Learned", talk.server.say(text, reply_to=about["message_id"]))
    await talk.quiet()
    correction = talk.server.say("too long", reply_to=about["message_id"])
    notice = await talk.shows("Learned", after=correction["message_id"])
    await talk.quiet()
    talk.server.edit(correction, text)
    await answered("Learned", notice)
    await talk.quiet()
    assert failures(caplog) == []


async def test_an_answer_survives_what_is_deleted(talk: Talk, caplog: pytest.LogCaptureFixture) -> None:
    """The question and the answer's placeholder are gone: the answer comes all the same, once."""
    talk.engine.token_delay_s = 0.05
    asked = talk.server.say("@heed_bot bees", chat=GROUP)
    placeholder = await talk.shows(CURSOR, GROUP, after=asked["message_id"])
    for message in (asked, placeholder):
        del talk.server.messages[GROUP["id"]][message["message_id"]]
    await talk.shows("know more?", GROUP)
    await talk.quiet()
    assert sum("You asked about" in text for text in talk.server.texts(GROUP)) == 1
    assert failures(caplog) == []


async def test_who_has_blocked_heed_is_left_alone(talk: Talk, caplog: pytest.LogCaptureFixture) -> None:
    """What was to be shown is given up; when they unblock heed, the next message is answered as ever."""
    talk.server.blocked.add(HOME["id"])
    talk.server.say("bees")
    await talk.quiet()
    talk.server.blocked.clear()
    await talk.ask("ants")
    assert not any("You asked about bees" in text for text in talk.server.texts(HOME))
    assert failures(caplog) == []


CLEO: Json = {"id": 7261940385, "is_bot": False, "first_name": "Cleopatra", "username": "cleo_7", "language_code": "en"}


async def test_nothing_is_left_of_who_was_forgotten(tmp_path: Path) -> None:
    """No file has the number, the name or a word, and redelivered updates bring nothing back; Ana is still there."""
    data_dir = copy_to(tmp_path / "data")
    home = private(CLEO)
    async with TelegramServer() as server:
        async with heed_on(server, data_dir) as talk:
            await talk.ask("bees")
            await _leave_traces(talk, home)
            assert copies(data_dir, "7261940385")
            talk.server.say("/forget", sender=CLEO, chat=home)
            question = await talk.shows("This erases", home)
            await talk.quiet()
            talk.server.press(home, question["message_id"], "forget:yes", CLEO)
            await talk.shows("is erased", home)
            await talk.quiet()
            await talk.core.database.checkpoint()
            left = {word: copies(data_dir, word) for word in ("7261940385", "Cleopatra", "cleo_7", "xylophone")}
            assert not any(left.values()), left
        num_shown = len(server.shown(home))
        assert server.redeliver() >= 9
        async with heed_on(server, data_dir) as talk:
            await talk.quiet()
            assert await talk.core.database.read(lambda s: people.find(s, "telegram", "7261940385")) is None
        assert len(server.shown(home)) == num_shown
    assert copies(data_dir, "Ana")


async def _leave_traces(talk: Talk, home: Json) -> None:
    """Messages in private and in a group, consent, reactions, a correction."""
    talk.server.say("xylophones", sender=CLEO, chat=home)
    greeting = await talk.shows("learn", home)
    answer = await talk.shows("know more?", home)
    await talk.quiet()
    talk.server.press(home, greeting["message_id"], "learn:yes", CLEO)
    talk.server.react(home, answer["message_id"], ["👍"], sender=CLEO)
    talk.server.react(GROUP, 9999, ["👎"], sender=CLEO)
    talk.server.say("xylophones are longer", sender=CLEO, chat=home, reply_to=answer["message_id"])
    await talk.shows("Learned: v1", home)
    await talk.ask("@heed_bot xylophones", GROUP, sender=CLEO)


async def test_a_correction_while_paused_is_answered_after_resume(talk: Talk) -> None:
    """At once a word that it waits, and the chat goes on; then the notice with its undo and the new answer, once."""
    answer = await talk.ask("bees")
    await talk.core.lessons.pause()
    talk.server.say("too long", reply_to=answer["message_id"])
    await talk.shows("Learning is paused")
    between = await talk.ask("cats")
    assert await talk.core.lessons.resume() == 1
    notice = await talk.shows("Learned: v1", after=between["message_id"])
    assert "undo" in buttons(notice)
    again = await talk.shows("You asked about bees", after=notice["message_id"])
    assert again["text"] != answer["text"]
    await talk.quiet()
    assert sum("Learned" in text for text in talk.server.texts(HOME)) == 1


async def test_a_correction_while_paused_survives_restarts(tmp_path: Path) -> None:
    """As long as learning is paused the next heed says nothing new; after /resume it says what was learned."""
    copy_to(tmp_path / "data")
    async with TelegramServer() as server:
        async with heed_on(server, tmp_path / "data") as talk:
            server.say("hello")
            greeting = await talk.shows("learn")
            server.press(HOME, greeting["message_id"], "learn:yes")
            await talk.quiet()
            answer = await talk.ask("bees")
            await talk.core.lessons.pause()
            server.say("too long", reply_to=answer["message_id"])
            await talk.shows("Learning is paused")
            await talk.all_shown()
        async with heed_on(server, tmp_path / "data") as talk:
            between = await talk.ask("cats")
            await talk.core.lessons.resume()
            notice = await talk.shows("Learned: v1", after=between["message_id"])
            await talk.shows("You asked about bees", after=notice["message_id"])
            await talk.quiet()
        assert sum("Learning is paused" in text for text in server.texts(HOME)) == 1


async def test_ten_group_answers_are_ten_calls(tmp_path: Path) -> None:
    """What is complete goes out once: no phone notifies of three dots, and a group's twenty calls a minute last."""
    copy_to(tmp_path / "data")
    limits = replace(QUICK, edit_interval_s=600.0)
    async with TelegramServer() as server, heed_on(server, tmp_path / "data", limits=limits) as talk:
        await server.polled.wait()
        server.say("@heed_bot hello", chat=GROUP)
        greeting = await talk.shows("learn", GROUP)
        server.press(GROUP, greeting["message_id"], "learn:yes")
        await talk.quiet()
        before = shown_calls(server)
        for number in range(10):
            await talk.ask(f"@heed_bot bees {number}", GROUP)
        await talk.quiet()
        assert shown_calls(server)[len(before) :] == ["sendMessage"] * 10
        assert before == ["sendMessage"] * 3


def shown_calls(server: TelegramServer) -> list[str]:
    """The calls that show or change a message."""
    return [call.method for call in server.calls if call.method in ("sendMessage", "editMessageText")]
