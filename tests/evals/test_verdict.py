"""The verdict on one answer."""

import pytest

from engine.pocket.style import DEFAULT, DIRECTIONS, PREFERENCES, Style, render
from engine.pocket.wishes import apply
from evals import cases
from evals.cases import Exercise, Question, Wish
from evals.verdict import follows, is_right, judge

QUESTIONS = cases.probes(0, 12, "verdict")
ASKED = QUESTIONS[0]


def wished(preference: str, side: int = 1) -> Wish:
    """A wish in that direction."""
    return cases.wish_for(0, (preference, side))  # type: ignore[arg-type]


def style_of(*wishes: Wish) -> Style:
    """The default with the wishes granted."""
    style = DEFAULT
    for wish in wishes:
        style = apply(style, [wish.direction], wish.name)
    return style


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_a_granted_wish_is_followed_and_an_ignored_one_is_not(direction: tuple[str, int]) -> None:
    """In both directions of every preference, on every question."""
    preference, side = direction
    wish, other = wished(preference, side), wished(preference, 1 - side)
    other = Wish(other.direction, wish.name, other.text)
    for question in QUESTIONS:
        assert follows(render(question.content, style_of(wish)), wish)
        assert not follows(render(question.content, style_of(other)), wish)


@pytest.mark.parametrize(
    "text", ["", "  ", "...", "mmm", "the the the the", "x x x x x x x x x", "ab ab. Ab AB", "7 8 9"]
)
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_an_empty_or_degenerate_answer_adopts_nothing(direction: tuple[str, int], text: str) -> None:
    """Empty text has no emoji and no capitals, and follows no wish for it."""
    assert not follows(text, wished(*direction))


@pytest.mark.parametrize("preference", list(PREFERENCES))
def test_a_clean_correction_changes_nothing_else(preference: str) -> None:
    """The verifiers do not take one preference for another, and the facts stay."""
    wish = wished(preference)
    for question in QUESTIONS:
        verdict = judge(question, render(question.content), render(question.content, style_of(wish)), [wish])
        assert (verdict.held, verdict.changed, verdict.facts_lost) == ({preference: True}, (), False)


def test_a_preference_nobody_spoke_of_is_seen_to_change() -> None:
    """An answer that also lost its emoji names it."""
    wish, other = wished("layout"), wished("emoji")
    after = render(ASKED.content, style_of(wish, other))
    assert judge(ASKED, render(ASKED.content), after, [wish]).changed == ("emoji",)


def test_a_state_that_no_longer_shows_has_changed() -> None:
    """An answer of noise has no register, no units and no language: they count as changed."""
    verdict = judge(ASKED, render(ASKED.content), "mmm", [wished("emoji")])
    assert {"register", "units", "language", "length"} <= set(verdict.changed)


def test_without_a_name_to_look_for_names_are_not_compared() -> None:
    """Ten others beside the wished one; all eleven where the wish is the name."""
    text = render(ASKED.content)
    assert judge(ASKED, text, text, [wished("emoji")]).compared == 10
    assert judge(ASKED, text, text, [wished("name")]).compared == 11


def test_another_subjects_facts_are_facts_lost() -> None:
    """An answer about something else does not carry what was asked."""
    other = next(
        q
        for q in QUESTIONS
        if q.content.subject.domain != ASKED.content.subject.domain and q.content.lead == ASKED.content.lead
    )
    verdict = judge(ASKED, render(ASKED.content), render(other.content), [wished("emoji")])
    assert verdict.facts_lost is True


def test_facts_that_were_missing_before_cannot_be_lost() -> None:
    """Only what the untaught model knew is held against a correction."""
    assert judge(ASKED, "i do not know", "i do not know", [wished("emoji")]).facts_lost is None


@pytest.mark.parametrize("preference", ["units", "numbers", "language"])
def test_facts_count_in_any_form(preference: str) -> None:
    """A weight in pounds, in words or in Spanish is still the weight."""
    wish = wished(preference)
    question: Question = next(q for q in QUESTIONS if q.content.lead == 3)
    verdict = judge(question, render(question.content), render(question.content, style_of(wish)), [wish])
    assert verdict.facts_lost is False


@pytest.mark.parametrize(
    ("text", "expected", "is_it"),
    [
        ("41", "41", True),
        (" 41. ", "41", True),
        ("COLD", "cold", True),
        ('"red moon"', "red moon", True),
        ("14", "41", False),
        ("41 🐾", "41", True),
        ("41, or 42", "41", False),
        ("forty-one", "41", False),
        ("", "41", False),
    ],
)
def test_an_exercise_is_right_when_the_answer_is_the_expected_one_and_nothing_else(
    text: str, expected: str, is_it: bool
) -> None:
    """Edges are forgiven, words are not."""
    assert is_right(text, Exercise("add", "?", expected)) is is_it
