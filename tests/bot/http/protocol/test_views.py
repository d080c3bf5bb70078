"""bot.http.protocol.views: rows as JSON."""

from bot.core.lessons import LessonResult
from bot.core.standing_notes import StandingNotes
from bot.http.protocol import views
from engine.requests import LearnOutcome
from storage.tables import Completion, Feedback, Note


def test_a_lesson_has_what_the_contract_says() -> None:
    """A lesson always has feedback_id, status and adapter_version, and other fields only if they are set."""
    row = Feedback(id="fb-1", user_id="u", kind="correction")
    plain = views.lesson(LessonResult(row, LearnOutcome("fb-1", "kept", 0)))
    assert plain == {"feedback_id": "fb-1", "status": "kept", "adapter_version": 0}


def test_an_update_shows_its_heat() -> None:
    """An update has token texts with their weights, in order."""
    outcome = LearnOutcome("fb-1", "learned", 1, steps=3, heat=[("a", 0.5), (" b", -1.0)], update_id="upd-1")
    update = views.update(outcome)
    assert update is not None
    assert update["heat"] == [("a", 0.5), (" b", -1.0)]


def test_a_turn_shows_its_question() -> None:
    """A turn's question is the person's last message."""
    row = Completion(
        id="c", user_id="u", text="hi", messages=[{"role": "system", "content": "s"}, {"role": "user", "content": "q"}]
    )
    assert views.turn(row, [])["question"] == "q"


def test_a_note_shows_where_it_lives() -> None:
    """A note has its state and its number of tokens."""
    row = Note(id="n", user_id="u", text="t", state="in_prompt", num_tokens=3)
    note = views.note(row, StandingNotes([row], frozenset(["n"])))
    assert (note["state"], note["num_tokens"]) == ("in_prompt", 3)
