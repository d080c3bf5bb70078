"""engine.training.base_states: what the base model has read is not read again."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.sample import Sample
from engine.training import base_states
from engine.training.base_states import BaseStates, hidden_states
from engine.training.lean_model import LeanModel
from engine.training.model import load_base
from engine.training.scoring import score_samples
from tests.engine.updates_of import correction_with_company, run_update, sample


@pytest.fixture(scope="module")
def model(tiny_model: Path) -> LeanModel:
    """Return the tiny model's training forward."""
    return LeanModel(load_base(tiny_model), "tiny")


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return how many sequences the base model reads, call by call."""
    counts: list[int] = []

    def counted(of: Any, samples: Sequence[Sample], context: Any, indices: Any, slot: Any) -> Any:
        counts.append(len(indices))
        return hidden_states(of, samples, context, indices, slot)

    monkeypatch.setattr(base_states, "hidden_states", counted)
    return counts


def some(count: int) -> list[Sample]:
    """Return samples of several lengths."""
    return [sample(seed=n, length=20 - 3 * n) for n in range(count)]


def test_states_are_those_of_a_pass(model: LeanModel) -> None:
    """In either context, read for the first time or kept."""
    samples, base = some(3), BaseStates(model)
    for context in ("student", "teacher", "student"):
        wanted = hidden_states(model, samples, context, range(3), None)
        found = base.of(samples, context, range(3))
        assert {i: states.shape for i, states in found.items()} == {i: states.shape for i, states in wanted.items()}
        for i, states in wanted.items():
            torch.testing.assert_close(found[i], states, rtol=1e-4, atol=1e-4)


def test_a_sequence_is_read_once(model: LeanModel, read: list[int]) -> None:
    """Not twice in one call, not again in the next; another answer or another prompt is another sequence."""
    samples, base = some(3), BaseStates(model)
    twice = base.of([*samples, *samples], "student", range(6))
    assert all(torch.equal(twice[i], twice[i + 3]) for i in range(3))
    base.of(samples, "student", [2, 0])
    assert sum(read) == 3
    first = samples[0]
    base.of([replace(first, response_ids=first.response_ids[:-1])], "student", [0])
    base.of([replace(first, student_ids=[*first.student_ids, *first.response_ids[:1]])], "student", [0])
    moved = replace(first, student_ids=[*first.student_ids, first.response_ids[0]], response_ids=first.response_ids[1:])
    base.of([moved], "student", [0])
    assert sum(read) == 3 + 3, "where the prompt ends and the answer begins counts, too"


def test_the_longest_unused_goes_where_there_is_no_more_room(
    model: LeanModel, read: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is kept stays within its bytes; what is asked for comes back whole even if it is more."""
    samples, base = [sample(seed=n, length=8) for n in range(4)], BaseStates(model)
    base.of(samples[:3], "student", range(3))
    monkeypatch.setattr(base_states, "KEPT_BYTES", base.num_bytes)
    base.of(samples, "student", [0])
    base.of(samples, "student", [3])
    assert sum(read) == 4
    base.of(samples, "student", [0, 2])
    assert sum(read) == 4, "the second was the longest unused"
    base.of(samples, "student", [1])
    assert sum(read) == 5
    assert len(base.of(samples, "student", range(4))) == 4
    assert base.num_bytes <= base_states.KEPT_BYTES


def test_scores_with_what_is_known_are_the_same(model: LeanModel, read: list[int]) -> None:
    """For the base model, which reads nothing again, and for an adapter, whose own states are never kept."""
    samples = correction_with_company()
    adapter = run_update(model, samples).slot.export()
    base = BaseStates(model)
    for student in (None, adapter, None, adapter):
        known, fresh = score_samples(model, samples, student, base), score_samples(model, samples, student)
        for one, other in zip(known, fresh, strict=True):
            for name in ("student_logprobs", "teacher_logprobs", "divergence"):
                assert one[name] == pytest.approx(other[name], abs=1e-4)
    read.clear()
    score_samples(model, samples, None, base)
    score_samples(model, samples, adapter, base)
    assert sum(read) == 0
