"""engine.training.openings: how a guided teacher's answers begin."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.training import sdpo
from engine.training.base_states import BaseStates
from engine.training.lean_model import LeanModel
from engine.training.model import load_base
from engine.training.openings import first_tokens
from tests.engine.updates_of import sample

SCALE = 2.0


@pytest.fixture(scope="module")
def model(tiny_model: Path) -> LeanModel:
    """Return the tiny model's training forward."""
    return LeanModel(load_base(tiny_model), "tiny")


@pytest.fixture(scope="module")
def whole(tiny_model: Path) -> Any:
    """Return the same model as transformers has it."""
    return load_base(tiny_model)


def prompts(count: int) -> list[tuple[list[int], list[int]]]:
    """Return pairs of the teacher's and the student's prompt, of several lengths."""
    found = [sample(seed=n, length=4) for n in range(count)]
    return [(each.teacher_ids, each.student_ids[n % 3 :]) for n, each in enumerate(found)]


def guided(whole: Any, seen: list[int], asked: list[int]) -> torch.Tensor:
    """Return the guided distribution of the next token, axis [V], by a whole forward pass for each prompt."""
    return sdpo.guided(said(whole, seen), said(whole, asked), SCALE)


def said(whole: Any, ids: list[int]) -> torch.Tensor:
    """Return the model's own distribution of the next token, axis [V]."""
    logits: torch.Tensor = whole(torch.tensor([ids])).logits[0, -1]
    return logits.detach().log_softmax(-1)


def test_the_likeliest_is_that_of_the_guided_distribution(model: LeanModel, whole: Any) -> None:
    """At temperature 0, for prompts of any lengths, together or alone."""
    pairs = prompts(5)
    wanted = [int(guided(whole, *pair).argmax()) for pair in pairs]
    assert [token.guided for token in first_tokens(BaseStates(model), pairs, SCALE, 0.0, 0)] == wanted
    each = [first_tokens(BaseStates(model), [pair], SCALE, 0.0, 0)[0].guided for pair in pairs]
    assert each == wanted


def test_the_teachers_own_stands_beside_with_what_guidance_does_to_it(model: LeanModel, whole: Any) -> None:
    """Its likeliest token, and by how many nats guidance makes it surer."""
    pairs = prompts(6)
    found = first_tokens(BaseStates(model), pairs, SCALE, 0.0, 0)
    for (seen, asked), token in zip(pairs, found, strict=True):
        own, led = said(whole, seen), guided(whole, seen, asked)
        assert token.own == int(own.argmax())
        assert token.surer_by == pytest.approx(float(sdpo.entropy(own) - sdpo.entropy(led)), abs=1e-3)


def test_a_draw_follows_the_guided_distribution(model: LeanModel, whole: Any) -> None:
    """Many draws have the guided frequencies; the seed alone decides them."""
    ((seen, asked),) = prompts(1)
    pairs = [(seen, asked)] * 300
    base = BaseStates(model)
    drawn, again, others = (
        [token.guided for token in first_tokens(base, pairs, SCALE, 1.0, seed)] for seed in (7, 7, 8)
    )
    assert drawn == again != others
    token, count = Counter(drawn).most_common(1)[0]
    assert count / len(drawn) == pytest.approx(float(guided(whole, seen, asked)[token].exp()), abs=0.12)
