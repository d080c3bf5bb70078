"""engine.training.forced_ends: the student learns to end where an answer was cut."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from engine.sample import Sample
from engine.training.batching import plan_batches
from engine.training.forced_ends import ForcedEnds
from engine.training.lean_model import LeanModel
from engine.training.model import load_base
from engine.training.scoring import score_samples
from tests.engine.updates_of import correction_with_company, run_update

VOCABULARY = 12


def samples(*cut: int) -> list[Sample]:
    """Return three answers of three tokens, some of them cut."""
    return [Sample("counterfactual", [1, 2], [1, 2], [3, 4, 5 + i], is_cut=i in cut) for i in range(3)]


@pytest.mark.parametrize("cut", [(), (1,), (0, 2)])
@pytest.mark.parametrize("chunk", [slice(0, 9), slice(3, 7)])
def test_the_teacher_is_sure_at_the_ends_put_there_and_nowhere_else(cut: tuple[int, ...], chunk: slice) -> None:
    """Position by position, in any chunk of a micro-batch; a distribution stays one."""
    given = samples(*cut)
    (batch,) = plan_batches(given, range(3), "student", 100, torch.device("cpu"))
    before = torch.randn(9, VOCABULARY).log_softmax(-1)[chunk]
    after = ForcedEnds(given).put(before.clone(), batch, chunk)
    assert after.exp().sum(-1).tolist() == pytest.approx([1.0] * len(after))
    for row, owner, token, old in zip(after, batch.owners_N[chunk], batch.token_ids_N[chunk], before, strict=True):
        is_end = int(owner) in cut and int(token) == 5 + int(owner)
        assert (float(row[token]) > math.log(0.99)) if is_end else torch.equal(row, old)


@pytest.mark.parametrize("keeps_hidden", [False, True])
def test_a_student_ends_where_the_teachers_answer_was_cut(
    tiny_model: Path, monkeypatch: pytest.MonkeyPatch, keeps_hidden: bool
) -> None:
    """It is surer of the last token than one who learns what the teacher itself would have said there."""
    if keeps_hidden:
        monkeypatch.setattr("engine.training.targets.KEPT_BYTES", 1)
    model = LeanModel(load_base(tiny_model), "tiny")
    plain = correction_with_company()
    ends = []
    for is_cut in (False, True):
        given = [replace(s, is_cut=is_cut and s.is_taught) for s in plain]
        run = run_update(model, given, steps=12)
        (score,) = score_samples(model, plain[1:2], run.slot.export())
        ends.append(score["student_logprobs"][-1])
    assert ends[1] > ends[0] + 1
