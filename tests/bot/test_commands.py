"""bot.commands: one handler each, shared by every platform."""

import pytest

from bot import commands
from bot.commands import COMMANDS, Said
from bot.errors import InvalidField, NotFound
from bot.events import Author, Command, Message, Place
from engine.history import NothingToUndo
from storage import people
from tests.bot.conftest import Heed

ANA = Author("http", "ana", "ana")
HOME = Place("http", "home")


async def talk(heed: Heed, text: str) -> str:
    """Say something at home; the answer's id."""
    gateway = heed.services.gateway
    return (await gateway.answer(await gateway.turn(Message(ANA, HOME, text)))).id


async def do(heed: Heed, text: str) -> Said:
    """Have a command done at home."""
    given = commands.parse(text)
    assert given is not None
    return await commands.run(heed.services.core, await heed.services.gateway.person(ANA), HOME, given)


def test_a_command_is_parsed() -> None:
    """A slash, a name, and the rest."""
    assert commands.parse("/Note call me Ana ") == Command("note", "call me Ana")
    assert commands.parse("note") is None
    assert commands.parse("//x") is None


async def test_help_lists_every_command(heed: Heed) -> None:
    """/help names all of them."""
    text = (await do(heed, "/help")).text
    assert all(f"/{name}" in text for name in COMMANDS)


async def test_an_unknown_command_is_refused(heed: Heed) -> None:
    """It says where the list is."""
    with pytest.raises(InvalidField, match="/help"):
        await do(heed, "/dance")


async def test_feedback_teaches_the_last_answer(heed: Heed) -> None:
    """/feedback is about the newest answer of this conversation, and shows it again."""
    await talk(heed, "bees")
    last = await talk(heed, "wasps")
    said = await do(heed, "/feedback too long")
    assert said.text == "learned: v1 in 1.2 s"
    assert said.answer is not None
    assert said.answer.retry_of == last


async def test_feedback_needs_an_answer(heed: Heed) -> None:
    """Before the first answer there is nothing to correct."""
    with pytest.raises(NotFound):
        await do(heed, "/feedback too long")


async def test_notes_are_listed_and_deleted(heed: Heed) -> None:
    """/note adds one, /notes numbers them with their state, /notes delete takes one back."""
    await do(heed, "/note call me Ana")
    assert "1. call me Ana  (in the prompt)" in (await do(heed, "/notes")).text
    assert (await do(heed, "/notes delete 1")).text == "deleted: call me Ana"
    assert "no notes yet" in (await do(heed, "/notes")).text


@pytest.mark.parametrize("argument", ["delete", "delete 0", "delete 2", "delete x", "delete ²"])
async def test_a_wrong_note_number_is_refused(heed: Heed, argument: str) -> None:
    """Only a number from the list is taken."""
    await do(heed, "/note call me Ana")
    with pytest.raises(InvalidField, match="from 1 to 1"):
        await do(heed, f"/notes {argument}")


async def test_retry_answers_differently(heed: Heed) -> None:
    """/retry gives the last question another answer, which takes its place."""
    first = await talk(heed, "bees")
    said = await do(heed, "/retry")
    assert said.answer is not None
    assert said.answer.retry_of == first


async def test_undo_takes_back_the_last_lesson(heed: Heed) -> None:
    """/undo brings the version before and drops the note; a second one has nothing left."""
    await talk(heed, "bees")
    await do(heed, "/feedback too long")
    assert (await do(heed, "/undo")).text == 'taken back: untrained answers again, and the note "too long" is gone'
    with pytest.raises(NothingToUndo):
        await do(heed, "/undo")


async def test_versions_are_listed(heed: Heed) -> None:
    """/versions marks the one that answers."""
    await talk(heed, "bees")
    await do(heed, "/feedback too long")
    assert "v1        accepted  <- answers now" in (await do(heed, "/versions")).text


async def test_history_and_reset(heed: Heed) -> None:
    """/history shows the last turns, /reset ends the conversation."""
    await talk(heed, "bees")
    await talk(heed, "wasps")
    assert "bees" not in (await do(heed, "/history 1")).text
    assert "bees" in (await do(heed, "/history")).text
    await do(heed, "/reset")
    assert (await do(heed, "/history")).text == "nothing was said here yet"


async def test_history_takes_a_number(heed: Heed) -> None:
    """Anything else is refused."""
    with pytest.raises(InvalidField):
        await do(heed, "/history many")


async def test_metrics_are_about_the_person(heed: Heed) -> None:
    """/metrics counts answers, feedback, versions and saved tokens."""
    await talk(heed, "bees")
    await do(heed, "/feedback too long")
    text = (await do(heed, "/metrics")).text
    assert "answers            2" in text
    assert "1 of it learned" in text
    assert "v1 of 1" in text


async def test_a_persona_is_set_and_removed(heed: Heed) -> None:
    """/persona text, /persona, /persona none."""
    assert "no persona" in (await do(heed, "/persona")).text
    await do(heed, "/persona You are a pirate.")
    assert (await do(heed, "/persona")).text == "You are a pirate."
    await do(heed, "/persona none")
    assert "no persona" in (await do(heed, "/persona")).text


async def test_learning_is_switched(heed: Heed) -> None:
    """With learning off, a correction is kept and no version is made."""
    await talk(heed, "bees")
    assert "learning is off" in (await do(heed, "/learning off")).text
    lesson = (await do(heed, "/feedback too long")).lesson
    assert lesson is not None
    assert lesson.outcome.status == "kept"
    assert "learning is on" in (await do(heed, "/learning on")).text
    with pytest.raises(InvalidField):
        await do(heed, "/learning maybe")


async def test_forget_asks_first(heed: Heed) -> None:
    """/forget alone erases nothing; /forget everything erases the person."""
    await talk(heed, "bees")
    assert "/forget everything" in (await do(heed, "/forget")).text
    assert len(await heed.services.database.read(people.all_ids)) == 1
    await do(heed, "/forget everything")
    assert await heed.services.database.read(people.all_ids) == []


async def test_privacy_is_stated(heed: Heed) -> None:
    """/privacy says what is kept and how it goes."""
    assert "/forget" in (await do(heed, "/privacy")).text
