"""bot.core.feedback: the one table from what a person does to what it says about an answer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.core.feedback import ASK_WORSE, WORSE, FeedbackRecord, is_regression, record
from bot.errors import InvalidField
from bot.events import Command, Edit, FeedbackEvent, Press, Reaction, Reply
from storage.kinds import FeedbackKind


@pytest.mark.parametrize(
    ("event", "kind", "text"),
    [
        (Reply("c", " too long "), FeedbackKind.CORRECTION, "too long"),
        (Command("feedback", "no emoji", "c"), FeedbackKind.CORRECTION, "no emoji"),
        (Reply("c", "say it like this: Hi."), FeedbackKind.IDEAL, "Hi."),
        (Reply("c", "Sag es lieber so: Hallo."), FeedbackKind.IDEAL, "Hallo."),
        (Reply("c", "No, put it this way:\nHi\nthere"), FeedbackKind.IDEAL, "Hi\nthere"),
        (Edit("c", "Hi."), FeedbackKind.IDEAL, "Hi."),
        (Reaction("c", "👎", "too long"), FeedbackKind.CORRECTION, "too long"),
        (Reaction("c", "-1", "say it like this: Hi."), FeedbackKind.IDEAL, "Hi."),
        (Reaction("c", "-1"), FeedbackKind.REACTION, ""),
        (Reply("c", "It was better before."), FeedbackKind.REACTION, "It was better before."),
        (Reaction("c", "-1", "worse than before"), FeedbackKind.REACTION, "worse than before"),
        (Command("feedback", "go back", "c"), FeedbackKind.REACTION, "go back"),
        (Reaction("c", "🍕"), FeedbackKind.REACTION, ""),
        (Reaction("c", "👍🏽"), FeedbackKind.APPROVAL, ""),
        (Reaction("c", "❤️"), FeedbackKind.APPROVAL, ""),
        (Reaction("c", "+1"), FeedbackKind.APPROVAL, ""),
        (Press("c", "approve"), FeedbackKind.APPROVAL, ""),
        (Command("note", "call me Ana"), FeedbackKind.NOTE, "call me Ana"),
    ],
)
def test_each_signal_becomes_its_kind(event: FeedbackEvent, kind: FeedbackKind, text: str) -> None:
    """Every row of the module's table holds."""
    made = record(event)
    assert (made.kind, made.text) == (kind, text)


@pytest.mark.parametrize(
    "event",
    [Reply("c", "  "), Edit("c", ""), Command("note", ""), Reaction("c", " "), Press("c", "dance"), Command("help")],
)
def test_what_says_nothing_is_refused(event: FeedbackEvent) -> None:
    """Empty words, an unknown button and a command that is no feedback raise InvalidField."""
    with pytest.raises(InvalidField):
        record(event)


def test_only_words_and_notes_are_lessons() -> None:
    """Reactions and approvals never reach the engine by themselves."""
    lessons = {kind for kind in FeedbackKind if FeedbackRecord(kind, "c", "x").is_lesson}
    assert lessons == {FeedbackKind.CORRECTION, FeedbackKind.IDEAL, FeedbackKind.NOTE}


def test_a_bare_thumb_down_asks_for_a_reason() -> None:
    """A thumb down alone wants a reason; one with a reason, or a neutral emoji, does not."""
    assert record(Reaction("c", "👎")).wants_reason
    assert not record(Reaction("c", "👎", "too long")).wants_reason
    assert not record(Reaction("c", "🍕")).wants_reason


@given(st.text(min_size=1).filter(str.strip))
def test_any_words_become_feedback(text: str) -> None:
    """No text a person can write makes the mapping fail, and none comes out empty."""
    assert record(Reply("c", text)).text


@pytest.mark.parametrize(
    "text",
    [
        "worse than before", "it was better before", "go back", "Worse than before!", "That's worse.", "much worse now",
        "This is much worse now", "It was better before, please", "Better before", "please go back", "it got worse",
        "go back to how it was", "you were better before", "I liked it better before", "no, go back", "it\u2019s worse",
        "go back to the old version", "The answers were better before.",
    ],
)  # fmt: skip
def test_words_that_it_was_better_before_name_no_wish(text: str) -> None:
    """Nothing is learned from them; the person is asked, and told of /undo."""
    made = record(Reply("c", text))
    assert (made.value, made.is_lesson, made.question) == (WORSE, False, ASK_WORSE)


@pytest.mark.parametrize(
    "text",
    [
        "worse than before: too long", "go back to the part about bees", "it was better before you used emoji", "go",
        "make it worse", "be better", "the second sentence is worse than the first", "too long", "",
        "tell me what was better before", "say it like before", "go back to Spanish", "better",
    ],
)  # fmt: skip
def test_words_that_name_a_wish_still_teach(text: str) -> None:
    """What to change can be read from them."""
    assert not is_regression(text)
