"""engine.training.llama_model: the values and gradients of Hugging Face with PEFT."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.config import LORA_TARGET_MODULES
from engine.sample import Sample
from engine.training.batching import Batch, plan_batches
from engine.training.llama_model import LlamaModel
from engine.training.lora_slot import LoraShape
from engine.training.model import load_base
from engine.training.peft_model import PeftTrainingModel
from tests.engine.training.test_lean_model import SHAPE, randomise
from tests.engine.updates_of import correction_with_company, run_update, token_ids
from tests.tiny_architectures import save_tiny_architecture

TEXTS = {"alone": ((4, 7),), "together": ((5, 6), (30, 20), (11, 3)), "long": ((150, 140),)}
FAMILY = ("Llama", "Qwen2", "Qwen3")
CPU = torch.device("cpu")


def batch_of(*texts: tuple[int, int], start: int = 6) -> Batch:
    """Return prompts that begin with the same `start` tokens, with their answers, in one micro-batch."""
    common, samples = token_ids(start, 9), []
    for i, (length, answer) in enumerate(texts):
        prompt = common + token_ids(length, i)
        samples.append(Sample("correction", prompt, prompt, token_ids(answer, i + 50)))
    (batch,) = plan_batches(samples, range(len(samples)), "student", 100_000, CPU)
    return batch


def both(folder: Path, name: str, dtype: torch.dtype = torch.float32) -> tuple[LlamaModel, PeftTrainingModel]:
    """Return the two forwards of one model."""
    save_tiny_architecture(folder, name)
    return LlamaModel(load_base(folder, dtype), name), PeftTrainingModel(load_base(folder, dtype), name)


def states_and_gradients(model: Any, slot: Any, batch: Batch) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """Return the hidden states, and the gradients of a sum over them with a weight for each."""
    hidden = model.hidden(slot, batch)
    (hidden * torch.linspace(-1, 1, hidden.numel()).view_as(hidden).to(hidden.dtype)).sum().backward()
    return hidden.detach(), slot.views(slot.grad)


def assert_values_and_gradients_are_the_same(
    models: Sequence[Any], modules: tuple[str, ...], texts: tuple[tuple[int, int], ...]
) -> None:
    """Compare two forwards of one model with the same adapter on some layers."""
    slots = randomise(*models, shape=LoraShape(4, 8, modules))
    (ours, our_gradients), (theirs, their_gradients) = (
        states_and_gradients(model, slot, batch_of(*texts)) for model, slot in zip(models, slots, strict=True)
    )
    assert torch.allclose(ours, theirs, atol=1e-4)
    assert set(our_gradients) == set(their_gradients)
    largest = max(float(gradient.abs().max()) for gradient in their_gradients.values())
    for key, gradient in our_gradients.items():
        assert torch.allclose(gradient, their_gradients[key], atol=1e-4 * largest, rtol=1e-3), key


def assert_half_precision_is_as_close(exact: Any, models: Sequence[Any], batch: Batch) -> None:
    """Compare gradients in bfloat16 with those in float32: the first model's are no further off than the second's."""
    (slot,) = randomise(exact)
    _, wanted = states_and_gradients(exact, slot, batch)
    errors = []
    for model in models:
        (slot,) = randomise(model)
        _, found = states_and_gradients(model, slot, batch)
        errors.append(sum(float((found[key] - wanted[key]).square().sum()) for key in wanted) ** 0.5)
    assert errors[0] < 1.25 * errors[1]
    assert errors[0] < 0.2 * sum(float(value.square().sum()) for value in wanted.values()) ** 0.5


@pytest.mark.parametrize("name", FAMILY)
@pytest.mark.parametrize("modules", [SHAPE.target_modules, ("q_proj", "v_proj"), ("up_proj",), ("down_proj", "o_proj")])
@pytest.mark.parametrize(
    "texts", [((4, 7),), ((5, 6), (30, 20), (11, 3)), ((150, 140),)], ids=["alone", "together", "long"]
)
def test_values_and_gradients_are_pefts(
    name: str, modules: tuple[str, ...], texts: tuple[tuple[int, int], ...], tmp_path: Path
) -> None:
    """Of sequences that begin alike, with an adapter on all layers or on a part of a fused one."""
    assert_values_and_gradients_are_the_same(both(tmp_path, name), modules, texts)


def test_half_precision_is_as_close_as_pefts(tmp_path: Path) -> None:
    """In bfloat16 the gradients are no further from those in float32 than Hugging Face's are."""
    exact, _ = both(tmp_path, "Llama")
    assert_half_precision_is_as_close(
        exact, both(tmp_path, "Llama", torch.bfloat16), batch_of((5, 6), (30, 20), (11, 3))
    )


@pytest.mark.parametrize("name", FAMILY)
def test_states_behind_layers_are_hugging_faces(name: str, tmp_path: Path) -> None:
    """Of padded sequences, as the reader of feedback asks for them; those of the last layer are normed."""
    ours, theirs = both(tmp_path, name)
    ids = torch.tensor([token_ids(12, 1), token_ids(12, 2)])
    with torch.no_grad():
        pairs = zip(ours.layer_states(ids, [1, 4]), theirs.layer_states(ids, [1, 4]), strict=True)
        assert all(torch.allclose(mine, reference, atol=1e-4) for mine, reference in pairs)


def test_a_whole_update_is_the_same_in_both(tmp_path: Path) -> None:
    """Ten steps from the same seed give the same losses and the same adapter to rounding."""
    runs = [run_update(model, correction_with_company(), steps=10) for model in both(tmp_path, "Llama")]
    assert runs[0].measured.losses == pytest.approx(runs[1].measured.losses, rel=1e-3)
    assert runs[0].update_norm == pytest.approx(runs[1].update_norm, rel=1e-3)


def test_the_base_is_left_alone_and_zero_is_the_base(tmp_path: Path) -> None:
    """Before and after an update, and with an adapter whose values are zero."""
    model, _ = both(tmp_path, "Qwen3")
    batch = batch_of((5, 6), (30, 20))
    zero = model.slot(LoraShape.of(model.zero_adapter(LORA_TARGET_MODULES).config))
    with torch.no_grad():
        before = model.hidden(None, batch)
        assert torch.allclose(model.hidden(zero, batch), before, atol=1e-5)
    run_update(model, correction_with_company(), steps=2)
    with torch.no_grad():
        assert torch.equal(model.hidden(None, batch), before)


def test_a_slot_that_was_forgotten_is_made_anew(tmp_path: Path) -> None:
    """With zeros, as the first was, and with the same numbers of it."""
    model, _ = both(tmp_path, "Llama")
    shape, batch = LoraShape.of(model.zero_adapter(LORA_TARGET_MODULES).config), batch_of((5, 6), (30, 20))
    slots, found = [], []
    for _ in range(2):
        slots.append(model.slot(shape))
        assert not slots[-1].flat.any()
        slots[-1].load_fresh(0)
        with torch.no_grad():
            slots[-1].flat.add_(0.01)
            found.append(model.hidden(slots[-1], batch))
        model.forget_slots()
    assert slots[0] is not slots[1]
    assert torch.equal(*found)


def test_a_layer_that_the_model_lacks_is_refused(tmp_path: Path) -> None:
    """By name."""
    model, _ = both(tmp_path, "Llama")
    with pytest.raises(ValueError, match="no linear layers named qkv_proj"):
        model.slot(LoraShape(4, 8, ("qkv_proj",)))
