"""engine.training.teachers: who is asked, when, and what is remembered of the base model."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.config import LearnConfig
from engine.config.learning import OPENING_TOKENS
from engine.sample import Context, Sample
from engine.training import sdpo
from engine.training.batching import plan_batches
from engine.training.lean_model import LeanModel
from engine.training.lora_slot import LoraShape
from engine.training.model import load_base
from engine.training.targets import Targets
from engine.training.teachers import Teachers
from tests.engine.updates_of import correction_with_company, sample

SHAPE = LoraShape(2, 4, ("q_proj",))


@pytest.fixture(scope="module")
def model(tiny_model: Path) -> LeanModel:
    """Return the tiny model's training forward."""
    return LeanModel(load_base(tiny_model), "tiny")


def asked(model: LeanModel, samples: list[Sample], **learn: Any) -> tuple[Teachers, int]:
    """Return the teachers of an update, asked, and the number of forward passes that it took."""
    settings = LearnConfig(**{"micro_batch_tokens": 4096} | learn)
    teachers = Teachers(model, settings, samples, model.slot(SHAPE), None)
    return teachers, len(list(teachers.ask(range(len(samples)))))


@pytest.mark.parametrize(("scale", "known"), [(1.5, [0, 1, 2, 3, 4]), (1.0, [3, 4])])
def test_the_states_that_a_fresh_student_begins_with_are_known_where_the_base_was_asked(
    model: LeanModel, scale: float, known: list[int]
) -> None:
    """Guidance asks the base about what is taught; of an anchor its teacher reads what the student reads."""
    samples = correction_with_company()
    teachers, _ = asked(model, samples, guidance_scale=scale)
    for i in range(len(samples)):
        (batch,) = plan_batches(samples, [i], "student", 4096, model.device)
        states = teachers.base_states(batch)
        assert (states is not None) == (i in known)
        if states is not None:
            with torch.no_grad():
                assert torch.allclose(states, model.hidden(None, batch), atol=1e-5)
    (everything,) = plan_batches(samples, range(5), "student", 4096, model.device)
    assert (teachers.base_states(everything) is not None) == (len(known) == len(samples))


@pytest.mark.parametrize(
    ("learn", "passes"),
    [({}, 1), ({"guidance_scale": 1.5}, 3), ({"kl_to_base_weight": 1.0}, 2), ({"teacher": "ema"}, 1)],
)
def test_nobody_is_asked_for_what_no_loss_needs(model: LeanModel, learn: dict[str, Any], passes: int) -> None:
    """One pass for the base teacher, two more for guidance, one for a penalty; the average before each step."""
    teachers, number = asked(model, correction_with_company(), **learn)
    assert number == passes
    follows = len(list(teachers.ask_again({0, 1})))
    assert follows == (1 if learn.get("teacher") == "ema" else 0)


@pytest.mark.parametrize("length", [1, 2, 9])
def test_how_an_answer_begins_is_guided_away_from_the_plain_prompt_and_its_end_from_the_students(
    model: LeanModel, length: int
) -> None:
    """Each position is guided once at most: the last one, four first ones, and nothing between."""
    one = replace(sample(length=length), plain_ids=[7, 8, 9])
    teachers, _ = asked(model, [one], guidance_scale=1.5)
    views: tuple[Context, ...] = ("teacher", "student", "plain")
    batches = [plan_batches([one], [0], view, 4096, model.device)[0] for view in views]
    with torch.no_grad():
        said, student, plain = (model.logits(model.hidden(None, batch)).log_softmax(-1) for batch in batches)
    away = [student if t == length - 1 else plain if t < OPENING_TOKENS else said for t in range(length)]
    base = torch.stack([rows[t] for t, rows in enumerate(away)])
    kept = teachers.logprobs("teacher", teachers.rows("teacher", batches[0]), batches[0], slice(None))
    assert torch.allclose(kept, sdpo.guided(said, base, 1.5), atol=1e-3)


@pytest.mark.parametrize(("surer_by", "is_guided"), [([-0.5, 0.3], False), ([-0.2, 0.3], True)])
def test_beginnings_are_guided_if_that_makes_the_teacher_surer(
    model: LeanModel, monkeypatch: pytest.MonkeyPatch, surer_by: list[float], *, is_guided: bool
) -> None:
    """If that is asked for: all of a lesson or none, by the sum over its micro-batches; their ends are in any case."""
    samples = [replace(sample(seed=i, length=9), plain_ids=[7, 8, 9, i] * 2) for i in range(2)]
    known, told = [], iter(surer_by)
    monkeypatch.setattr(Targets, "surer_by", lambda *_: next(told))
    for guides_unsure in (True, False):
        teachers, _ = asked(model, samples, guidance_scale=1.5, guides_unsure=guides_unsure, micro_batch_tokens=16)
        (batch,) = plan_batches(samples, range(2), "teacher", 4096, model.device)
        known.append(teachers.logprobs("teacher", teachers.rows("teacher", batch), batch, slice(None)))
    begins = torch.arange(18) % 9 < OPENING_TOKENS
    assert torch.equal(known[0][begins], known[1][begins]) == is_guided
    assert torch.equal(known[0][~begins], known[1][~begins])
    assert next(told, None) is None


def test_an_external_teacher_that_is_not_there_is_refused(model: LeanModel) -> None:
    """The error names the setting."""
    with pytest.raises(ValueError, match=r"host\.teacher_model"):
        asked(model, [sample()], teacher="external")
