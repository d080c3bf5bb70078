"""engine.training.peft_model: slots, views and gradients (test_lean_model compares the numbers)."""

from pathlib import Path

import pytest
import torch

from engine.config import LORA_TARGET_MODULES
from engine.training.batching import plan_batches
from engine.training.lora_slot import LoraShape
from engine.training.model import load_base
from engine.training.peft_model import PeftTrainingModel
from tests.engine.updates_of import correction_with_company, run_update, sample

SHAPE = LoraShape(8, 16, tuple(sorted(LORA_TARGET_MODULES)))


@pytest.fixture
def model(tiny_model: Path) -> PeftTrainingModel:
    """Return a fresh model for each test."""
    return PeftTrainingModel(load_base(tiny_model), "tiny")


def test_pefts_parameters_are_views_of_the_slot(model: PeftTrainingModel) -> None:
    """Changing the slot changes the forward pass; a backward pass fills the slot's gradient."""
    slot = model.slot(SHAPE)
    slot.load_fresh(1)
    (batch,) = plan_batches([sample()], [0], "student", 10_000, model.device)
    before = model.hidden(slot, batch).detach()
    with torch.no_grad():
        slot.flat.add_(0.05)
    after = model.hidden(slot, batch)
    assert not torch.allclose(before, after, atol=1e-2)
    after.sum().backward()
    assert slot.grad.abs().sum() > 0


def test_slots_do_not_see_each_other(model: PeftTrainingModel) -> None:
    """Slots of two shapes and two roles used in turn do not mix, and the base is found again in between."""
    (batch,) = plan_batches([sample()], [0], "student", 10_000, model.device)
    with torch.no_grad():
        base = model.hidden(None, batch)
        slots = [model.slot(SHAPE), model.slot(SHAPE, "score"), model.slot(LoraShape(4, 8, ("q_proj",)))]
        for i, slot in enumerate(slots):
            slot.load_fresh(i)
            slot.flat.add_(0.02 * (i + 1))
        first = [model.hidden(slot, batch) for slot in slots]
        assert torch.equal(model.hidden(None, batch), base)
        second = [model.hidden(slot, batch) for slot in slots]
    for a, b in zip(first, second, strict=True):
        assert torch.equal(a, b)
        assert not torch.allclose(a, base)
    assert not torch.allclose(first[0], first[1])


def test_the_base_works_before_any_slot_was_made(model: PeftTrainingModel) -> None:
    """The base model is computed before any slot was made."""
    (batch,) = plan_batches([sample()], [0], "student", 10_000, model.device)
    assert model.hidden(None, batch).shape == (12, 128)


def test_an_update_trains_and_leaves_the_base_weights_alone(model: PeftTrainingModel) -> None:
    """Training leaves every base parameter bit for bit as it was."""
    before = {name: p.clone() for name, p in model.base.named_parameters()}
    run = run_update(model, correction_with_company(), steps=2)
    assert run.update_norm > 0
    after = {name.replace(".base_layer", ""): p for name, p in model.base.named_parameters() if ".lora_" not in name}
    assert all(torch.equal(after[name], p) for name, p in before.items())


def test_the_zero_adapter_is_zero(model: PeftTrainingModel) -> None:
    """The zero adapter has tensors on all modules, under PEFT's names."""
    zero = model.zero_adapter(LORA_TARGET_MODULES)
    assert len(zero.tensors) == 2 * 7 * 4
    assert not any(t.any() for t in zero.tensors.values())
    assert "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight" in zero.tensors
