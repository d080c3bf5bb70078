"""engine.samples.notes: when a note leaves the prompt, when it comes back, when a newer one has replaced it."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.config import NoteConfig
from engine.prompts.builder import PromptBuilder
from engine.sample import Score
from engine.samples.notes import (
    GreedyPair,
    NoteEffect,
    NoteView,
    adapter_samples,
    base_samples,
    carries,
    effect_of,
    fitting,
    held_share,
    is_inert,
    is_superseded,
    next_state,
    placebo,
    prompt_notes,
    shown_share,
)
from storage.kinds import NoteState
from storage.tables import Note

CONFIG = NoteConfig()
EFFECT = NoteEffect(0.01, 0.01, gain=4.0, gain_beside=4.0, effect=0.5, placebo_effect=0.05, placebo_gain=0.2, alone=0.5)
SHOWS_NOWHERE = replace(EFFECT, gain=0.1, gain_beside=0.1)
gains = st.lists(st.tuples(st.floats(-20, 20), st.floats(-20, 20)), min_size=1, max_size=8)


def note(text: str, state: NoteState = NoteState.IN_PROMPT, **fields: Any) -> Note:
    """A note of a person."""
    return Note(user_id="u", text=text, state=state, **fields)


def view(probed: Note, *, newer: bool = False) -> NoteView:
    """A note alone, or with a newer one beside it."""
    return NoteView(probed, [probed, note("newer")] if newer else [probed], [])


def test_each_note_leaves_the_prompt_by_itself_once_all_are_probed() -> None:
    """One that is new or being learned brings all of them back, oldest first; a probed one keeps no other there."""
    held, stays = note("a", NoteState.IN_WEIGHTS, probe=1.0), note("b", probe=0.2)
    new, learning = note("c"), note("d", NoteState.LEARNING, probe=0.2)
    assert prompt_notes([held, stays], has_adapter=True) == [stays]
    assert prompt_notes([held], has_adapter=True) == []
    for unknown in (new, learning):
        assert prompt_notes([held, stays, unknown], has_adapter=True) == [held, stays, unknown]


def test_without_an_adapter_every_note_is_said() -> None:
    """The base model holds nothing: after a roll back or a change of model no lesson is lost."""
    live = [note("a"), note("b", NoteState.IN_WEIGHTS)]
    assert prompt_notes(live, has_adapter=False) == live


@given(st.lists(st.integers(0, 60), max_size=40))
def test_notes_never_fill_the_context(sizes: list[int]) -> None:
    """At most sixteen and at most a quarter of the context are said, in order; what was left out did not fit."""
    live = [Note(user_id="u", text=str(i), num_tokens=size) for i, size in enumerate(sizes)]
    kept = fitting(live, CONFIG, 400)
    assert [int(n.text) for n in kept] == sorted(int(n.text) for n in kept)
    assert len(kept) <= 16
    assert sum(n.num_tokens for n in kept) <= 100
    for left in (n for n in live if n not in kept):
        newer = [n for n in kept if int(n.text) > int(left.text)]
        assert len(newer) == 16 or sum(n.num_tokens for n in newer) + left.num_tokens > 100


def test_a_probe_compares_a_note_with_a_placebo_in_its_place(pocket_tokenizer: Any) -> None:
    """With the adapter among the notes that stay, with the base model among those that the teacher reads, and alone."""
    prompts = PromptBuilder(pocket_tokenizer, 2048)
    notes = [note(text, seq=seq) for seq, text in enumerate(("alpha", "beta", "gamma"))]
    seen = NoteView(notes[1], notes, [notes[2]])
    pair = GreedyPair([{"role": "user", "content": "hi"}], [7, 8], [9])
    by_adapter, by_base = adapter_samples(seen, pair, prompts), base_samples(seen, pair, prompts)
    words = ("alpha", "beta", "gamma", "go on")
    said = [
        [[w for w in words if w in pocket_tokenizer.decode(ids)] for ids in (sample.student_ids, sample.teacher_ids)]
        for sample in (*by_adapter, *by_base)
    ]
    assert said == [
        [["gamma"], ["beta", "gamma"]],
        [["gamma"], ["gamma", "go on"]],
        [["alpha", "gamma"], ["alpha", "beta", "gamma"]],
        [["alpha", "gamma"], ["alpha", "beta", "gamma"]],
        [["alpha", "gamma"], ["alpha", "gamma", "go on"]],
        [[], ["beta"]],
    ]
    assert {sample.teacher for sample in by_adapter} == {"current"}
    assert [sample.response_ids for sample in by_base] == [[7, 8], [9], [9], [7, 8]]


@pytest.mark.parametrize("text", ["no", "please write in lowercase letters and nothing else", "bitte kurz"])
def test_a_placebo_is_about_as_long_as_its_note(pocket_tokenizer: Any, text: str) -> None:
    """Length alone moves a model; it says nothing of what the note asks."""
    prompts = PromptBuilder(pocket_tokenizer, 2048)
    unit = prompts.count("ok, go on ")
    assert abs(prompts.count(placebo(text, prompts)) - prompts.count(text)) <= unit


def test_a_probe_reads_the_trainers_scores() -> None:
    """Gains are log-likelihood ratios of whole answers, everything else divergences."""
    scores = [Score([-2.0, -1.0], [-0.5, i - 2.5], 0.0, 0.0, float(i + 1), [], []) for i in range(6)]
    found = effect_of(scores[:2], scores[2:])
    assert found == NoteEffect(1, 2, gain=2, gain_beside=3, effect=3, placebo_effect=5, placebo_gain=4, alone=6)
    assert effect_of(scores[:2], scores[2:5]).alone == 0.0


@pytest.mark.parametrize(
    ("measured", "share"),
    [
        ([(3.0, 3.0), (3.0, 3.0)], 1.0),
        ([(9.0, 3.0), (3.0, 3.0)], 1.0),
        ([(3.0, 3.0), (-3.0, 3.0)], 0.5),
        ([(-3.0, 3.0)], 0.0),
        ([(3.0, 3.0), (-3.0, 0.1)], 1.0),
        ([(0.0, 50.0), (5.0, 5.0)], 0.5),
        ([(5.0, 0.1), (0.1, -0.4)], None),
    ],
)
def test_the_share_counts_the_answers_that_show_the_note(
    measured: list[tuple[float, float]], share: float | None
) -> None:
    """Where the answer with the note in view does not show it nothing is to be held; elsewhere as far as it does."""
    effects = [replace(EFFECT, gain=gain, gain_beside=beside) for gain, beside in measured]
    assert held_share(effects, CONFIG) == (None if share is None else pytest.approx(share))


@pytest.mark.parametrize(
    ("measured", "share", "after"),
    [
        ([(30.0, 30.0), (28.0, 30.0)], 58 / 60, NoteState.IN_WEIGHTS),
        ([(8.0, 40.0), (9.0, 30.0)], 17 / 70, NoteState.IN_PROMPT),
        ([(60.0, 40.0), (9.0, 40.0)], 49 / 80, NoteState.IN_PROMPT),
    ],
)
def test_a_long_answer_that_follows_a_note_at_its_beginning_only_does_not_show_it(
    measured: list[tuple[float, float]], share: float, after: NoteState
) -> None:
    """It has won more nats than count for any one answer, and is still far from what the note does."""
    effects = [replace(EFFECT, gain=gain, gain_beside=beside) for gain, beside in measured]
    assert held_share(effects, CONFIG) == 1.0
    assert shown_share(effects, CONFIG) == pytest.approx(share)
    assert next_state(view(note("a")), effects, CONFIG) == after


def test_an_answer_that_a_placebo_moves_as_far_does_not_show_the_note() -> None:
    """On a real model every change of the prompt moves a long answer by some nats."""
    assert held_share([replace(EFFECT, placebo_gain=-3.0)], CONFIG) is None


@pytest.mark.parametrize(
    ("moved", "placebo", "on_base", "expected"),
    [(0.1, 0.06, 0.0, True), (0.1, 0.04, 0.0, False), (0.1, 0.0, 0.06, True), (0.019, 0.0, 0.0, True)],
)
def test_a_held_note_moves_the_adapter_hardly_more_than_a_placebo(
    moved: float, placebo: float, on_base: float, expected: bool
) -> None:
    """More than one bound on nats: what any words move is a model's own. A tiny move is none."""
    found = replace(EFFECT, moved=moved, placebo_moved=placebo, placebo_effect=on_base)
    assert is_inert([found], CONFIG) is expected
    expected_state = NoteState.IN_WEIGHTS if expected else NoteState.IN_PROMPT
    assert next_state(view(note("a")), [found], CONFIG) == expected_state


@pytest.mark.parametrize(
    ("effect", "placebo", "alone", "is_replaced"),
    [(0.04, 0.05, 0.5, True), (0.06, 0.05, 0.5, False), (0.04, 0.05, 0.09, False), (0.01, 0.0, 0.5, True)],
)
def test_a_note_is_replaced_when_it_is_a_placebo_beside_the_others_only(
    effect: float, placebo: float, alone: float, is_replaced: bool
) -> None:
    """It must move the model alone and no longer do so beside the newer ones."""
    found = replace(EFFECT, effect=effect, placebo_effect=placebo, alone=alone)
    assert is_superseded([found], CONFIG) is is_replaced


@pytest.mark.parametrize("state", [NoteState.IN_PROMPT, NoteState.LEARNING, NoteState.IN_WEIGHTS])
def test_a_held_note_leaves_the_prompt_and_a_failed_one_comes_back(state: NoteState) -> None:
    """The probe decides, wherever the note was before."""
    said = view(note("a", state))
    assert next_state(said, [EFFECT] * 4, CONFIG) == NoteState.IN_WEIGHTS
    assert next_state(said, [EFFECT, replace(EFFECT, gain=-3.0)], CONFIG) == NoteState.IN_PROMPT


def test_a_fact_must_be_right_in_every_answer() -> None:
    """One wrong answer of eight leaves a share of .875, enough for a wish and not for a fact."""
    effects = [*[EFFECT] * 7, replace(EFFECT, gain=-9.0)]
    assert next_state(view(note("a")), effects, CONFIG) == NoteState.IN_WEIGHTS
    assert next_state(view(note("a", questions=["q"])), effects, CONFIG) == NoteState.IN_PROMPT
    assert next_state(view(note("a", questions=["q"])), effects[:7], CONFIG) == NoteState.IN_WEIGHTS


@pytest.mark.parametrize(
    ("told", "question", "without", "beside", "expected"),
    [
        ("i live in Oslo", "where do i live?", "You live in Oslo.", "You live in Oslo.", True),
        ("i live in Oslo", "where do i live?", "You live in Rex.", "You live in Oslo.", False),
        ("i live in Oslo", "where do i live?", "you live in oslo", "Your home is in Oslo!", True),
        ("我的狗叫雷克斯", "我的狗叫什么", "你的狗叫露娜。", "你的狗叫雷克斯。", False),
        ("我的狗叫雷克斯", "我的狗叫什么", "它叫雷克斯。", "你的狗叫雷克斯。", True),
        ("i live in Oslo", "where do i live?", "I don't know.", "I don't know.", True),
    ],
)
def test_an_answer_without_the_note_must_have_its_words(
    told: str, question: str, without: str, beside: str, expected: bool
) -> None:
    """The words that the note brings into the answer, in whatever script; those of the question prove nothing."""
    assert carries(told, question, without, beside) is expected
    effects = [EFFECT, replace(SHOWS_NOWHERE, says_as_much=expected)]
    after = NoteState.IN_WEIGHTS if expected else NoteState.IN_PROMPT
    assert next_state(view(note("a", questions=["q"])), effects, CONFIG) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (NoteState.IN_PROMPT, NoteState.IN_PROMPT),
        (NoteState.IN_WEIGHTS, NoteState.IN_WEIGHTS),
        (NoteState.LEARNING, NoteState.IN_PROMPT),
    ],
)
def test_a_note_that_shows_nowhere_stays_where_it_is(before: NoteState, after: NoteState) -> None:
    """A fact that no probe asks about proves nothing either way; only "learning" is over."""
    assert next_state(view(note("my dog is Rex", before)), [SHOWS_NOWHERE], CONFIG) == after


def test_the_newest_note_is_never_replaced() -> None:
    """The newest note is never superseded, even if it is inert beside older notes."""
    inert = [replace(EFFECT, effect=0.0)]
    assert next_state(view(note("a"), newer=True), inert, CONFIG) == NoteState.SUPERSEDED
    assert next_state(view(note("a")), inert, CONFIG) != NoteState.SUPERSEDED


@given(gains, st.booleans(), st.sampled_from((NoteState.IN_PROMPT, NoteState.LEARNING, NoteState.IN_WEIGHTS)))
def test_only_answers_that_follow_it_move_a_note_into_the_weights(
    measured: list[tuple[float, float]], is_newest: bool, state: NoteState
) -> None:
    """A note enters the weights only when enough of the answers that show it follow it, and never stays "learning"."""
    effects = [replace(EFFECT, gain=gain, gain_beside=beside) for gain, beside in measured]
    after = next_state(view(note("a", state), newer=not is_newest), effects, CONFIG)
    shown = [(gain, beside) for gain, beside in measured if beside >= CONFIG.min_gain]
    assert after != NoteState.LEARNING
    if all(gain >= beside for gain, beside in shown) and shown:
        assert after == NoteState.IN_WEIGHTS
    if all(gain <= 0 for gain, _ in shown) and shown:
        assert after == NoteState.IN_PROMPT
