"""engine.training.recomputing: layers computed again give the same gradients."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from engine.config import LORA_TARGET_MODULES
from engine.training import recomputing
from engine.training.batching import plan_batches
from engine.training.lora_slot import LoraShape
from engine.training.model import load_base
from engine.training.peft_model import PeftTrainingModel
from tests.engine.updates_of import sample
from tests.tiny_architectures import CONFIGS, save_tiny_architecture

SHAPE = LoraShape(8, 16, tuple(sorted(LORA_TARGET_MODULES)))


def gradient(folder: Path, num_samples: int) -> tuple[Tensor, int]:
    """Return the gradient of a step, and how often its first layer was computed."""
    torch.manual_seed(0)
    model = PeftTrainingModel(load_base(folder), "tiny")
    slot = model.slot(SHAPE)
    slot.load_fresh(1)
    with torch.no_grad():
        slot.flat.add_(0.02)
    runs: list[int] = []
    model.base.base_model.layers[0].self_attn.register_forward_hook(lambda *_: runs.append(1))
    (batch,) = plan_batches([sample() for _ in range(num_samples)], range(num_samples), "student", 10_000, model.device)
    model.hidden(slot, batch).square().sum().backward()
    return slot.grad.clone(), len(runs)


@pytest.mark.parametrize("num_samples", [1, 3], ids=["padded", "packed"])
@pytest.mark.parametrize("architecture", sorted(CONFIGS))
def test_what_is_computed_again_has_the_same_gradients(
    architecture: str, num_samples: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every family, one sample or several in a row; each layer answers twice, and reads the prompts once."""
    folder = save_tiny_architecture(tmp_path, architecture)
    kept, once = gradient(folder, num_samples)
    monkeypatch.setattr(recomputing, "KEPT_ON_CPU", 0)
    again, twice = gradient(folder, num_samples)
    assert (once, twice) in [(2 * parts, 3 * parts) for parts in {1, num_samples}]
    assert kept.abs().sum() > 0
    assert torch.equal(kept, again)


def test_without_a_gradient_nothing_is_computed_again(tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A look at the base model reads the prompt once and answers once."""
    monkeypatch.setattr(recomputing, "KEPT_ON_CPU", 0)
    model = PeftTrainingModel(load_base(tiny_model), "tiny")
    runs: list[int] = []
    model.base.base_model.layers[0].self_attn.register_forward_hook(lambda *_: runs.append(1))
    (batch,) = plan_batches([sample()], [0], "student", 10_000, model.device)
    with torch.no_grad():
        model.hidden(None, batch)
    assert len(runs) == 2
