"""bot.commands.texts: sentences with a capital and a full stop, singular and plural right."""

from dataclasses import replace

import pytest

from bot.commands import texts
from engine.requests import ConsolidationOutcome, LearnOutcome, UndoResult


@pytest.mark.parametrize(("number", "words"), [(0, "0 adapters"), (1, "1 adapter"), (2, "2 adapters")])
def test_a_noun_follows_its_number(number: int, words: str) -> None:
    """One is singular, every other number plural."""
    assert texts.count(number, "adapter") == words


@pytest.mark.parametrize(("given", "said"), [("it is late", "It is late."), ("Done.", "Done."), ("", "")])
def test_a_clause_becomes_a_sentence(given: str, said: str) -> None:
    """It gets a capital and a full stop, unless it has them; nothing stays nothing."""
    assert texts.sentence(given) == said


def test_an_undo_says_which_model_answers_and_which_note_is_deleted() -> None:
    """Without a version left it is the untrained model."""
    assert texts.undone(UndoResult(0, "too long")) == (
        'Undone. The untrained model answers again. The note "too long" is deleted.'
    )
    assert texts.undone(UndoResult(2)) == "Undone. Version 2 answers again."


def test_a_lesson_on_an_uncalibrated_model_says_so() -> None:
    """The version and the time come first; on a calibrated model there is nothing to say."""
    outcome = LearnOutcome("f", "learned", 2, duration_ms=1234.0)
    assert texts.learned(outcome) == "Learned: v2 in 1.2 s."
    assert texts.learned(replace(outcome, is_calibrated=False)) == "Learned: v2 in 1.2 s (uncalibrated model)."


def test_a_lesson_says_which_wishes_it_has_replaced() -> None:
    """By their words, as /notes lists them."""
    outcome = LearnOutcome("f", "learned", 2, duration_ms=1234, replaced=["Answer in Spanish."])
    assert texts.learned(outcome) == 'Learned: v2 in 1.2 s. It takes the place of "Answer in Spanish".'
    assert texts.takes_the_place_of(["keep it short", "one line"]).endswith('of "keep it short" and "one line".')


def test_every_constant_is_a_sentence() -> None:
    """Each fixed text begins with a capital (or heed's name, or a command) and ends with a full stop or an example."""
    fixed = {name: text for name, text in vars(texts).items() if name.isupper() and isinstance(text, str)}
    labels = {
        "CANCEL",
        "ERASE_EVERYTHING",
        "FROM_NOW_ON",
        "HOW_FAR",
        "UNCALIBRATED",
        "JUST_THIS",
        "KEEP_IT",
        "LEARNING_ON",
        "SAYS_SO",
    }
    labels |= {"PRIVACY", "PRIVACY_WITH_CONSENT", "START"}
    wrong = [
        name
        for name, text in fixed.items()
        if name not in labels and not (text[0].isupper() and (text.endswith(".") or ": /" in text))
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (None, "Queued. It begins as soon as every lesson is learned."),
        (
            ConsolidationOutcome("learned", 3, num_new=52, duration_ms=4100),
            "Consolidated: v3 from 52 new signals in 4.1 s.",
        ),
        (
            ConsolidationOutcome("learned", 3, num_new=2, num_rehearsed=7, duration_ms=900),
            "Consolidated: v3 from 2 new signals and 7 earlier lessons in 0.9 s.",
        ),
        (
            ConsolidationOutcome("learned", 3, num_new=1, num_better=4, duration_ms=900),
            "Consolidated: v3 from 1 new signal and 4 better answers in 0.9 s.",
        ),
        (ConsolidationOutcome("rejected", 2, "Answers you liked would have lost facts."),
         "Not consolidated. Answers you liked would have lost facts."),
        (ConsolidationOutcome("kept", 2, "there is nothing new"), "Nothing changed. There is nothing new."),
        (
            ConsolidationOutcome("learned", 4, num_rehearsed=7, duration_ms=900, is_rebuild=True),
            "Made again from zero: v4 from 0 new signals and 7 earlier lessons in 0.9 s.",
        ),
        (ConsolidationOutcome("rejected", 2, "It is worse.", is_rebuild=True), "Not rebuilt. It is worse."),
    ],
)  # fmt: skip
def test_the_line_says_what_became_of_it(outcome: ConsolidationOutcome | None, words: str) -> None:
    """Every outcome is a sentence that needs no knowledge of how heed is made."""
    assert texts.consolidated(outcome) == words


@pytest.mark.parametrize(
    ("note", "reason", "said"),
    [
        ("my dog is called Rex", "It waits.", "Noted: my dog is called Rex\nIt waits."),
        ("Answer briefly.", "", "Noted: Answer briefly."),
        (None, "", "Noted: be brief"),
        (None, "I already keep that in mind: be brief", "I already keep that in mind: be brief"),
    ],
)
def test_a_note_is_confirmed_and_where_it_stands(note: str | None, reason: str, said: str) -> None:
    """In the words that heed keeps it in; one that is there already is not noted again."""
    outcome = LearnOutcome("f", "kept", 0, note=note, reason=reason)
    assert texts.noted(outcome, "be brief") == said


def test_a_note_names_the_one_whose_place_it_takes() -> None:
    """As a lesson does."""
    outcome = LearnOutcome("f", "kept", 0, note="use miles", replaced=["metric please."])
    assert texts.noted(outcome, "use miles") == 'Noted: use miles\nIt takes the place of "metric please".'
