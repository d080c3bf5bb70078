"""bot.commands.person: one handler each, shared by every platform."""

import pytest

from bot.commands import admin, person
from bot.commands.person import COMMANDS, CommandReply
from bot.errors import InvalidField, NotFound
from bot.events import Author, Command, Message, Place
from engine.adapters import superseding
from engine.errors import NothingToUndo
from storage.kinds import ConsentChoice
from storage.learning import versions
from storage.people import consent as steps
from tests.bot.conftest import Heed, StartHeed
from tests.storage.stored import all_ids

ANA = Author("http", "ana", "ana")
HOME = Place("http", "home")
EVE = Author("telegram", "5", "Eve")
PRIVATE = Place("telegram", "5")
GROUP = Place("telegram", "-100", is_private=False)
ISSUED = (
    "start help feedback note notes retry undo rollback history reset persona learning metrics privacy export forget"
    " stats users allow block pair pause resume adapters updates"
)


async def talk(heed: Heed, text: str) -> str:
    """Say something at home; the answer's id."""
    gateway = heed.core.gateway
    return (await gateway.answer(await gateway.turn(Message(ANA, HOME, text)))).id


async def do(heed: Heed, text: str) -> CommandReply:
    """Have a command done at home."""
    given = person.parse(text)
    assert given is not None
    return await person.run(heed.core, await heed.core.gateway.person(ANA), HOME, given)


def test_a_command_is_parsed() -> None:
    """A slash, a name, and the rest."""
    assert person.parse("/Note call me Ana ") == Command("note", "call me Ana")
    assert person.parse("note") is None
    assert person.parse("//x") is None


async def test_help_lists_every_command(heed: Heed) -> None:
    """/help names all of them."""
    text = (await do(heed, "/help")).text
    assert all(f"/{name}" in text for name in COMMANDS)


async def test_an_unknown_command_is_refused(heed: Heed) -> None:
    """It says where the list is."""
    with pytest.raises(InvalidField, match="/help"):
        await do(heed, "/dance")


@pytest.mark.parametrize("name", ["\ud800", "x" * 5000, "<b>", "\u202eevil", "a\nb", ""])
async def test_a_strange_name_is_not_repeated(heed: Heed, name: str) -> None:
    """Nothing that forges lines, turns text around or cannot be sent comes back."""
    with pytest.raises(InvalidField, match=r"^There is no command of that name\. /help lists them\.$"):
        await person.run(heed.core, await heed.core.gateway.person(ANA), HOME, Command(name))


async def test_feedback_teaches_the_last_answer(heed: Heed) -> None:
    """/feedback is about the newest answer of this conversation, and shows it again."""
    await talk(heed, "bees")
    last = await talk(heed, "wasps")
    said = await do(heed, "/feedback too long")
    assert said.text == "Learned: v1 in 1.2 s."
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
    assert (await do(heed, "/notes delete 1")).text == "Deleted: call me Ana"
    assert "no notes yet" in (await do(heed, "/notes")).text


async def test_a_deleted_note_says_what_holds_again(heed: Heed) -> None:
    """A note that it had replaced is named; the list has it from then on."""
    for text in ("answer in Spanish", "answer in English again"):
        await do(heed, f"/note {text}")
    user_id = await heed.core.gateway.person(ANA)
    await heed.core.database.write(lambda s: superseding.settle(s, user_id))
    assert "Spanish" not in (await do(heed, "/notes")).text
    told = (await do(heed, "/notes delete 1")).text
    assert told == 'Deleted: answer in English again\nIn force again: "answer in Spanish".'
    assert "1. answer in Spanish" in (await do(heed, "/notes")).text


@pytest.mark.parametrize("argument", ["delete", "delete 0", "delete 2", "delete x", "delete ²", "delete " + "9" * 5000])
async def test_a_wrong_note_number_is_refused(heed: Heed, argument: str) -> None:
    """Only a number from the list is taken."""
    await do(heed, "/note call me Ana")
    with pytest.raises(InvalidField, match="/notes delete takes 1"):
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
    assert (
        await do(heed, "/undo")
    ).text == 'Undone. The untrained model answers again. The note "too long" is deleted.'
    with pytest.raises(NothingToUndo):
        await do(heed, "/undo")


async def test_versions_are_listed(heed: Heed) -> None:
    """/versions marks the one that answers."""
    await talk(heed, "bees")
    await do(heed, "/feedback too long")
    assert 'v1        "too long"  <- answers now' in (await do(heed, "/versions")).text


async def test_an_earlier_version_answers_again(heed: Heed) -> None:
    """/rollback says what holds now; without a number it says which versions there are."""
    await talk(heed, "bees")
    for text in ("too long", "no emoji"):
        await do(heed, f"/feedback {text}")
    assert (await do(heed, "/rollback v1")).text == 'v1 answers now; it was taught: "too long"; undone: "no emoji".'
    assert 'v1        "too long"  <- answers now' in (await do(heed, "/rollback")).text
    assert (await do(heed, "/rollback 0")).text == 'The untrained model answers now; undone: "too long".'


@pytest.mark.parametrize("text", ["/rollback two", "/rollback -1", "/rollback 1 2", "/rollback telegram:5 0"])
async def test_what_is_no_version_is_refused(heed: Heed, text: str) -> None:
    """Words, and accounts where nobody is an admin."""
    with pytest.raises(InvalidField, match="Write a version after /rollback"):
        await do(heed, text)


async def test_a_version_that_is_gone_names_those_that_are_left(heed: Heed) -> None:
    """No such version, and one whose files made room: nothing changes."""
    await talk(heed, "bees")
    for text in ("too long", "no emoji", "a question"):
        await do(heed, f"/feedback {text}")
    ana = await heed.core.gateway.person(ANA)
    await heed.core.database.write(lambda s: versions.prune(s, ana, 2))
    with pytest.raises(NotFound, match=r'Version 1 is not kept any more(.|\n)*v3 +"a question"  <- answers now'):
        await do(heed, "/rollback 1")
    with pytest.raises(NotFound, match=r'o adapter version 9(.|\n)*"no emoji"'):
        await do(heed, "/rollback 9")
    assert (await heed.core.gateway.user(ana)).active_version == 3


async def test_history_and_reset(heed: Heed) -> None:
    """/history shows the last turns, /reset ends the conversation."""
    await talk(heed, "bees")
    await talk(heed, "wasps")
    assert "bees" not in (await do(heed, "/history 1")).text
    assert "bees" in (await do(heed, "/history")).text
    await do(heed, "/reset")
    assert (await do(heed, "/history")).text == "Nothing has been said in this conversation yet."


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
    assert "v1 (1 version made)" in text


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
    assert "Learning is off" in (await do(heed, "/learning off")).text
    lesson = (await do(heed, "/feedback too long")).lesson
    assert lesson is not None
    assert lesson.outcome.status == "kept"
    assert "Learning is on" in (await do(heed, "/learning on")).text
    with pytest.raises(InvalidField):
        await do(heed, "/learning maybe")


async def test_next_messages_are_learned_from_where_somebody_says_so(heed: Heed) -> None:
    """/learning shows it; what was said is on record with its wording, and learning itself stays as it was."""
    assert "next messages do not count" in (await do(heed, "/learning")).text
    assert "may be learned from" in (await do(heed, "/learning follow-ups on")).text
    assert "next messages count a little, too" in (await do(heed, "/learning")).text
    user_id = await heed.core.gateway.person(ANA)
    (step,) = await heed.core.database.read(lambda s: steps.history(s, user_id))
    assert (step.choice, step.wording) == (ConsentChoice.FOLLOW_UPS, "1")
    assert (await heed.core.gateway.user(user_id)).is_learning
    await do(heed, "/learning Follow-ups OFF")
    assert "next messages do not count" in (await do(heed, "/learning")).text


async def test_forget_asks_first(heed: Heed) -> None:
    """/forget alone erases nothing; /forget everything erases the person."""
    await talk(heed, "bees")
    assert "/forget everything" in (await do(heed, "/forget")).text
    assert len(await heed.core.database.read(all_ids)) == 1
    await do(heed, "/forget everything")
    assert await heed.core.database.read(all_ids) == []


async def test_privacy_is_stated(heed: Heed) -> None:
    """/privacy says what is kept and how it goes."""
    assert "/forget" in (await do(heed, "/privacy")).text


async def on_telegram(heed: Heed, text: str, place: Place = PRIVATE, author: Author = EVE) -> CommandReply:
    """Have a command done on a chat platform."""
    given = person.parse(text)
    assert given is not None
    user_id = await heed.core.gateway.person(author, is_learning=False)
    return await person.run(heed.core, user_id, place, given, author)


def test_the_menu_has_every_command() -> None:
    """All of them in order, the admins' marked and last, each fit for both platforms' menus."""
    listed = person.menu()
    names = [entry.name for entry in listed]
    assert [name for name in names if name in ISSUED.split()] == ISSUED.split()
    assert [entry.name for entry in listed if entry.is_admin] == list(admin.COMMANDS)
    assert names == [*COMMANDS, *admin.COMMANDS]
    for entry in listed:
        assert entry.name.isascii()
        assert entry.name.isalpha()
        assert entry.name.islower()
        assert len(entry.name) <= 32
        assert 1 <= len(entry.summary) <= 100
        assert len(entry.choices) <= 25


def test_the_menu_hints_at_arguments() -> None:
    """What comes after the name, with the choices there are."""
    by_name = {entry.name: entry for entry in person.menu()}
    assert by_name["allow"].argument_hint == "<account>"
    assert by_name["rollback"].argument_hint == "<version>"
    assert by_name["help"].argument_hint == ""
    assert by_name["learning"].choices == ("on", "off")
    assert {name for name, entry in by_name.items() if not entry.is_private} == {
        "feedback", "note", "retry", "undo", "justthis", "fromnowon", "cancel", "reset"
    }  # fmt: skip


async def test_start_greets_and_asks(heed: Heed) -> None:
    """On a chat platform it is the greeting with the consent choice, and that is on record; locally a hint."""
    said = await on_telegram(heed, "/start")
    assert "May I learn from your corrections?" in said.text
    assert [button.action for button in said.buttons[0]] == ["learn:yes", "learn:no"]
    eve = await heed.core.gateway.person(EVE)
    (step,) = await heed.core.database.read(lambda s: steps.history(s, eve))
    assert step.choice == ConsentChoice.ASKED
    assert "/help" in (await do(heed, "/start")).text


async def test_learning_needs_consent_on_a_platform(heed: Heed) -> None:
    """On records a yes; off asks first, and taking it back removes what was learned."""
    eve = await heed.core.gateway.person(EVE, is_learning=False)
    assert "Learning is off" in (await on_telegram(heed, "/learning")).text
    await on_telegram(heed, "/learning on")
    assert "Learning is on" in (await on_telegram(heed, "/learning")).text
    asked = await on_telegram(heed, "/learning off")
    assert [button.action for button in asked.buttons[0]] == ["learn:withdraw", "learn:keep"]
    assert (await heed.core.gateway.user(eve)).is_learning
    assert "is removed" in (await on_telegram(heed, "/learning off yes")).text
    assert not (await heed.core.gateway.user(eve)).is_learning


@pytest.mark.parametrize("name", ["notes", "history", "metrics", "export", "persona"])
async def test_in_a_group_nothing_of_ones_own_is_shown(heed: Heed, name: str) -> None:
    """Everybody there would read it, also what was written on Discord; the answer to a slash command has one reader."""
    said = await on_telegram(heed, f"/{name}", GROUP)
    assert "in private" in said.text
    assert said.files == ()
    channel, on_discord = Place("discord", "7", is_private=False), Author("discord", "5")
    assert "in private" in (await on_telegram(heed, f"/{name}", channel, on_discord)).text
    user_id = await heed.core.gateway.person(on_discord, is_learning=False)
    given = Command(name)
    said = await person.run(heed.core, user_id, channel, given, on_discord, is_interaction=True)
    assert "in private" not in said.text
    assert said.is_private


async def test_export_is_a_file(heed: Heed) -> None:
    """A zip with one line about it."""
    await talk(heed, "bees")
    said = await do(heed, "/export")
    ((name, content),) = said.files
    assert (name, content[:2]) == ("heed-export.zip", b"PK")
    assert "answers: 1" in said.text


async def test_forgetting_on_a_platform_is_confirmed_by_a_button(start_heed: StartHeed) -> None:
    """The button's command erases the person, their consent and their being let in."""
    heed = await start_heed(access={"mode": "allow"})
    access = heed.core.access
    await access.allow("telegram", "5", "operator")
    asked = await on_telegram(heed, "/forget")
    assert [button.action for button in asked.buttons[0]] == ["forget:yes", "forget:no"]
    await on_telegram(heed, "/learning on")
    await on_telegram(heed, "/forget everything")
    assert await heed.core.database.read(all_ids) == []
    assert not (await access.authorise(EVE, PRIVATE, "message")).is_allowed


async def test_lessons_and_answers_by_command_are_counted(start_heed: StartHeed) -> None:
    """Somebody at their limit is told when it resets; locally there is none."""
    heed = await start_heed(access={"mode": "open", "updates_per_hour": 1, "messages_per_hour": 1})
    gateway = heed.core.gateway
    await gateway.answer(await gateway.turn(Message(EVE, PRIVATE, "bees")))
    assert (await on_telegram(heed, "/feedback too long")).lesson is not None
    said = await on_telegram(heed, "/feedback too short")
    assert (said.lesson, "is free in 60 minutes" in said.text) == (None, True)
    assert "is free in" in (await on_telegram(heed, "/retry")).text
    await talk(heed, "bees")
    for _ in range(3):
        assert (await do(heed, "/feedback too long")).lesson is not None


async def test_a_note_that_is_there_already_is_told(heed: Heed) -> None:
    """In other letters it is the same; there is one note of it, and deleted it is a new one."""
    await do(heed, "/note call me Ana")
    assert (await do(heed, "/note  Call me ana.")).text == "I already keep that in mind: call me Ana"
    assert (await do(heed, "/notes")).text.count("call me") == 1
    await do(heed, "/notes delete 1")
    assert (await do(heed, "/note call me Ana")).text == "Noted: call me Ana"


@pytest.mark.parametrize("text", ["/feedback", "/note", "/feedback   "])
async def test_empty_words_are_refused(heed: Heed, text: str) -> None:
    """They say what to write, and cost nothing."""
    await talk(heed, "bees")
    with pytest.raises(InvalidField):
        await do(heed, text)


async def test_privacy_names_consent_where_it_is_asked(heed: Heed) -> None:
    """What is kept of consent, and what outlives /forget."""
    assert "your own yes" in (await on_telegram(heed, "/privacy")).text
    assert "your own yes" not in (await do(heed, "/privacy")).text
