"""bot.access.consent: learning is off until yes, and withdrawing removes what was learned."""

import pytest

from bot.access import consent as wording
from bot.access.consent import ConsentFlow
from bot.core.feedback import FeedbackRecord
from bot.events import Author, Message, Place
from storage.conversations import completions
from storage.kinds import ConsentChoice, FeedbackKind
from storage.learning import feedback, notes, versions
from storage.people import consent as steps
from tests.bot.conftest import Heed, StartHeed

EVE = Author("telegram", "5", "Eve")
HOME = Place("telegram", "5")
CHANNEL = Place("discord", "77", is_private=False)
PERMISSION = {"training_permission": "granted by Discord on 1 May, ticket 123"}


async def meet(heed: Heed, author: Author = EVE) -> str:
    """Somebody writes for the first time."""
    return await heed.core.gateway.person(author, is_learning=False)


async def is_learning(heed: Heed, user_id: str) -> bool:
    """Whether corrections train."""
    return (await heed.core.gateway.user(user_id)).is_learning


async def correct(heed: Heed, author: Author = EVE) -> str:
    """An answer and a correction of it; what became of it."""
    gateway, place = heed.core.gateway, Place(author.platform, author.account)
    answer = await gateway.answer(await gateway.turn(Message(author, place, "bees")))
    record = FeedbackRecord(FeedbackKind.CORRECTION, answer.id, "too long")
    return (await heed.core.lessons.teach(answer.user_id, record)).outcome.status


@pytest.fixture
def consent(heed: Heed) -> ConsentFlow:
    """The consent of a heed with default settings."""
    return heed.core.consent


async def test_the_greeting_asks_and_says_what_is_kept(consent: ConsentFlow) -> None:
    """What heed keeps, what it learns, how to take it back, and two buttons."""
    notice = consent.greeting("telegram")
    for words in ("What I keep", "What I learn", "/learning off", "/privacy", "/export", "/forget"):
        assert words in notice.text
    assert [button.action for button in notice.rows[0]] == ["learn:yes", "learn:no"]


async def test_everybody_is_greeted_once(heed: Heed, consent: ConsentFlow, start_heed: StartHeed) -> None:
    """Until it is recorded that somebody was asked, they are greeted; after a restart it is known."""
    user_id = await meet(heed)
    assert await consent.needs_greeting(user_id)
    await consent.record(user_id, ConsentChoice.ASKED, HOME)
    assert not await consent.needs_greeting(user_id)
    later = await start_heed()
    assert not await later.core.consent.needs_greeting(user_id)
    assert not await is_learning(heed, user_id)


async def test_new_words_are_asked_again(heed: Heed, consent: ConsentFlow, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new wording is put to everybody; until they answer, their earlier yes stands."""
    user_id = await meet(heed)
    await consent.choose(user_id, "yes", HOME)
    monkeypatch.setattr(wording, "WORDING", "2")
    again = ConsentFlow(heed.core.database, heed.core.engine, heed.core.settings)
    assert await again.needs_greeting(user_id)
    await again.record(user_id, ConsentChoice.ASKED, HOME)
    assert not await again.needs_greeting(user_id)
    assert await is_learning(heed, user_id)


async def test_a_teacher_elsewhere_is_told_of_and_asked_about(heed: Heed, start_heed: StartHeed) -> None:
    """Whoever said yes before is asked anew, and learning goes on meanwhile; /privacy names the place, too."""
    user_id = await meet(heed)
    before = heed.core.consent
    assert "Nothing is sent anywhere else" in before.greeting("telegram").text
    await before.choose(user_id, "yes", HOME)
    later = await start_heed(curriculum={"url": "https://teacher.example/v1", "model": "m"})
    consent = later.core.consent
    assert "teacher.example" in consent.greeting("telegram").text
    assert "Nothing is sent anywhere else" not in consent.greeting("telegram").text
    assert await consent.needs_greeting(user_id)
    assert await is_learning(later, user_id)
    assert not await later.core.database.read(lambda s: steps.may_be_sent(s, user_id))
    await consent.choose(user_id, "yes", HOME)
    assert await later.core.database.read(lambda s: steps.may_be_sent(s, user_id))
    assert not await consent.needs_greeting(user_id)
    without = await start_heed()
    assert not await without.core.consent.needs_greeting(user_id)


async def test_yes_turns_learning_on_and_is_on_record(heed: Heed, consent: ConsentFlow) -> None:
    """Before the yes a correction is kept, after it one is learned; the record has wording, place and time."""
    user_id = await meet(heed)
    assert await correct(heed) == "kept"
    assert "learning is on" in (await consent.choose(user_id, "yes", HOME)).text
    assert await correct(heed) == "learned"
    (step,) = await heed.core.database.read(lambda s: steps.history(s, user_id))
    assert (step.choice, step.wording, step.platform, step.place) == ("yes", wording.WORDING, "telegram", "5")
    assert step.created_at > 0


async def test_just_chat_leaves_it_off(heed: Heed, consent: ConsentFlow) -> None:
    """No is on record, too, and asks nothing further."""
    user_id = await meet(heed)
    notice = await consent.choose(user_id, "no", HOME)
    assert (notice.text, notice.rows) == (wording.NOT_LEARNING, ())
    assert not await is_learning(heed, user_id)
    assert not await consent.needs_greeting(user_id)


async def test_no_after_yes_asks_for_confirmation(heed: Heed, consent: ConsentFlow) -> None:
    """Removing what was learned takes a second press, and keeping it changes nothing."""
    user_id = await meet(heed)
    await consent.choose(user_id, "yes", HOME)
    notice = await consent.choose(user_id, "no", HOME)
    assert [button.action for button in notice.rows[0]] == ["learn:withdraw", "learn:keep"]
    assert "learning is on" in (await consent.choose(user_id, "keep", HOME)).text
    assert await is_learning(heed, user_id)
    assert len(await heed.core.database.read(lambda s: steps.history(s, user_id))) == 1


async def test_withdrawing_removes_examples_and_adapter(heed: Heed, consent: ConsentFlow) -> None:
    """Feedback, taught notes and versions go; own notes and conversations stay; the base model answers."""
    user_id = await meet(heed)
    await consent.choose(user_id, "yes", HOME)
    assert await correct(heed) == "learned"
    note = FeedbackRecord(FeedbackKind.NOTE, None, "call me Eve")
    await heed.core.lessons.teach(user_id, note)
    await consent.choose(user_id, "withdraw", HOME)
    read = heed.core.database.read
    assert [row.text for row in await read(lambda s: feedback.history(s, user_id, 9))] == ["call me Eve"]
    assert [row.text for row in await read(lambda s: notes.live(s, user_id))] == ["call me Eve"]
    assert await read(lambda s: versions.history(s, user_id)) == []
    assert len(await read(lambda s: completions.recent(s, user_id, 9))) == 1
    user = await heed.core.gateway.user(user_id)
    assert (user.is_learning, user.active_version) == (False, 0)
    assert await correct(heed) == "kept"


async def test_a_withdrawal_cut_short_is_finished_at_the_start(heed: Heed, consent: ConsentFlow) -> None:
    """What was recorded and not yet done is done before anybody is heard."""
    user_id = await meet(heed)
    await consent.choose(user_id, "yes", HOME)
    await correct(heed)
    await consent.record(user_id, ConsentChoice.WITHDRAWN, HOME)
    await consent.start()
    assert await heed.core.database.read(lambda s: versions.history(s, user_id)) == []


async def test_discord_learns_only_with_the_operators_permission(heed: Heed, consent: ConsentFlow) -> None:
    """Without it the greeting asks nothing, and a yes is refused with the reason."""
    user_id = await meet(heed, Author("discord", "5"))
    notice = consent.greeting("discord")
    assert "Discord's permission" in notice.text
    assert notice.rows == ()
    await consent.record(user_id, ConsentChoice.ASKED, CHANNEL)
    assert (await consent.choose(user_id, "yes", CHANNEL)).text == wording.NOT_PERMITTED
    assert not await is_learning(heed, user_id)


async def test_the_permission_is_applied_at_the_start(start_heed: StartHeed) -> None:
    """Once it is there people are asked; when it goes, learning stops, and comes back with it."""
    without = await start_heed()
    user_id = await meet(without, Author("discord", "5"))
    await without.core.consent.record(user_id, ConsentChoice.ASKED, CHANNEL)
    heed = await start_heed(discord=PERMISSION)
    consent = heed.core.consent
    assert await consent.needs_greeting(user_id)
    await consent.choose(user_id, "yes", CHANNEL)
    assert await is_learning(heed, user_id)
    later = await start_heed()
    await later.core.consent.start()
    assert not await is_learning(heed, user_id)
    assert not await later.core.consent.needs_greeting(user_id), "nothing to ask about"
    await consent.start()
    assert await is_learning(heed, user_id)


async def test_the_start_leaves_other_platforms_alone(heed: Heed, consent: ConsentFlow) -> None:
    """Local people learn as they did."""
    user_id = await heed.core.gateway.person(Author("http", "local"))
    await consent.start()
    assert await is_learning(heed, user_id)


async def test_an_old_button_of_somebody_forgotten_makes_nobody(heed: Heed, consent: ConsentFlow) -> None:
    """After /forget the person is new, is greeted again, and learning is off."""
    user_id = await meet(heed)
    await consent.choose(user_id, "yes", HOME)
    await heed.core.gateway.forget(user_id)
    again = await meet(heed)
    assert again != user_id
    assert await consent.needs_greeting(again)
    assert not await is_learning(heed, again)


def test_the_actions_fit_a_button() -> None:
    """48 ASCII characters at most."""
    rows = (*wording.ASK, *wording.CONFIRM)
    assert all(button.action.isascii() and len(button.action) <= 48 for row in rows for button in row)
