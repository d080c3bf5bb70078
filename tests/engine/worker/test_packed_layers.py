"""engine.worker.packed_layers: what vLLM's layers get of an adapter, beside what vLLM would have made of it."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor
from vllm.lora.lora_model import LoRAModel
from vllm.lora.model_manager import LoRAModelManager
from vllm.lora.peft_helper import PEFTHelper

from engine.training.adapter_tensors import AdapterTensors
from engine.training.lora_slot import LoraShape
from engine.worker.packed_layers import PackedLayers, empty_behind_slots

QKV = [f"model.layers.0.self_attn.{part}_proj" for part in "qkv"]
PACKED = {"model.layers.0.self_attn.qkv_proj": QKV}


def lora_manager() -> SimpleNamespace:
    """Return vLLM's managers, of a model with one layer in which three modules are packed and another that is none."""
    adapters = LoRAModelManager.__new__(LoRAModelManager)
    adapters.model = torch.nn.Module()
    adapters.packed_modules = PACKED
    adapters.modules = {}
    adapters.is_pooling_model = False
    return SimpleNamespace(_adapter_manager=adapters)


def adapter(modules: tuple[str, ...], alpha: int = 4) -> AdapterTensors:
    """Return an adapter of rank 2 with these modules of the layer, each with numbers of its own."""
    config = LoraShape(2, alpha, tuple(name.rpartition(".")[2] for name in modules)).config("base")
    tensors = {}
    for number, name in enumerate(modules):
        stem = f"base_model.model.{name}"
        tensors[f"{stem}.lora_A.weight"] = torch.arange(6.0).view(2, 3) + 100 * number
        tensors[f"{stem}.lora_B.weight"] = torch.arange(8.0).view(4, 2) - 100 * number
    return AdapterTensors(config, tensors)


def matrices(weights: Any) -> list[Tensor | None]:
    """Return A and B of a layer's parts."""
    parts = (weights.lora_a, weights.lora_b)
    return [matrix for part in parts for matrix in (part if isinstance(part, list) else [part])]


def of_vllm(manager: Any, one: AdapterTensors) -> dict[str, Any]:
    """Return the layers that vLLM makes of an adapter's tensors."""
    helper = PEFTHelper.from_dict(one.config)
    tensors = {name: tensor.clone() for name, tensor in one.tensors.items()}
    record = LoRAModel.from_lora_tensors(1, tensors, helper, device="cpu", dtype=torch.float32)
    manager._adapter_manager._create_merged_loras_inplace(record)
    return record.loras


@pytest.mark.parametrize("alpha", [2, 4])
@pytest.mark.parametrize(
    "modules",
    [tuple(QKV), (QKV[2], QKV[0]), ("model.layers.0.self_attn.o_proj",), (*QKV, "model.layers.0.mlp.down_proj")],
)
def test_layers_are_what_vllm_would_have_made(modules: tuple[str, ...], alpha: int) -> None:
    """The same matrices, scaled, in the same order; vLLM's own packing leaves them as they are."""
    manager, one = lora_manager(), adapter(modules, alpha)
    theirs = of_vllm(manager, one)
    ours = LoRAModel(1, 2, PackedLayers(manager).of(one, alpha / 2))
    manager._adapter_manager._create_merged_loras_inplace(ours)
    assert ours.loras.keys() == theirs.keys()
    for name, weights in theirs.items():
        for own, other in zip(matrices(ours.loras[name]), matrices(weights), strict=True):
            assert (own is None and other is None) or torch.equal(own, other)


def test_the_registrys_tensors_are_handed_over_and_stay_as_they_are() -> None:
    """Nothing is copied but a B that is scaled."""
    manager, one = lora_manager(), adapter(tuple(QKV))
    before = {name: tensor.clone() for name, tensor in one.tensors.items()}
    layers = PackedLayers(manager).of(one, 2.0)
    manager._adapter_manager._create_merged_loras_inplace(LoRAModel(1, 2, layers))
    assert all(torch.equal(one.tensors[name], tensor) for name, tensor in before.items())
    first = one.tensors[f"base_model.model.{QKV[0]}.lora_A.weight"]
    assert layers["model.layers.0.self_attn.qkv_proj"].lora_a[0] is first


def test_names_are_worked_out_once_for_adapters_of_one_kind() -> None:
    """In whatever order their tensors stand."""
    packed = PackedLayers(lora_manager())
    one = adapter(tuple(QKV))
    packed.of(one, 1.0)
    packed.of(AdapterTensors(one.config, dict(reversed(one.tensors.items()))), 1.0)
    assert len(packed._names) == 1


def test_a_record_is_empty_behind_its_slot_and_filled_again_for_another() -> None:
    """What vLLM lists holds no tensors; an adapter that has lost its slot is asked for once more."""
    record, seen, asked = SimpleNamespace(id=7, loras={"layer": "weights"}), [], []

    def activate(lora_int_id: int) -> bool:
        seen.append((lora_int_id, dict(record.loras)))
        return True

    manager = SimpleNamespace(activate_adapter=activate, get_adapter=lambda _: record, _active_adapters=set())
    empty_behind_slots(manager, lambda one: asked.append(one.id) or {"layer": "again"})
    assert manager.activate_adapter(7)
    assert not record.loras
    manager._active_adapters = {7}
    manager.activate_adapter(7)
    assert not asked
    manager._active_adapters = set()
    manager.activate_adapter(7)
    assert asked == [7]
    assert seen == [(7, {"layer": "weights"}), (7, {}), (7, {"layer": "again"})]
    assert not record.loras
