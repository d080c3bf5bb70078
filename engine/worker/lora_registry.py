"""The adapters in the worker's memory, from which vLLM loads versions and the trainer starts updates.

Owns the memory copies (an LRU over versions that are on disk, bounded by number and bytes; versions not yet on disk
stay, and so does the one used last) and the replacement of vLLM's `_load_adapter`. Invariants: a request for an
unloadable version never raises (that would end the engine for everyone): it gets the zero adapter and the version is
reported; each B handed to vLLM is a copy, because vLLM multiplies it by the scaling in place; vLLM and the trainer's
thread may ask at the same time.
"""

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from engine.adapter_ref import ZERO_LORA_INT_ID
from engine.training.adapter_tensors import AdapterTensors, read_directory, require_fitting
from engine.worker import punica

logger = logging.getLogger(__name__)


@dataclass
class LoraRegistry:
    """Adapters by `lora_int_id`; `failed` collects versions that were asked for and could not be loaded."""

    capacity: int  # adapters
    capacity_bytes: int
    zero: AdapterTensors
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
        size = sum(kept.num_bytes for kept in self._adapters.values())
        return len(self._adapters) > self.capacity or size > self.capacity_bytes

    def get(self, lora_int_id: int, path: str) -> AdapterTensors:
        """Return an adapter from memory, else from disk. Raises OSError or ValueError if neither has it."""
        if lora_int_id == ZERO_LORA_INT_ID:
            return self.zero
        with self._lock:
            if lora_int_id not in self._adapters:
                adapter = read_directory(Path(path))
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
    lora_manager._load_adapter = _loader(lora_manager, registry)


def check_servable(lora_manager: Any, adapter: AdapterTensors) -> None:
    """Raise ValueError if vLLM would refuse the adapter's kind or rank."""
    from vllm.lora.peft_helper import PEFTHelper

    PEFTHelper.from_dict(adapter.config).validate_legal(lora_manager.lora_config)


def _loader(lora_manager: Any, registry: LoraRegistry) -> Callable[[Any], Any]:
    def load_adapter(lora_request: Any) -> Any:
        adapter = registry.get_or_zero(lora_request.lora_int_id, lora_request.lora_path)
        try:
            punica.make_room(adapter.config["r"])
            return _to_lora_model(lora_manager, adapter, lora_request.lora_int_id)
        except Exception as error:  # noqa: BLE001 - an exception here ends the engine for everyone
            logger.warning("vLLM refuses adapter %d: %s", lora_request.lora_int_id, error)
            registry.failed[lora_request.lora_int_id] = str(error)
            return _to_lora_model(lora_manager, registry.zero, lora_request.lora_int_id)

    return load_adapter


def _to_lora_model(lora_manager: Any, adapter: AdapterTensors, lora_int_id: int) -> Any:
    from vllm.lora.lora_model import LoRAModel
    from vllm.lora.peft_helper import PEFTHelper

    helper = PEFTHelper.from_dict(adapter.config)
    helper.validate_legal(lora_manager.lora_config)
    model = lora_manager._adapter_manager.model
    mapper, dtype = getattr(model, "hf_to_vllm_mapper", None), lora_manager.lora_config.lora_dtype
    lora = LoRAModel.from_lora_tensors(
        lora_model_id=lora_int_id,
        tensors=adapter.served(dtype),
        peft_helper=helper,
        device="cpu",
        dtype=dtype,
        model_vocab_size=lora_manager.vocab_size,
        weights_mapper=mapper.get_rename_mapper() if mapper is not None else None,
    )
    lora.is_3d_lora_weight = False
    return lora
