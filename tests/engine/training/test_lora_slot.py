"""engine.training.lora_slot: the flat buffer of one adapter's values."""

import pytest
import torch

from engine.training.adapter_tensors import AdapterTensors
from engine.training.lora_slot import LoraShape, LoraSlot

SHAPE = LoraShape(2, 4, ("q_proj",))
SIZES = {"m.q_proj.lora_A.weight": (2, 5), "m.q_proj.lora_B.weight": (3, 2)}


def make_slot() -> LoraSlot:
    """Return a slot with one module of 5 inputs and 3 outputs."""
    return LoraSlot(SHAPE, SIZES, "base", torch.device("cpu"))


def test_the_tensors_are_views_of_one_buffer() -> None:
    """Values and gradients written to the buffer are read from the views, and the other way round."""
    slot = make_slot()
    slot.parameters["m.q_proj.lora_B.weight"].fill_(7.0)
    slot.grads["m.q_proj.lora_A.weight"].fill_(3.0)
    assert slot.flat[10:].tolist() == [7.0] * 6
    assert slot.flat.grad is not None
    assert slot.flat.grad[:10].tolist() == [3.0] * 10


def test_a_fresh_adapter_has_kaiming_a_and_zero_b() -> None:
    """A is within +-1/sqrt(inputs) and not zero, and B is zero, so the adapter starts as the base model."""
    slot = make_slot()
    slot.load_fresh(seed=3)
    a, b = slot.parameters.values()
    assert 0 < a.abs().max() <= 5**-0.5
    assert not b.any()


def test_the_seed_decides_the_fresh_values() -> None:
    """The same seed gives the same values, another seed gives others."""
    slot = make_slot()
    drawn = []
    for seed in (1, 1, 2):
        slot.load_fresh(seed)
        drawn.append(slot.flat.detach().clone())
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])


def test_what_is_exported_can_be_loaded_and_is_a_copy() -> None:
    """An exported adapter does not change with later training."""
    slot, other = make_slot(), make_slot()
    slot.load_fresh(1)
    exported = slot.export()
    other.load(exported)
    assert torch.equal(slot.flat, other.flat)
    slot.load_fresh(2)
    assert torch.equal(exported.tensors["m.q_proj.lora_A.weight"], other.parameters["m.q_proj.lora_A.weight"])


def test_fading_takes_from_b_alone() -> None:
    """A stays and B shrinks by the share, and the revision tells that merged weights are stale."""
    slot = make_slot()
    slot.flat.data.fill_(2.0)
    revision = slot.revision
    slot.fade(0.75)
    assert slot.flat[:10].tolist() == [2.0] * 10
    assert slot.flat[10:].tolist() == [1.5] * 6
    assert slot.revision > revision


def test_every_change_of_the_values_changes_the_revision() -> None:
    """Loading, an optimizer step and values held for a moment each change the revision."""
    slot = make_slot()
    seen = {slot.revision}
    slot.load_fresh(1)
    seen.add(slot.revision)
    slot.load(slot.export())
    seen.add(slot.revision)
    slot.grad.fill_(1.0)
    torch.optim.AdamW([slot.flat], foreach=False).step()
    seen.add(slot.revision)
    with slot.holding(torch.zeros_like(slot.flat)):
        seen.add(slot.revision)
    seen.add(slot.revision)
    assert len(seen) == 6


def test_held_values_are_given_back_also_after_an_error() -> None:
    """The slot has its own values again after the block."""
    slot = make_slot()
    slot.load_fresh(1)
    before = slot.flat.detach().clone()

    def fail_in_between() -> None:
        with slot.holding(torch.ones_like(before)):
            assert slot.flat.detach().eq(1).all()
            raise RuntimeError("in between")

    with pytest.raises(RuntimeError, match="in between"):
        fail_in_between()
    assert torch.equal(slot.flat, before)


def test_an_adapter_for_other_modules_is_refused() -> None:
    """An adapter with other names is refused as a whole."""
    slot = make_slot()
    with pytest.raises(ValueError, match="other modules"):
        slot.load(AdapterTensors({}, {"m.k_proj.lora_A.weight": torch.zeros(2, 5)}))


def test_the_shape_is_read_back_from_the_configuration() -> None:
    """A shape is read from adapter_config.json with its modules in any order."""
    shape = LoraShape(8, 16, ("k_proj", "q_proj"))
    assert LoraShape.of(shape.config("base")) == shape
    assert LoraShape.of({"r": 8, "lora_alpha": 16, "target_modules": ["q_proj", "k_proj"]}) == shape
    assert shape.scaling == 2.0
