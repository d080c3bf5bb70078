"""engine.training.fused_layers: linear layers as one product, and the adapters on their parts."""

import torch

from engine.training.fused_layers import ATTENTION, fuse, joined, new_slot, tensor_name
from engine.training.lora_slot import LoraShape


def state(*, biases: bool = False) -> dict[str, torch.Tensor]:
    """Return the weights of an attention layer of width 8 with four query heads and one key head of 2."""
    sizes = {"q_proj": (8, 8), "k_proj": (2, 8), "v_proj": (2, 8), "o_proj": (8, 8)}
    found = {f"self_attn.{name}.weight": torch.randn(size) for name, size in sizes.items()}
    wanted = {name: size for name, size in sizes.items() if biases and name != "o_proj"}
    return found | {f"self_attn.{name}.bias": torch.randn(size[0]) for name, size in wanted.items()}


def test_parts_lie_one_below_the_other() -> None:
    """Weights and biases in the order of the fusion; a layer without biases has none."""
    weights = state(biases=True)
    layers = fuse(weights, 0, ATTENTION)
    assert torch.equal(layers["qkv"].weight[8:10], weights["self_attn.k_proj.weight"])
    assert layers["qkv"].bias is not None
    assert torch.equal(layers["qkv"].bias[10:], weights["self_attn.v_proj.bias"])
    assert layers["out"].bias is None


def test_only_the_wanted_parts_are_adapted() -> None:
    """Each knows its rows of the weight, and its ranks among those that are adapted."""
    layer = fuse(state(), 0, ATTENTION)["qkv"]
    found = list(layer.adapted(LoraShape(4, 8, ("k_proj", "v_proj"))))
    assert found == [
        ("layers.0.self_attn.k_proj", slice(8, 10), slice(0, 4)),
        ("layers.0.self_attn.v_proj", slice(10, 12), slice(4, 8)),
    ]


def test_a_slot_has_pefts_names_and_each_layers_a_in_one_piece() -> None:
    """The A of query and value follow one another in memory; their B have the sizes of the parts."""
    slot = new_slot([fuse(state(), 0, ATTENTION)], LoraShape(4, 8, ("q_proj", "v_proj")), "base")
    first, second = (slot.parameters[tensor_name(f"layers.0.self_attn.{name}", "A")] for name in ("q_proj", "v_proj"))
    assert second.storage_offset() - first.storage_offset() == first.numel()
    assert {name.rpartition("layers.0.")[2]: tuple(value.shape) for name, value in slot.parameters.items()} == {
        "self_attn.q_proj.lora_A.weight": (4, 8), "self_attn.v_proj.lora_A.weight": (4, 8),
        "self_attn.q_proj.lora_B.weight": (8, 4), "self_attn.v_proj.lora_B.weight": (2, 4),
    }  # fmt: skip


def test_slices_of_one_tensor_are_joined_without_a_copy() -> None:
    """Where each follows the one before in memory; a tensor by itself is what it is."""
    whole = torch.randn(10, 8)
    parts = whole.split([4, 3, 3])
    assert joined(parts).data_ptr() == whole.data_ptr()
    assert torch.equal(joined(parts), whole)
    assert torch.equal(joined(parts[1:]), whole[4:])
    assert joined(parts[1:]).data_ptr() == parts[1].data_ptr()
    assert joined(parts[:1]).data_ptr() == whole.data_ptr()


def test_other_tensors_are_copied_one_below_the_other() -> None:
    """Slices in another order, with something between them, of columns, or of several tensors."""
    whole = torch.randn(10, 8)
    first, second, third = whole.split([4, 3, 3])
    for parts in ([second, first], [first, third], [first, second.clone()], [whole[:, :4], whole[:, 4:]]):
        found = joined(parts)
        assert torch.equal(found, torch.cat(parts))
        assert found.untyped_storage().data_ptr() != whole.untyped_storage().data_ptr()
