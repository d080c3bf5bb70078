"""Discord from end to end: the real library, inbox, dispatcher and outbox over the fake engine."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from bot.agent.service import AgentService
from bot.channel import Limits
from bot.commands import person
from bot.config import Settings
from bot.core.core import Core
from bot.core.lessons import LearningService
from bot.messaging.live_view import CURSOR
from bot.messaging.request import NOT_YOURS
from bot.messaging.supervisor import ChannelSupervisor
from bot.monitoring.metrics import Metrics
from bot.platforms.discord.channel import DiscordChannel
from bot.platforms.discord.interactions import EPHEMERAL
from bot.platforms.discord.messages import LIMITS
from engine.config import EngineConfig
from storage.database import Database
from storage.errors import StorageFull
from storage.kinds import AccessState
from storage.people import access, people
from tests.bot.fake_engine import FakeEngine
from tests.bot.platforms.discord_bench import PACE
from tests.bot.platforms.odd import COMMANDS, ODD_TEXTS, failures
from tests.contract.discord_server import Call, DiscordServer, Fault
from tests.contract.discord_world import ANA, BEN, BOT, CANNOT_SEND, TOKEN, Channel, Interaction, Json, Refusal
from tests.storage.people.test_erasure import copies

pytestmark = pytest.mark.usefixtures("short_end")

MENTION = f"<@{BOT['id']}>"
QUICK = replace(LIMITS, edit_interval_s=0.01, post_interval_s=0.001, burst=100, calls_per_s=1000.0)


@dataclass
class Talk:
    """A heed on Discord, and the people who talk to it."""

    server: DiscordServer
    channels: ChannelSupervisor
    engine: FakeEngine
    channel: DiscordChannel
    database: Database
    lessons: LearningService

    async def shows(self, words: str, chat: Channel | None = None, *, after: str = "0") -> Json:
        """The newest message of heed with these words, once it is there; its id is above `after`."""
        messages = (chat or self.server.dm()).messages

        def found() -> list[Json]:
            mine = [m for m in messages.values() if m["author"] == BOT and int(m["id"]) > int(after)]
            return [m for m in mine if words in m["content"]]

        await self.server.until(found)
        return found()[-1]

    async def ask(self, text: str, chat: Channel | None = None, author: Json = ANA) -> Json:
        """Say something; the finished answer."""
        chat = chat or self.server.dm()
        asked = await self.server.say(chat, text, author=author)
        return await self.shows("know more?", chat, after=asked["id"])

    async def quiet(self) -> None:
        """Wait until everything said is heard and handled, and everything to say is shown."""
        await self.server.until(lambda: self.channel._gateway._here().sequence >= self.server.last_sequence)
        await self.server.until(lambda: self.channel._intake.is_idle)
        await self.server.until(lambda: self.channels.inbox.num_waiting == 0)
        await self.server.until(lambda: self.channels.outbox.num_waiting == 0)


def buttons(message: Json) -> list[str]:
    """The actions under a message."""
    return [button["custom_id"] for row in message["components"] for button in row["components"]]


@asynccontextmanager
async def heed_on(
    server: DiscordServer, data_dir: Path, *, limits: Limits = QUICK, **settings: Any
) -> AsyncIterator[Talk]:
    """A running heed."""
    discord = {"token": TOKEN, "api_base": server.api_base, "training_permission": "a letter of 2026-01-01"}
    chosen = Settings(data_dir=data_dir, discord=discord, **({"access": {"mode": "open"}} | settings))  # type: ignore[arg-type]
    database = Database.open(data_dir)
    engine: Any = FakeEngine(EngineConfig("fake", data_dir), database)
    await engine.start(lambda _: None)
    metrics = Metrics()
    core = Core.build(chosen, database, engine, metrics)
    channel = DiscordChannel(chosen.discord, person.menu(), database, pace=PACE)
    channel.limits = limits
    channels = ChannelSupervisor([channel], core, metrics, AgentService(core))
    channels.start()
    try:
        await server.until(lambda: channels.health()["discord"] == "ok")
        yield Talk(server, channels, engine, channel, database, core.lessons)
    finally:
        await channels.stop(1.0)
        await core.lessons.drain()
        await database.close()


@pytest.fixture
async def server() -> AsyncIterator[DiscordServer]:
    """A Discord with a private chat, a server's channel and a thread."""
    made = DiscordServer()
    made.dm(), made.text(), made.thread()
    await made.start()
    yield made
    await made.stop()


@pytest.fixture
async def talk(server: DiscordServer, quick_dir: Path) -> AsyncIterator[Talk]:
    """Ana has said hello and yes."""
    async with heed_on(server, quick_dir) as made:
        await server.say(server.dm(), "hello")
        greeting = await made.shows("learn")
        await made.shows("know more?")
        await server.press(greeting, "learn:yes")
        await made.shows("on", after=greeting["id"])
        await made.quiet()
        yield made


async def finished(talk: Talk, given: Interaction) -> str:
    """What a slash command was answered."""
    await talk.server.until(lambda: given.original)
    return str(talk.server.world.channels[given.payload["channel_id"]].messages[given.original]["content"])


async def whispered(talk: Talk, given: Interaction) -> str:
    """What the person alone was told after an interaction."""
    await talk.server.until(lambda: given.follow_ups)
    return str(given.follow_ups[-1]["content"])


async def test_a_correction_by_reply(talk: Talk) -> None:
    """The notice with an undo comes first, then the changed answer; after the undo the old one is back."""
    answer = await talk.ask("bees")
    await talk.quiet()
    assert buttons(answer) == ["up", "down", "fix", "again"]
    await talk.server.say(talk.server.dm(), "too long", reply_to=answer["id"])
    notice = await talk.shows("Learned: v1")
    again = await talk.shows("You asked about bees", after=notice["id"])
    await talk.quiet()
    assert again["content"] != answer["content"]
    await talk.server.press(notice, "undo")
    await talk.shows("Undone")
    await talk.server.until(lambda: not buttons(notice))
    assert (await talk.ask("bees"))["content"] == answer["content"]


async def test_a_correction_while_paused_is_answered_after_resume(talk: Talk) -> None:
    """At once a word that it waits, and the chat goes on; then the notice with its undo and the new answer, once."""
    answer = await talk.ask("bees")
    await talk.quiet()
    await talk.lessons.pause()
    await talk.server.say(talk.server.dm(), "too long", reply_to=answer["id"])
    await talk.shows("Learning is paused")
    between = await talk.ask("cats")
    assert await talk.lessons.resume() == 1
    notice = await talk.shows("Learned: v1", after=between["id"])
    again = await talk.shows("You asked about bees", after=notice["id"])
    await talk.quiet()
    assert "undo" in buttons(notice)
    assert again["content"] != answer["content"]
    said = [message["content"] for message in talk.server.dm().messages.values() if message["author"] == BOT]
    assert sum("Learned" in text for text in said) == 1
    await talk.server.press(notice, "undo")
    await talk.shows("Undone")


async def test_a_wish_that_holds_already_is_no_lesson(talk: Talk) -> None:
    """Said again about the answer before it, it is told so, and the answer as it would be now follows."""
    answer = await talk.ask("bees")
    await talk.quiet()
    await talk.server.say(talk.server.dm(), "too long", reply_to=answer["id"])
    await talk.shows("Learned: v1")
    await talk.quiet()
    repeated = await talk.server.say(talk.server.dm(), "Too long!", reply_to=answer["id"])
    told = await talk.shows("I already keep that in mind: too long", after=repeated["id"])
    assert buttons(told) == []
    await talk.shows("You asked about bees", after=told["id"])
    assert talk.engine.num_learned == 1


async def test_an_edited_correction_is_a_newer_one(talk: Talk) -> None:
    """The words as they are now."""
    answer = await talk.ask("bees")
    await talk.quiet()
    correction = await talk.server.say(talk.server.dm(), "too lang", reply_to=answer["id"])
    await talk.shows("Learned: v1")
    await talk.quiet()
    await talk.server.edit(correction, "too long")
    await talk.shows("Learned: v2")


async def test_reactions_count(talk: Talk) -> None:
    """A thumb down asks why, and a chip answers; taking it off does nothing."""
    answer = await talk.ask("bees")
    await talk.quiet()
    await talk.server.react(answer, "👎")
    question = await talk.shows("What should be different?")
    await talk.quiet()
    said = talk.server.said(talk.server.dm())
    await talk.server.react(answer, "👎", on=False)
    await talk.quiet()
    assert talk.server.said(talk.server.dm()) == said
    await talk.server.press(question, "why:0")
    await talk.shows("Learned: v1")


@pytest.mark.parametrize("is_reason", [False, True])
async def test_words_are_asked_for_in_a_form(talk: Talk, is_reason: bool) -> None:
    """The button for a correction, and the last chip, open a form; what is sent teaches."""
    pressed = answer = await talk.ask("bees")
    await talk.quiet()
    if is_reason:
        await talk.server.press(answer, "down")
        pressed = await talk.shows("What should be different?")
        await talk.quiet()
    opened = await talk.server.press(pressed, "why:4" if is_reason else "fix")
    await talk.server.until(lambda: opened.first)
    await talk.server.submit(opened, "say it like this: Buzz.")
    await talk.shows("Learned: v1")


async def test_a_server_is_answered_when_it_asks(talk: Talk) -> None:
    """Only when heed is named, under the question, in its thread; and only who asked may press or fill a form."""
    thread = talk.server.thread()
    await talk.server.say(thread, "nothing for heed", author=BEN)
    answer = await talk.ask(f"{MENTION} wasps", thread, BEN)
    await talk.quiet()
    assert answer["message_reference"]["message_id"] in thread.messages
    pressed = await talk.server.press(answer, "up", user=ANA)
    await talk.server.until(lambda: pressed.follow_ups)
    opened = await talk.server.press(answer, "fix", user=ANA)
    await talk.server.until(lambda: opened.first)
    filled = await talk.server.submit(opened, "shorter")
    await talk.server.until(lambda: filled.follow_ups)
    for told in (pressed, filled):
        (notice,) = told.follow_ups
        assert (notice["content"], notice["flags"]) == (NOT_YOURS, 64 | 4)


async def test_a_picture_is_told_that_it_cannot_be_seen(talk: Talk) -> None:
    """No silence, and nothing that the model would have to make up."""
    await talk.server.say(talk.server.dm(), "", attachments=[{"id": "5", "filename": "bee.png", "size": 3, "url": ""}])
    await talk.shows("words only")


async def test_commands_answer_their_interaction(talk: Talk) -> None:
    """Slash commands are answered where they were given, also with an answer, a lesson or a file."""
    await talk.ask("bees")
    await talk.quiet()
    assert "Noted" in await finished(talk, await talk.server.command(talk.server.dm(), "note", "call me Ana"))
    given = await talk.server.command(talk.server.dm(), "feedback", "too long")
    assert "Learned" in await finished(talk, given)
    await talk.quiet()
    given = await talk.server.command(talk.server.dm(), "retry")
    await finished(talk, given)
    await talk.quiet()
    assert "You asked about bees" in await finished(talk, given)
    given = await talk.server.command(talk.server.dm(), "export")
    await finished(talk, given)
    await talk.quiet()
    assert talk.server.dm().messages[given.original]["_files"]
    assert given.is_private


async def test_a_command_that_fails_is_answered(talk: Talk) -> None:
    """The sign that heed is at it does not stay, also where its update was marked done before it failed."""
    for argument in ("delete 9", "delete x"):
        given = await talk.server.command(talk.server.dm(), "notes", argument)
        assert "/notes lists your notes" in await finished(talk, given)


async def test_a_deletion_is_answered_although_the_disk_was_full(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is handled again once there is room, means the same note, and the sign that heed is at it does not stay."""
    delete = talk.engine.delete_note

    async def full_once(*given: str) -> None:
        monkeypatch.setattr(talk.engine, "delete_note", delete)
        await delete(*given)
        raise StorageFull("no space")

    for text in ("call me Ana", "my dog is Rex"):
        await finished(talk, await talk.server.command(talk.server.dm(), "note", text))
    monkeypatch.setattr(talk.engine, "delete_note", full_once)
    given = await talk.server.command(talk.server.dm(), "notes", "delete 1")
    assert await finished(talk, given) == "Deleted: call me Ana"
    assert "my dog is Rex" in await finished(talk, await talk.server.command(talk.server.dm(), "notes"))


async def test_a_persons_own_words_come_back_as_they_were_written(talk: Talk) -> None:
    """Each mark in them is sent so that Discord shows it as a letter."""
    given = await talk.server.command(talk.server.dm(), "note", "2*3*4, __init__.py")
    assert await finished(talk, given) == r"Noted: 2\*3\*4, \_\_init\_\_.py"


async def test_every_command_is_there(server: DiscordServer, quick_dir: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Discord is told of each, and each answers where it was given."""
    async with heed_on(server, quick_dir, access={"mode": "open", "admins": (f"discord:{ANA['id']}",)}) as talk:
        await talk.ask("bees")
        await talk.quiet()
        assert set(COMMANDS) <= {command["name"] for command in server.world.commands}
        for name, argument in COMMANDS.items():
            given = await server.command(server.dm(), name, argument.format(me=ANA["id"]))
            assert await finished(talk, given), name
            await talk.quiet()
    assert failures(caplog) == []


async def test_a_long_private_answer_stays_private(talk: Talk) -> None:
    """What a command shows to the asker alone is so in all its parts, also where it takes several messages."""
    text = talk.server.text()
    for number in range(4):
        given = await talk.server.command(text, "note", f"{number} " + "bees " * 150)
        assert "Noted" in await finished(talk, given)
    await talk.quiet()
    given = await talk.server.command(text, "notes")
    await finished(talk, given)
    await talk.quiet()
    (first,) = [message for message in text.messages.values() if "in the prompt" in message["content"]]
    assert first["_is_private"]
    assert given.follow_ups
    assert all(part["flags"] & EPHEMERAL for part in given.follow_ups)
    assert "tokens saved" in given.follow_ups[-1]["content"]


async def test_a_secret_that_is_asked_for_in_writing_is_not_shown_to_others(talk: Talk) -> None:
    """Only the answer to a slash command can be for the asker alone; in private there are no others."""
    text = talk.server.text()
    await talk.server.command(text, "note", "my dog is Rex")
    await talk.quiet()
    await talk.server.say(text, f"{MENTION} /notes")
    await talk.shows("Write it to me in private", text)
    await talk.quiet()
    assert not any("in the prompt" in said for said in talk.server.said(text))
    await talk.server.say(talk.server.dm(), "/notes")
    await talk.shows("my dog is Rex  (in the prompt)")


async def test_who_is_shut_out_does_not_wait_for_an_answer(talk: Talk) -> None:
    """What Discord shows meanwhile goes away again."""
    await talk.database.write(lambda s: access.decide(s, "discord", BEN["id"], AccessState.BLOCKED, "operator"))
    given = await talk.server.command(talk.server.text(), "help", user=BEN)
    await talk.server.until(lambda: given.deleted)
    assert talk.server.said(talk.server.text()) == []


async def test_an_unknown_command_is_told(talk: Talk) -> None:
    """A command heed does not have, or has for admins alone, is answered like any mistake."""
    given = await talk.server.command(talk.server.dm(), "stats")
    await talk.server.until(lambda: given.follow_ups or given.original)
    words = [part["content"] for part in given.follow_ups] or [await finished(talk, given)]
    assert "/help lists them" in words[0]
    await talk.server.say(talk.server.dm(), "/dance")
    await talk.shows("There is no command /dance. /help lists them.")


async def test_what_was_missed_is_answered_once(server: DiscordServer, quick_dir: Path) -> None:
    """A question asked while heed was away is answered when it is back, and no answer is given twice."""
    async with heed_on(server, quick_dir) as talk:
        await talk.ask("ants")
        await talk.quiet()
    server.sockets.forget()
    await server.say(server.dm(), "bees")
    for _ in range(2):
        async with heed_on(server, quick_dir) as talk:
            await talk.shows("You asked about bees")
            await talk.quiet()
        server.sockets.forget()
    said = server.said(server.dm())
    assert [sum(f"You asked about {what}" in text for text in said) for what in ("ants", "bees")] == [1, 1]


async def test_an_answer_that_may_have_been_sent_is_shown_once(talk: Talk) -> None:
    """Where the server fails after it has done what it was asked, the nonce keeps the answer from doubling."""
    talk.server.fail("POST", "/channels/500/messages", Fault(status=503, is_done=True))
    await talk.ask("bees")
    await talk.quiet()
    assert sum("You asked about bees" in text for text in talk.server.said(talk.server.dm())) == 1
    assert "…" not in talk.server.said(talk.server.dm())


async def test_a_wait_holds_up_one_chat_only(talk: Talk) -> None:
    """Ana's chat is told to wait for an hour; the server's channel is answered meanwhile."""
    num_posts = len(talk.server.made("POST", "/channels/500/messages"))
    talk.server.fail("POST", "/channels/500/messages", Fault(retry_after=3600.0))
    await talk.server.say(talk.server.dm(), "bees")
    await talk.server.until(lambda: len(talk.server.made("POST", "/channels/500/messages")) > num_posts)
    await talk.ask(f"{MENTION} ants", talk.server.text())
    assert not any("You asked about bees" in text for text in talk.server.said(talk.server.dm()))


async def test_foreign_and_malformed_things_do_nothing(talk: Talk) -> None:
    """A reaction on what heed never sent, made-up actions, a deleted message: silence, and the chat goes on."""
    answer = await talk.ask("bees")
    await talk.quiet()
    before = len(talk.server.said(talk.server.dm()))
    gone = dict(answer) | {"id": "1"}
    await talk.server.react(gone, "👎")
    for action in ("why:99", "\u202e" * 20, "x" * 100):
        await talk.server.press(answer, action)
    del talk.server.dm().messages[answer["id"]]
    await talk.server.react(answer, "🎉")
    await talk.quiet()
    assert len(talk.server.said(talk.server.dm())) == before - 1
    await talk.ask("ants")


@pytest.mark.parametrize(("text", "is_taken"), ODD_TEXTS.values(), ids=ODD_TEXTS)
async def test_odd_texts_are_answered(talk: Talk, text: str, is_taken: bool, caplog: pytest.LogCaptureFixture) -> None:
    """As a message, a note, a correction, a changed one and in a form: each says what is wrong, and nothing fails."""
    home = talk.server.dm()

    async def answered(words: str, sent: Json) -> Json:
        await talk.quiet()
        return await talk.shows(words if is_taken else "The text has", after=sent["id"])

    await answered("know more?", await talk.server.say(home, text))
    given = await talk.server.command(home, "note", text)
    assert ("Noted" in await finished(talk, given)) if is_taken else ("The text has" in await whispered(talk, given))
    about = await talk.ask("bees")  # after the note: said again about an answer before it, it would be no lesson
    await answered("Learned", await talk.server.say(home, text, reply_to=about["id"]))
    correction = await talk.server.say(home, "too long", reply_to=about["id"])
    notice = await talk.shows("Learned", after=correction["id"])
    await talk.quiet()
    await talk.server.edit(correction, text)
    told = await answered("Learned", notice)
    opened = await talk.server.press(about, "fix")
    await talk.server.until(lambda: opened.first)
    filled = await talk.server.submit(opened, text)
    assert await answered("Learned", told) if is_taken else ("The text has" in await whispered(talk, filled))
    assert failures(caplog) == []


async def test_an_answer_survives_what_is_deleted(talk: Talk, caplog: pytest.LogCaptureFixture) -> None:
    """The question and the answer's placeholder are gone: the answer comes all the same, once."""
    talk.engine.token_delay_s = 0.05
    asked = await talk.server.say(talk.server.dm(), "bees")
    placeholder = await talk.shows(CURSOR, after=asked["id"])
    for message in (asked, placeholder):
        del talk.server.dm().messages[message["id"]]
    await talk.shows("know more?", after=asked["id"])
    await talk.quiet()
    assert sum("You asked about bees" in text for text in talk.server.said(talk.server.dm())) == 1
    assert failures(caplog) == []


async def test_who_has_blocked_heed_is_left_alone(talk: Talk, caplog: pytest.LogCaptureFixture) -> None:
    """What was to be shown is given up; when they unblock heed, the next message is answered as ever."""
    talk.server.dm().refusal = Refusal(403, CANNOT_SEND, "Cannot send messages to this user")
    await talk.server.say(talk.server.dm(), "bees")
    await talk.quiet()
    talk.server.dm().refusal = None
    await talk.ask("ants")
    assert not any("You asked about bees" in text for text in talk.server.said(talk.server.dm()))
    assert failures(caplog) == []


async def test_nothing_is_left_of_who_was_forgotten(talk: Talk, quick_dir: Path) -> None:
    """After messages, a correction, reactions and presses no file has the number, the name or a word of theirs."""
    cleo = BEN | {"id": "726194038512345678", "username": "cleo_7", "global_name": "Cleopatra"}
    text = talk.server.text()
    answer = await talk.ask(f"{MENTION} xylophones", text, cleo)
    greeting = await talk.shows("learn", text)
    await talk.quiet()
    chosen = await talk.server.press(greeting, "learn:yes", user=cleo)
    assert "learning is on" in await whispered(talk, chosen)
    await talk.server.react(answer, "👍", user=cleo)
    await talk.server.react(answer, "👎", user=cleo)
    await talk.server.react(answer, "👎", user=cleo, on=False)
    await talk.server.say(text, "xylophones are longer", author=cleo, reply_to=answer["id"])
    await talk.shows("Learned: v1", text)
    await talk.quiet()
    asked = await talk.server.command(text, "forget", user=cleo)
    await finished(talk, asked)
    await talk.quiet()
    assert copies(quick_dir, cleo["id"])
    pressed = await talk.server.press(text.messages[asked.original], "forget:yes", user=cleo)
    assert "is erased" in await whispered(talk, pressed)
    assert pressed.follow_ups[-1]["flags"] & EPHEMERAL
    await talk.quiet()
    await talk.database.checkpoint()
    left = {word: copies(quick_dir, word) for word in (cleo["id"], "Cleopatra", "cleo_7", "xylophone")}
    assert not any(left.values()), left
    await talk.server.react(answer, "👍", user=cleo)  # as a gateway that replays would tell it
    await talk.quiet()
    assert await talk.database.read(lambda s: people.find(s, "discord", cleo["id"])) is None
    assert copies(quick_dir, "Ana")


async def test_a_greeting_by_command_is_for_the_asker_alone(talk: Talk) -> None:
    """Where others read along; so is what the choice means."""
    cleo = ANA | {"id": "777", "username": "cleo"}
    given = await talk.server.command(talk.server.text(), "help", user=cleo)
    assert "learn" in await finished(talk, given)
    await talk.quiet()
    messages = talk.server.text().messages
    assert all(m["_is_private"] for m in messages.values() if m["author"]["id"] == BOT["id"])
    pressed = await talk.server.press(messages[given.original], "learn:yes", user=cleo)
    assert "on" in await whispered(talk, pressed)
    await talk.quiet()
    assert all(m["_is_private"] for m in messages.values() if m["author"]["id"] == BOT["id"])


async def test_ten_group_answers_are_ten_calls(server: DiscordServer, quick_dir: Path) -> None:
    """What is complete goes out once, in a server's channel as well."""
    async with heed_on(server, quick_dir, limits=replace(QUICK, edit_interval_s=600.0)) as talk:
        hives = server.text()
        await talk.ask(f"{MENTION} hello", hives)
        await talk.quiet()
        before = len(shown_calls(server))
        for number in range(10):
            await talk.ask(f"{MENTION} bees {number}", hives)
        await talk.quiet()
        assert [call.method for call in shown_calls(server)[before:]] == ["POST"] * 10
        assert before == 2


def shown_calls(server: DiscordServer) -> list[Call]:
    """The calls that show or change a message."""
    return [call for call in server.calls if call.method in ("POST", "PATCH") and "/messages" in call.path]
