"""engine.samples.notes: when a note leaves the prompt, when it comes back, when a newer one has replaced it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.config import NoteConfig
from engine.prompts.builder import PromptBuilder
from engine.sample import Score
from engine.samples.notes import (
    Probe,
    fitting,
    held_share,
    is_superseded,
    next_state,
    probe_of,
    probe_samples,
    prompt_notes,
)
from engine.samples.rollouts import Rollout
from storage.kinds import NoteState
from storage.tables import Note

CONFIG = NoteConfig(min_gain=0.5, held_share=0.75, inert_effect=0.02, moving_effect=0.05)
gains = st.lists(st.floats(-20, 20), min_size=1, max_size=8)


def note(text: str, state: NoteState = NoteState.IN_PROMPT) -> Note:
    """A note of a person."""
    return Note(user_id="u", text=text, state=state)


def probe(gains: list[float], effect: float = 1.0, alone: float = 1.0) -> Probe:
    """A probe with the same effects on every rollout."""
    return Probe(gains, [effect] * len(gains), [alone] * len(gains))


def test_notes_stand_in_the_prompt_until_the_weights_hold_every_one() -> None:
    """One that is new or being learned brings all of them, oldest first; when all are held none is said."""
    notes = [
        note("a"),
        note("b", NoteState.IN_WEIGHTS),
        note("c", NoteState.LEARNING),
    ]
    assert prompt_notes(notes, has_adapter=True) == notes
    assert prompt_notes([notes[1]], has_adapter=True) == []


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


def test_a_probe_compares_a_note_beside_the_others_and_alone(pocket_tokenizer: Any) -> None:
    """The first pair differs by the note among the others, the second by the note alone, over the same answer."""
    prompts = PromptBuilder(pocket_tokenizer, 2048)
    notes = [note("alpha"), note("beta"), note("gamma")]
    rollout = Rollout([{"role": "user", "content": "hi"}], [1], [7, 8], [-0.1, -0.2])
    beside, alone = probe_samples(notes[1], notes, rollout, prompts)
    words = ("alpha", "beta", "gamma")
    said = [
        [w for w in words if w in pocket_tokenizer.decode(getattr(pair, side))]
        for pair in (beside, alone)
        for side in ("student_ids", "teacher_ids")
    ]
    assert said == [["alpha", "gamma"], ["alpha", "beta", "gamma"], [], ["beta"]]
    assert beside.response_ids == alone.response_ids == [7, 8]


def test_a_probe_reads_the_trainers_scores() -> None:
    """Gain is the log-likelihood ratio of the whole answer, effect and alone are the divergences."""
    beside = Score([-2.0, -1.0], [-0.5, -0.5], 0.0, 0.0, 0.3, [], [])
    alone = Score([-9.0, -9.0], [0.0, 0.0], 0.0, 0.0, 0.7, [], [])
    assert probe_of([[beside, alone]]) == Probe([2.0], [0.3], [0.7])


@pytest.mark.parametrize(
    ("measured", "share"),
    [
        ([3.0, 3.0, 3.0, 3.0], 1.0),
        ([3.0, 3.0, 3.0, -3.0], 0.75),
        ([-3.0, -3.0], 0.0),
        ([3.0, 0.1, -0.1], 1.0),
        ([50.0, -5.0], 0.5),
        ([5.0, 5.0, 5.0, -1.0, -1.0], 15 / 17),
        ([0.1, -0.4, 0.0], None),
    ],
)
def test_the_share_counts_the_answers_on_which_the_note_shows(measured: list[float], share: float | None) -> None:
    """Answers that the note hardly touches say nothing; the others count as far as it moves them, up to a bound."""
    assert held_share(probe(measured), CONFIG) == (None if share is None else pytest.approx(share))


@pytest.mark.parametrize(
    ("effect", "alone", "is_replaced"),
    [(0.01, 0.5, True), (0.03, 0.5, False), (0.01, 0.01, False)],
)
def test_a_note_is_replaced_when_it_is_inert_beside_the_others_only(
    effect: float, alone: float, is_replaced: bool
) -> None:
    """It must move the model alone and no longer do so beside the newer ones."""
    assert is_superseded(probe([0.0, 0.0], effect, alone), CONFIG) is is_replaced


@pytest.mark.parametrize("state", [NoteState.IN_PROMPT, NoteState.LEARNING, NoteState.IN_WEIGHTS])
def test_a_held_note_leaves_the_prompt_and_a_failed_one_comes_back(state: NoteState) -> None:
    """The probe decides, wherever the note was before."""
    said = note("a", state)
    assert next_state(said, probe([3.0] * 4), CONFIG, is_newest=True) == NoteState.IN_WEIGHTS
    assert next_state(said, probe([3.0, -3.0]), CONFIG, is_newest=True) == NoteState.IN_PROMPT


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
    assert next_state(note("my dog is Rex", before), probe([0.0, 0.1]), CONFIG, is_newest=True) == after


def test_the_newest_note_is_never_replaced() -> None:
    """The newest note is never superseded, even if it is inert beside older notes."""
    inert = probe([0.0, 0.0], effect=0.0, alone=1.0)
    assert next_state(note("a"), inert, CONFIG, is_newest=False) == NoteState.SUPERSEDED
    assert next_state(note("a"), inert, CONFIG, is_newest=True) != NoteState.SUPERSEDED


@given(gains, st.booleans(), st.sampled_from((NoteState.IN_PROMPT, NoteState.LEARNING, NoteState.IN_WEIGHTS)))
def test_only_answers_that_follow_it_move_a_note_into_the_weights(
    measured: list[float], is_newest: bool, state: NoteState
) -> None:
    """A note enters the weights only when enough of the answers that show it follow it, and never stays "learning"."""
    after = next_state(note("a", state), probe(measured), CONFIG, is_newest=is_newest)
    shown = [g for g in measured if abs(g) >= CONFIG.min_gain]
    assert after != NoteState.LEARNING
    if all(g > 0 for g in shown) and shown:
        assert after == NoteState.IN_WEIGHTS
    if all(g < 0 for g in shown) and shown:
        assert after == NoteState.IN_PROMPT
