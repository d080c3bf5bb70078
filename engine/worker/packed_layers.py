"""An adapter's tensors as the layers of vLLM's model take them, and vLLM without copies of its own.

vLLM would convert, pack and keep every adapter beside the registry, under names that it works out again for each. Here
the names are worked out once per kind of adapter, a layer gets the registry's own tensors, and vLLM's record of an
adapter is empty from the moment that it is in a slot. Invariant: a tensor of the registry is never changed.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from torch import Tensor

from engine.training.adapter_tensors import AdapterTensors

_A, _B = ".lora_A.weight", ".lora_B.weight"
Layers: TypeAlias = dict[str, Any]  # vLLM's LoRALayerWeights by the name of the layer


@dataclass(frozen=True)
class LayerNames:
    """The modules that are one layer in vLLM, by their names in PEFT's file without what stands behind; None: none."""

    modules: tuple[str | None, ...]
    is_packed: bool

    def weights(self, layer: str, adapter: AdapterTensors, scaling: float) -> Any:
        """Return A and B of the layer as vLLM takes them, with B scaled."""
        from vllm.lora.lora_weights import LoRALayerWeights, PackedLoRALayerWeights

        rank, alpha = adapter.config["r"], adapter.config["lora_alpha"]
        a = [name and adapter.tensors[name + _A] for name in self.modules]
        b = [name and _scaled(adapter.tensors[name + _B], scaling) for name in self.modules]
        if not self.is_packed:
            return LoRALayerWeights(layer, rank, alpha, a[0], b[0], scaling=1)
        return PackedLoRALayerWeights(layer, rank, [alpha] * len(a), a, b, scaling=[1] * len(a))


def _scaled(b: Tensor, scaling: float) -> Tensor:
    return b if scaling == 1 else b * scaling


class PackedLayers:
    """The layers of vLLM's model, by which adapters are packed."""

    def __init__(self, lora_manager: Any) -> None:
        """Take over the names of the model's layers."""
        self._manager = lora_manager._adapter_manager
        mapper = getattr(self._manager.model, "hf_to_vllm_mapper", None)
        self._mapper = mapper.get_rename_mapper() if mapper is not None else None
        self._names: dict[frozenset[str], dict[str, LayerNames]] = {}

    def of(self, adapter: AdapterTensors, scaling: float) -> Layers:
        """Return the layers of an adapter."""
        kind = frozenset(adapter.tensors)
        if kind not in self._names:
            self._names[kind] = self._layer_names(kind)
        return {layer: names.weights(layer, adapter, scaling) for layer, names in self._names[kind].items()}

    def _layer_names(self, tensors: Iterable[str]) -> dict[str, LayerNames]:
        from vllm.lora.utils import parse_fine_tuned_lora_name

        names = [name.removesuffix(_A) for name in tensors if name.endswith(_A)]
        module_of = {parse_fine_tuned_lora_name(name + _A, self._mapper)[0]: name for name in names}
        packed = _packed(module_of, self._manager.packed_modules)
        inside = {name for layer in packed.values() for name in layer.modules}
        single = {module: LayerNames((name,), False) for module, name in module_of.items() if name not in inside}
        return single | packed


def _packed(module_of: Mapping[str, str], packed_modules: Mapping[str, list[str]]) -> dict[str, LayerNames]:
    """Return the layers that have several modules, of which at least one has an adapter."""
    found = {layer: tuple(module_of.get(module) for module in modules) for layer, modules in packed_modules.items()}
    return {layer: LayerNames(names, True) for layer, names in found.items() if any(names)}


def empty_behind_slots(adapter_manager: Any, layers_of: Callable[[Any], Layers]) -> None:
    """Empty vLLM's record of an adapter once its layers are in a slot. In place.

    `layers_of` a record is asked for where vLLM still lists an adapter whose slot another one has taken.
    """
    activate = adapter_manager.activate_adapter

    def activate_adapter(lora_int_id: int) -> bool:
        record = adapter_manager.get_adapter(lora_int_id)
        if not record.loras and lora_int_id not in adapter_manager._active_adapters:
            record.loras.update(layers_of(record))
        try:
            return bool(activate(lora_int_id))
        finally:
            record.loras.clear()

    adapter_manager.activate_adapter = activate_adapter
