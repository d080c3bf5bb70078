"""One adapter's tensors in memory, read from a PEFT directory and written as one, and the checks on them.

Invariant: no adapter that holds a value that is not a number is ever read.
"""

import json
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save as save_safetensors
from torch import Tensor

from engine.adapter_ref import CONFIG_FILE, TENSORS_FILE
from engine.training.tensor_file import read_tensors


@dataclass(frozen=True)
class AdapterTensors:
    """One adapter in memory: PEFT configuration and PEFT-named tensors."""

    config: dict[str, Any]
    tensors: dict[str, Tensor]
    is_on_disk: bool = False

    @property
    def is_finite(self) -> bool:
        """Return True if every value is a number, and so is each tensor's sum: it is done while others read."""
        sums = [tensor.sum(dtype=torch.float32) for tensor in self.tensors.values()]
        return not sums or bool(torch.stack(sums).isfinite().all())

    def rounded(self, dtype: torch.dtype) -> "AdapterTensors":
        """Return the adapter in another type, the very one if it has it already."""
        if all(tensor.dtype == dtype for tensor in self.tensors.values()):
            return self
        return replace(self, tensors={name: tensor.to(dtype) for name, tensor in self.tensors.items()})

    @cached_property
    def num_bytes(self) -> int:
        """The size of the tensors in memory."""
        return sum(tensor.nbytes for tensor in self.tensors.values())

    def files(self) -> dict[str, bytes]:
        """Return the two files of a PEFT directory by name."""
        contiguous = {name: tensor.detach().contiguous() for name, tensor in self.tensors.items()}
        return {
            CONFIG_FILE: json.dumps(self.config, indent=2, sort_keys=True).encode(),
            TENSORS_FILE: save_safetensors(contiguous, metadata={"format": "pt"}),
        }


def read_directory(path: Path, dtype: torch.dtype = torch.float32) -> AdapterTensors:
    """Read a PEFT directory. Raises OSError or ValueError if it is missing, broken or not finite."""
    config = json.loads((path / CONFIG_FILE).read_text())
    tensors = read_tensors(path / TENSORS_FILE)
    adapter = AdapterTensors(config, tensors, is_on_disk=True).rounded(dtype)
    if not adapter.is_finite:
        raise ValueError(f"{path} holds a value that is not a number")
    return adapter


def require_fitting(adapter: AdapterTensors, zero: AdapterTensors, max_rank: int) -> None:
    """Raise ValueError if the adapter does not fit the model of `zero`, or its rank is above `max_rank`."""
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
    """Raise ValueError unless the adapter has exactly the tensors of the modules that its configuration names."""
    targets = set(adapter.config["target_modules"])
    modules = {name: name.rpartition(".lora_")[0].rpartition(".")[2] for name in zero.tensors}
    if unknown := sorted(targets - set(modules.values())):
        raise ValueError(f"the modules {', '.join(unknown)[:200]} are not trained here")
    wanted = {name for name, module in modules.items() if module in targets}
    if differing := sorted(wanted ^ set(adapter.tensors)):
        raise ValueError(f"its tensors are not those of its modules: {differing[0][:120]}")
