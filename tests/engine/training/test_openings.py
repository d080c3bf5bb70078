"""engine.training.openings: how a guided teacher's answers begin."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.training import openings, sdpo
from engine.training.lean_model import LeanModel
from engine.training.model import load_base
from engine.training.openings import Openings
from tests.engine.updates_of import sample

SCALE = 2.0


@pytest.fixture(scope="module")
def model(tiny_model: Path) -> LeanModel:
    """Return the tiny model's training forward."""
    return LeanModel(load_base(tiny_model), "tiny")


@pytest.fixture(scope="module")
def base(tiny_model: Path) -> Any:
    """Return the same model as transformers has it."""
    return load_base(tiny_model)


def prompts(count: int) -> list[tuple[list[int], list[int]]]:
    """Return pairs of the teacher's and the student's prompt, of several lengths."""
    found = [sample(seed=n, length=4) for n in range(count)]
    return [(each.teacher_ids, each.student_ids[n % 3 :]) for n, each in enumerate(found)]


def guided(base: Any, seen: list[int], asked: list[int]) -> torch.Tensor:
    """Return the guided distribution of the next token, axis [V], by a whole forward pass for each prompt."""
    teacher, plain = (base(torch.tensor([ids])).logits[0, -1].detach().log_softmax(-1) for ids in (seen, asked))
    return sdpo.guided(teacher, plain, SCALE)


def test_the_likeliest_is_that_of_the_guided_distribution(model: LeanModel, base: Any) -> None:
    """At temperature 0, for prompts of any lengths, together or alone."""
    pairs = prompts(5)
    wanted = [int(guided(base, *pair).argmax()) for pair in pairs]
    assert Openings(model).first_tokens(pairs, SCALE, 0.0, 0) == wanted
    assert [Openings(model).first_tokens([pair], SCALE, 0.0, 0)[0] for pair in pairs] == wanted


def test_a_draw_follows_the_guided_distribution(model: LeanModel, base: Any) -> None:
    """Many draws have the guided frequencies; the seed alone decides them."""
    ((seen, asked),) = prompts(1)
    pairs = [(seen, asked)] * 300
    drawn = Openings(model).first_tokens(pairs, SCALE, 1.0, 7)
    assert (
        drawn
        == Openings(model).first_tokens(pairs, SCALE, 1.0, 7)
        != Openings(model).first_tokens(pairs, SCALE, 1.0, 8)
    )
    token, count = Counter(drawn).most_common(1)[0]
    assert count / len(drawn) == pytest.approx(float(guided(base, seen, asked)[token].exp()), abs=0.12)


def test_a_prompt_is_read_once(model: LeanModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not twice in one call, not again in the next, and again once it is the longest unused of too many."""
    read: list[int] = []
    real = openings.hidden_states

    def counted(of: Any, samples: Any, *rest: Any) -> Any:
        read.append(len(samples))
        return real(of, samples, *rest)

    monkeypatch.setattr(openings, "hidden_states", counted)
    pairs, says = prompts(3), Openings(model)
    first = says.first_tokens([*pairs, *pairs], SCALE, 0.0, 0)
    monkeypatch.setattr(openings, "KEPT_BYTES", says.num_bytes)
    assert (sum(read), first[:3]) == (6, first[3:])
    assert says.first_tokens(pairs, SCALE, 0.0, 0) == first[:3]
    assert sum(read) == 6
    says.first_tokens(prompts(4)[3:], SCALE, 0.0, 0)
    assert sum(read) == 8
    assert says.first_tokens(pairs[1:], SCALE, 0.0, 0) == first[1:3]
    assert sum(read) in (8 + 1, 8 + 2), "as many as the new ones are large"
    assert says.num_bytes <= openings.KEPT_BYTES
