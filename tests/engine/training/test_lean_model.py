"""engine.training.lean_model: the values and gradients of Hugging Face with PEFT."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from engine.config import LORA_TARGET_MODULES
from engine.sample import Sample
from engine.training.batching import WORTH_SHARING, Batch, plan_batches
from engine.training.lean_model import LeanModel, can_compute
from engine.training.lora_slot import LoraShape
from engine.training.model import load_base
from engine.training.packing import pack
from engine.training.peft_model import PeftTrainingModel
from tests.engine.updates_of import correction_with_company, run_update, sample, token_ids

SHAPE = LoraShape(8, 16, tuple(sorted(LORA_TARGET_MODULES)))


@pytest.fixture(scope="module")
def lean(tiny_model: Path) -> LeanModel:
    """Return the lean forward of the tiny model."""
    return LeanModel(load_base(tiny_model), "tiny")


@pytest.fixture(scope="module")
def reference(tiny_model: Path) -> PeftTrainingModel:
    """Return the tiny model of Hugging Face with PEFT."""
    return PeftTrainingModel(load_base(tiny_model), "tiny")


def batch_of(samples: list[Sample]) -> Batch:
    """Return all samples in one padded batch."""
    (batch,) = plan_batches(samples, range(len(samples)), "student", 100_000, torch.device("cpu"))
    return batch


def randomise(*models: Any, shape: LoraShape = SHAPE, seed: int = 1) -> list[Any]:
    """Return a slot of each model with the same random A and B."""
    slots = [model.slot(shape) for model in models]
    adapter = slots[0].export()
    generator = torch.Generator().manual_seed(seed)
    values = {n: torch.randn(t.shape, generator=generator) * 0.05 for n, t in adapter.tensors.items()}
    for slot in slots:
        slot.load(type(adapter)(adapter.config, values))
        slot.grad.zero_()
    return slots


def test_the_base_models_logits_are_hugging_faces(lean: LeanModel, reference: PeftTrainingModel) -> None:
    """Both give the same base output for sequences of different lengths."""
    batch = batch_of([sample(seed=i, length=6 + 5 * i) for i in range(4)])
    with torch.no_grad():
        ours, theirs = (model.logits(model.hidden(None, batch)) for model in (lean, reference))
    assert torch.allclose(ours, theirs, atol=2e-3, rtol=1e-4)


@pytest.mark.parametrize("modules", [SHAPE.target_modules, ("q_proj", "v_proj"), ("up_proj",), ("down_proj", "o_proj")])
def test_values_and_gradients_with_an_adapter_are_pefts(
    lean: LeanModel, reference: PeftTrainingModel, modules: tuple[str, ...]
) -> None:
    """Values and gradients agree, even with LoRA on only a part of a fused layer."""
    batch = batch_of([sample(seed=i, length=6 + 5 * i) for i in range(4)])
    slots = randomise(lean, reference, shape=LoraShape(4, 8, modules))
    losses = []
    for model, slot in zip((lean, reference), slots, strict=True):
        logprobs = model.logits(model.hidden(slot, batch)).log_softmax(-1)
        loss = -logprobs.gather(-1, batch.token_ids_N.unsqueeze(-1)).mean()
        loss.backward()
        losses.append(float(loss.detach()))
    assert losses[0] == pytest.approx(losses[1], abs=1e-4)
    ours, theirs = (slot.views(slot.grad) for slot in slots)
    assert set(ours) == set(theirs)
    for name, gradient in ours.items():
        assert torch.allclose(gradient, theirs[name], atol=1e-4, rtol=1e-3), name


def test_a_long_sequence_is_attended_to_in_pieces_and_agrees(lean: LeanModel, reference: PeftTrainingModel) -> None:
    """Sequences that are longer than a piece of queries agree, too."""
    batch = batch_of([Sample("correction", token_ids(280, 1), [1], token_ids(20, 2))])
    slots = randomise(lean, reference)
    hidden = [model.hidden(slot, batch) for model, slot in zip((lean, reference), slots, strict=True)]
    assert torch.allclose(hidden[0], hidden[1], atol=1e-3)


def test_a_common_beginning_is_computed_once_and_gives_the_values_and_gradients_of_each(lean: LeanModel) -> None:
    """Sequences that begin alike become one row: states and gradients are those of the sequences by themselves."""
    start = token_ids(WORTH_SHARING + 6, seed=3)
    rows = [sample(seed=i, length=6 + 5 * i) for i in range(5)]
    rows[:4] = [replace(row, student_ids=start + row.student_ids) for row in rows[:4]]  # and one that begins otherwise
    (slot,) = randomise(lean)
    batch = batch_of(rows)
    assert pack(batch).read.ids_P.numel() < sum(len(row.student_ids) for row in rows)
    packed = lean.hidden(slot, batch)
    packed.square().sum().backward()
    gradient = slot.grad.clone()
    slot.grad.zero_()
    each = {i: lean.hidden(slot, batch_of([row])) for i, row in enumerate(rows)}
    torch.stack([states.square().sum() for states in each.values()]).sum().backward()
    for i, states in each.items():
        assert torch.allclose(packed[batch.owners_N == i], states, atol=1e-4, rtol=1e-4)
    assert torch.allclose(gradient, slot.grad, atol=1e-3, rtol=1e-3)


def test_states_without_a_gradient_are_those_of_a_step(lean: LeanModel) -> None:
    """One row or two, with a common beginning and without, with a prompt of one token, too."""
    start = token_ids(WORTH_SHARING, seed=3)
    rows = [sample(seed=i, length=6 + 5 * i) for i in range(3)]
    alike = [replace(row, student_ids=start + row.student_ids) for row in rows]
    alone = [Sample("correction", token_ids(1, 1), [1], token_ids(5, 2))]
    (slot,) = randomise(lean)
    for samples in (rows, alike, [*alike, *rows], alone):
        batch = batch_of(samples)
        taught = lean.hidden(slot, batch)
        with torch.no_grad():
            measured = lean.hidden(slot, batch)
        assert taught.requires_grad
        assert torch.allclose(taught, measured, atol=1e-4, rtol=1e-4)


def test_a_prompt_of_one_token_leaves_nothing_to_read(lean: LeanModel, reference: PeftTrainingModel) -> None:
    """Its only token predicts the first of the response, so that the row of prompts is empty."""
    batch = batch_of([Sample("correction", token_ids(1, 1), [1], token_ids(5, 2))])
    slots = randomise(lean, reference)
    hidden = [model.hidden(slot, batch) for model, slot in zip((lean, reference), slots, strict=True)]
    assert torch.allclose(hidden[0], hidden[1], atol=1e-4)


def test_a_position_does_not_depend_on_its_batch(lean: LeanModel) -> None:
    """A sample's output does not depend on padding or on its neighbours."""
    short, long = sample(seed=1, length=5), sample(seed=2, length=40)
    alone, together = batch_of([short]), batch_of([short, long])
    with torch.no_grad():
        first = lean.hidden(None, alone)
        second = lean.hidden(None, together)[together.owners_N == 0]
    assert torch.allclose(first, second, atol=1e-4)


def test_the_zero_adapter_is_the_base_model(lean: LeanModel) -> None:
    """The zero adapter has rank 1 and the value zero on all modules."""
    zero = lean.zero_adapter(LORA_TARGET_MODULES)
    slot = lean.slot(LoraShape.of(zero.config))
    batch = batch_of([sample()])
    with torch.no_grad():
        assert torch.equal(lean.hidden(slot, batch), lean.hidden(None, batch))
    assert not any(t.any() for t in zero.tensors.values())


def test_a_fresh_adapter_starts_as_the_base_model(lean: LeanModel) -> None:
    """A fresh slot changes nothing, because its B is zero."""
    slot = lean.slot(SHAPE, "score")
    slot.load_fresh(5)
    batch = batch_of([sample()])
    with torch.no_grad():
        assert torch.allclose(lean.hidden(slot, batch), lean.hidden(None, batch), atol=1e-5)


def test_using_a_slot_leaves_the_base_model_alone(lean: LeanModel) -> None:
    """The base output is the same before and after an update (CLaaS measured a teacher with the adapter on)."""
    batch = batch_of([sample()])
    with torch.no_grad():
        before = lean.hidden(None, batch)
        run_update(lean, correction_with_company(), steps=2)
        assert torch.equal(lean.hidden(None, batch), before)


def test_a_whole_update_is_the_same_in_both(lean: LeanModel, reference: PeftTrainingModel) -> None:
    """Ten steps from the same seed give the same losses and the same adapter to rounding."""
    runs = [run_update(model, correction_with_company(), steps=10) for model in (lean, reference)]
    assert runs[0].measured.losses == pytest.approx(runs[1].measured.losses, rel=1e-3)
    assert runs[0].update_norm == pytest.approx(runs[1].update_norm, rel=1e-3)


def qwen_config(**fields: Any) -> Any:
    """Return a configuration with the fields that the lean forward reads."""
    values: dict[str, Any] = {
        "model_type": "qwen3",
        "attention_bias": False,
        "use_sliding_window": False,
        "hidden_act": "silu",
        "rope_parameters": {"rope_type": "default", "rope_theta": 1e4},
    }
    return SimpleNamespace(**(values | fields))


@pytest.mark.parametrize(
    "fields",
    [
        {"model_type": "llama"},
        {"attention_bias": True},
        {"use_sliding_window": True},
        {"hidden_act": "gelu"},
        {"rope_parameters": {"rope_type": "yarn"}},
    ],
)
def test_a_model_it_does_not_compute_is_left_to_hugging_face(fields: dict[str, Any]) -> None:
    """A model that the lean forward would compute wrongly is left to PEFT."""
    assert can_compute(qwen_config())
    assert not can_compute(qwen_config(**fields))
