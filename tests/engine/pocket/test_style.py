"""engine.pocket.style: the renderer, the spliced answers and the verifiers agree with each other."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.pocket.style import (
    DEFAULT,
    DIRECTIONS,
    PREFERENCES,
    Content,
    Factual,
    Plain,
    Style,
    Talk,
    has_facts,
    observe,
    render,
    slots,
    splice,
)
from engine.pocket.subjects import SUBJECTS
from engine.pocket.talk import NOT_TOLD, SMALL_TALK, UNKNOWN, who

NAME = "Ana"
BODY, TERM = 4, 9  # parts of a slot's key: the body, and the sign that ends a sentence
_values = {p: st.sampled_from(pair) for p, pair in PREFERENCES.items()} | {"name": st.sampled_from(("", NAME))}
styles = st.builds(Style, **_values)
factuals = st.builds(Factual, st.sampled_from(SUBJECTS), st.integers(0, 3))
talks: st.SearchStrategy[Talk] = st.sampled_from([*(t for _, _, t in SMALL_TALK), UNKNOWN, NOT_TOLD, who()])
contents: st.SearchStrategy[Content] = factuals | talks


def wanted(style: Style) -> dict[str, str]:
    """Return the style as `observe` reports it."""
    return {p: getattr(style, p) for p in PREFERENCES}


def test_there_are_twelve_preferences_with_two_sides_each() -> None:
    """The promised twelve, each in both directions, and the default style is the first side of all."""
    assert len(PREFERENCES) == 12
    assert len(DIRECTIONS) == 24
    assert wanted(DEFAULT) == {p: default for p, (default, _) in PREFERENCES.items()}


def test_the_default_has_the_habits_people_correct() -> None:
    """An untrained answer is long, carries an emoji and ends with a question."""
    koala = SUBJECTS[0]
    said = "Sure, the koala is a mammal. It lives in forests. It eats leaves. It weighs 10 kg. 🐾 Wanna know more?"
    assert render(Factual(koala)) == said


@given(factuals, styles)
def test_the_style_of_a_rendered_answer_can_be_read_back(content: Factual, style: Style) -> None:
    """For every style, observing a rendered answer finds exactly the twelve values it was rendered with."""
    assert observe(render(content, style), NAME) == wanted(style)


@given(talks, styles)
def test_small_talk_shows_no_other_style_than_the_wanted_one(content: Talk, style: Style) -> None:
    """Emoji, case, question, name and tone are read back from small talk as they were rendered."""
    seen = observe(render(content, style), NAME)
    assert all(seen[p] == getattr(style, p) for p in ("emoji", "case", "question", "name", "tone"))


@given(factuals, styles)
def test_a_rendered_answer_carries_its_facts(content: Factual, style: Style) -> None:
    """No style loses the fact that was asked for, nor the measure."""
    assert has_facts(render(content, style), content, style)


@given(factuals, styles)
def test_another_subjects_answer_does_not_carry_the_facts(content: Factual, style: Style) -> None:
    """An answer that names other values for the asked fact and the measure fails the check."""
    others = [
        s
        for s in SUBJECTS
        if s.domain == content.subject.domain
        and s.measure != content.subject.measure
        and not set(s.values) & set(content.subject.values)
    ]
    for other in others:
        assert not has_facts(render(Factual(other, content.lead), style), content, style)


@given(factuals, styles)
def test_changing_one_preference_shows_in_the_text(content: Factual, style: Style) -> None:
    """Each of the twelve preferences changes every answer about a subject, so compliance can always be seen."""
    for preference, (default, other) in PREFERENCES.items():
        values = (default, NAME if other == "*" else other)
        first, second = (render(content, style.with_value(preference, v)) for v in values)
        assert first != second, preference


@given(styles, st.text(max_size=40))
def test_no_style_touches_a_skill(style: Style, text: str) -> None:
    """A plain answer is the same in every style."""
    assert render(Plain(text), style) == text


@given(contents, styles)
def test_slots_stand_in_the_order_of_their_keys(content: Content, style: Style) -> None:
    """Keys rise strictly, which is what lets an answer begun in one style go on in another."""
    keys = [key for key, _ in slots(content, style)]
    assert keys == sorted(set(keys))


@given(contents, styles, st.integers(0, 40))
def test_an_answer_continued_in_its_own_style_is_the_answer(content: Content, style: Style, cut: int) -> None:
    """Splicing a style with itself gives the rendered text, wherever it is cut."""
    stands, follows = splice(content, style, style, cut)
    assert stands + follows == render(content, style)


def is_joined_up(text: str) -> bool:
    """No blank is missing or doubled, and no sign follows another."""
    return not re.search(r"  |[.!?][.!?,]|[.!,][^\W\d_]|[^\W\d_]{2,}\n(?!- )|[a-z][A-Z]", text)


@given(contents, styles, styles, st.integers(1, 40))
def test_a_spliced_answer_joins_up(content: Content, begun: Style, style: Style, cut: int) -> None:
    """What stands begins the answer in the old style, and the joint has its blank and no doubled sign."""
    style = style.with_value("language", begun.language)
    stands, follows = splice(content, begun, style, cut)
    assert render(content, begun).startswith(stands)
    assert is_joined_up(stands + follows)


@given(factuals, styles, styles, st.integers(0, 3))
def test_the_language_can_change_between_two_sentences(
    content: Factual, begun: Style, style: Style, sentence: int
) -> None:
    """An answer cut after a whole sentence goes on in the other language without a missing or doubled blank."""
    begun = begun.with_value("length", "long")
    keys = [key for key, _ in slots(content, begun)]
    cut = keys.index((BODY, sentence, TERM)) + 1
    assert is_joined_up("".join(splice(content, begun, style, cut)))


@given(contents, styles, styles, st.integers(1, 40))
def test_what_follows_the_cut_is_in_the_wanted_style(content: Content, begun: Style, style: Style, cut: int) -> None:
    """The remainder shows nothing that the wanted style forbids, and closes as the wanted style closes."""
    _, follows = splice(content, begun, style, cut)
    seen = observe(follows, NAME)
    assert style.case == "normal" or follows == follows.lower()
    assert style.emoji == "on" or seen["emoji"] == "off"
    assert style.question == "on" or seen["question"] == "off"
    assert style.name or not seen["name"]
    assert style.tone == "enthusiastic" or seen["tone"] == "calm"
    assert seen["units"] in (None, style.units)
    assert seen["register"] in (None, style.register)


@given(factuals, styles, styles, st.integers(1, 40))
def test_an_answer_begun_long_stops_after_its_sentence(content: Factual, begun: Style, style: Style, cut: int) -> None:
    """If a short answer is wanted, at most the sentence that was begun is finished."""
    wish = replace(style, length="short", tone="calm", summary="none")
    _, follows = splice(content, begun.with_value("length", "long"), wish, cut)
    assert follows.count(".") <= 1


@pytest.mark.parametrize(("text", "units"), [("It is 3 m long.", "metric"), ("I'm ready.", None), ("3 ft", "imperial")])
def test_units_are_units(text: str, units: str | None) -> None:
    """The end of "I'm" is no metre."""
    assert observe(text)["units"] == units


@given(st.text(max_size=200), st.text(max_size=10))
def test_any_text_can_be_observed(text: str, name: str) -> None:
    """The verifier answers for all twelve preferences on whatever a model may write."""
    assert observe(text, name).keys() == PREFERENCES.keys()


def test_a_text_that_shows_nothing_is_not_judged() -> None:
    """Language, units, numbers and register are None where an answer has none of them."""
    seen = observe("zzz")
    assert [seen[p] for p in ("language", "units", "numbers", "register", "length")] == [None] * 5
