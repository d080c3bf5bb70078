"""Adapter tensors inside the worker: what vLLM loads a version from, and what the trainer starts an update from.

Owns the memory copies (a bounded LRU over versions that are on disk; versions not yet on disk stay) and the
replacement of vLLM's `_load_adapter`. Invariants: a request for an unloadable version never raises (that would end
the engine for everyone): it gets the zero adapter and the version is reported; tensors handed to vLLM are copies,
because vLLM multiplies B by the scaling in place.
"""

import json
import logging
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_safetensors
from safetensors.torch import save as save_safetensors
from torch import Tensor

from engine.adapter_ref import CONFIG_FILE, TENSORS_FILE, ZERO_LORA_INT_ID

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class AdapterTensors:
    """One adapter in memory: PEFT configuration and PEFT-named tensors, float32."""

    config: dict[str, Any]
    tensors: dict[str, Tensor]
    is_on_disk: bool = False

    @property
    def is_finite(self) -> bool:
        """Whether every value is a number."""
        return all(bool(torch.isfinite(t).all()) for t in self.tensors.values())

    def cloned(self) -> dict[str, Tensor]:
        """Copies of the tensors, safe to be changed in place."""
        return {name: tensor.detach().clone() for name, tensor in self.tensors.items()}

    def files(self) -> dict[str, bytes]:
        """The two files of a PEFT directory."""
        contiguous = {name: tensor.detach().contiguous() for name, tensor in self.tensors.items()}
        return {
            CONFIG_FILE: json.dumps(self.config, indent=2, sort_keys=True).encode(),
            TENSORS_FILE: save_safetensors(contiguous, metadata={"format": "pt"}),
        }


def read_directory(path: Path) -> AdapterTensors:
    """Reads a PEFT directory. Raises OSError or ValueError when it is missing, broken or not finite."""
    config = json.loads((path / CONFIG_FILE).read_text())
    try:
        tensors = load_safetensors((path / TENSORS_FILE).read_bytes())
    except SafetensorError as error:
        raise ValueError(f"{path / TENSORS_FILE} is not a safetensors file: {error}") from error
    adapter = AdapterTensors(config, {name: t.float() for name, t in tensors.items()}, is_on_disk=True)
    if not adapter.is_finite:
        raise ValueError(f"{path} holds a value that is not a number")
    return adapter


def require_fitting(adapter: AdapterTensors, zero: AdapterTensors, max_rank: int) -> None:
    """Raises ValueError when the adapter is not made for the model of `zero`, or its rank is above the slots'."""
    if not adapter.tensors:
        raise ValueError("the adapter holds no tensors")
    for name, tensor in adapter.tensors.items():
        if name not in zero.tensors:
            raise ValueError(f"the model has no {name}")
        rank_axis = 0 if ".lora_A." in name else 1
        if tensor.dim() != 2 or tensor.shape[1 - rank_axis] != zero.tensors[name].shape[1 - rank_axis]:
            raise ValueError(f"{name} has shape {tuple(tensor.shape)}, which does not fit the model")
        if tensor.shape[rank_axis] > max_rank:
            raise ValueError(f"{name} has rank {tensor.shape[rank_axis]}, above host.max_lora_rank {max_rank}")


def require_whole(adapter: AdapterTensors, zero: AdapterTensors) -> None:
    """Raises ValueError unless the adapter has exactly the tensors of the modules that its configuration names."""
    targets = set(adapter.config["target_modules"])
    modules = {name: name.rpartition(".lora_")[0].rpartition(".")[2] for name in zero.tensors}
    if unknown := sorted(targets - set(modules.values())):
        raise ValueError(f"the modules {', '.join(unknown)[:200]} are not trained here")
    wanted = {name for name, module in modules.items() if module in targets}
    if differing := sorted(wanted ^ set(adapter.tensors)):
        raise ValueError(f"its tensors are not those of its modules: {differing[0][:120]}")


@dataclass
class LoraRegistry:
    """Adapters by `lora_int_id`; `failed` collects versions that were asked for and could not be loaded."""

    capacity: int
    zero: AdapterTensors
    max_rank: int
    failed: dict[int, str] = field(default_factory=dict)
    _adapters: "OrderedDict[int, AdapterTensors]" = field(default_factory=OrderedDict)

    def put(self, lora_int_id: int, adapter: AdapterTensors) -> None:
        """Keeps an adapter; the longest unused one that is on disk makes room."""
        self._adapters[lora_int_id] = adapter
        self._adapters.move_to_end(lora_int_id)
        on_disk = [key for key, kept in self._adapters.items() if kept.is_on_disk]
        for key in on_disk[: max(0, len(self._adapters) - self.capacity)]:
            del self._adapters[key]

    def get(self, lora_int_id: int, path: str) -> AdapterTensors:
        """From memory, else from disk. Raises OSError or ValueError when neither has it."""
        if lora_int_id == ZERO_LORA_INT_ID:
            return self.zero
        if lora_int_id not in self._adapters:
            adapter = read_directory(Path(path))
            require_fitting(adapter, self.zero, self.max_rank)
            self.put(lora_int_id, adapter)
        self._adapters.move_to_end(lora_int_id)
        return self._adapters[lora_int_id]

    def mark_on_disk(self, lora_int_id: int) -> None:
        """From now on this version may leave memory."""
        if lora_int_id in self._adapters:
            self.put(lora_int_id, replace(self._adapters[lora_int_id], is_on_disk=True))

    def drop(self, lora_int_id: int) -> None:
        """Forgets a version."""
        self._adapters.pop(lora_int_id, None)
        self.failed.pop(lora_int_id, None)

    def __contains__(self, lora_int_id: int) -> bool:
        """Whether the version is in memory."""
        return lora_int_id in self._adapters

    def get_or_zero(self, lora_int_id: int, path: str) -> AdapterTensors:
        """Like `get`, but an unloadable version becomes the zero adapter and is noted in `failed`."""
        try:
            return self.get(lora_int_id, path)
        except (OSError, ValueError) as error:
            logger.warning("adapter %d cannot be loaded, serving the base model instead: %s", lora_int_id, error)
            self.failed[lora_int_id] = str(error)
            return self.zero


def install(lora_manager: Any, registry: LoraRegistry) -> None:
    """Makes vLLM's worker-side LoRA manager load from `registry`. Once per engine."""
    lora_manager._load_adapter = _loader(lora_manager, registry)


def check_servable(lora_manager: Any, adapter: AdapterTensors) -> None:
    """Raises ValueError when vLLM would refuse the adapter's kind or rank."""
    from vllm.lora.peft_helper import PEFTHelper

    PEFTHelper.from_dict(adapter.config).validate_legal(lora_manager.lora_config)


def _loader(lora_manager: Any, registry: LoraRegistry) -> Callable[[Any], Any]:
    def load_adapter(lora_request: Any) -> Any:
        adapter = registry.get_or_zero(lora_request.lora_int_id, lora_request.lora_path)
        try:
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
    mapper = getattr(model, "hf_to_vllm_mapper", None)
    lora = LoRAModel.from_lora_tensors(
        lora_model_id=lora_int_id,
        tensors=adapter.cloned(),
        peft_helper=helper,
        device="cpu",
        dtype=lora_manager.lora_config.lora_dtype,
        model_vocab_size=lora_manager.vocab_size,
        weights_mapper=mapper.get_rename_mapper() if mapper is not None else None,
    )
    lora.is_3d_lora_weight = False
    return lora
