"""The adapters in the worker's memory, from which vLLM loads versions and the trainer starts updates.

Owns the memory copies, in the type that vLLM serves adapters in (an LRU over versions that are on disk, bounded by
bytes; versions not yet on disk stay, and so does the one used last), and the replacement of vLLM's `_load_adapter`.
Invariants: a request for an unloadable version never raises (that would end the engine for everyone): it gets the zero
adapter and the version is reported; vLLM and the trainer's thread may ask at the same time.
"""

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from engine.adapter_ref import ZERO_LORA_INT_ID
from engine.training.adapter_tensors import AdapterTensors, read_directory, require_fitting
from engine.worker import punica
from engine.worker.packed_layers import Layers, PackedLayers, empty_behind_slots

logger = logging.getLogger(__name__)


@dataclass
class LoraRegistry:
    """Adapters by `lora_int_id`; `failed` collects versions that were asked for and could not be loaded."""

    capacity_bytes: int
    zero: AdapterTensors
    dtype: torch.dtype  # that vLLM serves adapters in
    max_rank: int
    failed: dict[int, str] = field(default_factory=dict)
    _adapters: "OrderedDict[int, AdapterTensors]" = field(default_factory=OrderedDict)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def put(self, lora_int_id: int, adapter: AdapterTensors) -> None:
        """Store an adapter. The longest unused ones that are on disk make room."""
        with self._lock:
            self._adapters[lora_int_id] = adapter
            self._adapters.move_to_end(lora_int_id)
            self._make_room([key for key in self._adapters if key != lora_int_id])

    def _make_room(self, may_leave: list[int]) -> None:
        for key in may_leave:
            if not self._is_over():
                return
            if self._adapters[key].is_on_disk:
                del self._adapters[key]

    def _is_over(self) -> bool:
        return sum(kept.num_bytes for kept in self._adapters.values()) > self.capacity_bytes

    def get(self, lora_int_id: int, path: str) -> AdapterTensors:
        """Return an adapter from memory, else from disk. Raises OSError or ValueError if neither has it."""
        if lora_int_id == ZERO_LORA_INT_ID:
            return self.zero
        with self._lock:
            if lora_int_id not in self._adapters:
                adapter = read_directory(Path(path), self.dtype)
                require_fitting(adapter, self.zero, self.max_rank)
                self.put(lora_int_id, adapter)
            self._adapters.move_to_end(lora_int_id)
            return self._adapters[lora_int_id]

    def mark_on_disk(self, lora_int_id: int) -> None:
        """Allow this version to leave memory."""
        with self._lock:
            if lora_int_id in self._adapters:
                self._adapters[lora_int_id] = replace(self._adapters[lora_int_id], is_on_disk=True)
                self._make_room([*self._adapters])

    def drop(self, lora_int_id: int) -> None:
        """Forget a version and its failure."""
        with self._lock:  # the trainer's thread may be putting another one in
            self._adapters.pop(lora_int_id, None)
            self.failed.pop(lora_int_id, None)

    def __contains__(self, lora_int_id: int) -> bool:
        """Return True if the version is in memory."""
        return lora_int_id in self._adapters

    def get_or_zero(self, lora_int_id: int, path: str) -> AdapterTensors:
        """Return an adapter as `get` does; one that cannot be loaded becomes the zero adapter, noted in `failed`."""
        try:
            return self.get(lora_int_id, path)
        except (OSError, ValueError) as error:
            logger.warning("adapter %d cannot be loaded, serving the base model instead: %s", lora_int_id, error)
            self.failed[lora_int_id] = str(error)
            return self.zero


def install(lora_manager: Any, registry: LoraRegistry) -> None:
    """Make vLLM's worker-side LoRA manager load from `registry`. Call it once per engine."""
    loader = _Loader(lora_manager, registry)
    lora_manager._load_adapter = loader.load
    empty_behind_slots(lora_manager._adapter_manager, loader.layers_of)
    lora_manager._apply_adapters = _loaded_first(lora_manager)


def check_servable(lora_manager: Any, adapter: AdapterTensors) -> Any:
    """Return vLLM's reading of an adapter's configuration. Raises ValueError if it would refuse its kind or rank."""
    from vllm.lora.peft_helper import PEFTHelper

    helper = PEFTHelper.from_dict(adapter.config)
    helper.validate_legal(lora_manager.lora_config)
    return helper


class _Loader:
    """Gives vLLM the adapters that its next batch needs."""

    def __init__(self, lora_manager: Any, registry: LoraRegistry) -> None:
        self._lora_manager = lora_manager
        self._registry = registry
        self._packed = PackedLayers(lora_manager)

    def load(self, lora_request: Any) -> Any:
        """Return vLLM's record of an adapter: the zero adapter's if it cannot be loaded or served."""
        from vllm.lora.lora_model import LoRAModel

        record = LoRAModel(lora_request.lora_int_id, 1, {})
        record.path, record.is_3d_lora_weight = lora_request.lora_path, False
        record.loras.update(self.layers_of(record))
        return record

    def layers_of(self, record: Any) -> Layers:
        """Return the layers of the adapter that a record is about."""
        adapter = self._registry.get_or_zero(record.id, record.path)
        try:
            return self._layers(adapter)
        except Exception as error:  # noqa: BLE001 - an exception here ends the engine for everyone
            logger.warning("vLLM refuses adapter %d: %s", record.id, error)
            self._registry.failed[record.id] = str(error)
            return self._layers(self._registry.zero)

    def _layers(self, adapter: AdapterTensors) -> Layers:
        helper = check_servable(self._lora_manager, adapter)
        punica.make_room(helper.r)
        return self._packed.of(adapter, helper.vllm_lora_scaling_factor)


def _loaded_first(lora_manager: Any) -> Callable[[Any], None]:
    """Return vLLM's look at a batch's adapters with those that are loaded first: else a new one takes their slots."""
    apply = lora_manager._apply_adapters

    def apply_adapters(requests: Any) -> None:
        loaded = lora_manager.list_adapters()
        apply(sorted(requests, key=lambda request: request.lora_int_id not in loaded))

    return apply_adapters
