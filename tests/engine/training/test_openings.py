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
    assert first_tokens(BaseStates(model), pairs, SCALE, 0.0, 0, guides_unsure=True) == wanted
    each = [first_tokens(BaseStates(model), [pair], SCALE, 0.0, 0, guides_unsure=True)[0] for pair in pairs]
    assert each == wanted


def test_where_guidance_makes_it_less_sure_it_is_the_models_own(
    model: LeanModel, whole: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Prompt by prompt, if that is asked for."""
    pairs = prompts(6)
    surer = torch.tensor([True, False, False, True, False, True])
    monkeypatch.setattr(sdpo, "is_surer", lambda *_: surer)
    asked = zip(pairs, surer, strict=True)
    wanted = [int((guided(whole, *pair) if yes else said(whole, pair[0])).argmax()) for pair, yes in asked]
    assert first_tokens(BaseStates(model), pairs, SCALE, 0.0, 0, guides_unsure=False) == wanted
    assert first_tokens(BaseStates(model), pairs, SCALE, 0.0, 0, guides_unsure=True) != wanted


def test_a_draw_follows_the_guided_distribution(model: LeanModel, whole: Any) -> None:
    """Many draws have the guided frequencies; the seed alone decides them."""
    ((seen, asked),) = prompts(1)
    pairs = [(seen, asked)] * 300
    base = BaseStates(model)
    drawn, again, others = (first_tokens(base, pairs, SCALE, 1.0, seed, guides_unsure=True) for seed in (7, 7, 8))
    assert drawn == again != others
    token, count = Counter(drawn).most_common(1)[0]
    assert count / len(drawn) == pytest.approx(float(guided(whole, seen, asked)[token].exp()), abs=0.12)
