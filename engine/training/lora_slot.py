"""The trainable values of one adapter: one flat buffer of float32, cut into PEFT's tensors.

Invariants: `parameters` and `grads` are views of `flat` and `grad`, by the names of the PEFT file format, in a fixed
order; every change of the values changes `revision`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from engine.training.adapter_tensors import AdapterTensors


@dataclass(frozen=True)
class LoraShape:
    """The rank, the scaling and the linear layers of an adapter."""

    rank: int
    alpha: int
    target_modules: tuple[str, ...]

    @property
    def scaling(self) -> float:
        """The factor of B A."""
        return self.alpha / self.rank

    @property
    def name(self) -> str:
        """Unique per shape; part of a PEFT adapter name."""
        return f"r{self.rank}a{self.alpha}-{'-'.join(self.target_modules)}"

    def config(self, base_model: str) -> dict[str, Any]:
        """Return the content of adapter_config.json, as PEFT and vLLM read it."""
        return {
            "peft_type": "LORA",
            "task_type": "CAUSAL_LM",
            "base_model_name_or_path": base_model,
            "r": self.rank,
            "lora_alpha": self.alpha,
            "target_modules": list(self.target_modules),
            "lora_dropout": 0.0,
            "bias": "none",
            "fan_in_fan_out": False,
            "use_rslora": False,
            "use_dora": False,
            "modules_to_save": None,
            "inference_mode": True,
        }

    @classmethod
    def of(cls, config: dict[str, Any]) -> "LoraShape":
        """Read the shape from the content of an adapter_config.json."""
        return cls(int(config["r"]), int(config["lora_alpha"]), tuple(sorted(config["target_modules"])))


class LoraSlot:
    """The values and gradients of one adapter, which a forward pass reads."""

    def __init__(
        self, shape: LoraShape, sizes: dict[str, tuple[int, int]], base_model: str, device: torch.device
    ) -> None:
        """Make a slot of zeros. `sizes`: each tensor's shape by its PEFT file name, in the order of `flat`."""
        self.shape = shape
        self.config = shape.config(base_model)
        numels = [rows * columns for rows, columns in sizes.values()]
        self._sizes = sizes
        self._numels = numels
        self.flat = nn.Parameter(torch.zeros(sum(numels), device=device))
        self.grad = torch.zeros(sum(numels), device=device)
        self.flat.grad = self.grad
        self.parameters = self.views(self.flat.detach())
        self.grads = self.views(self.grad)

    def views(self, flat: Tensor) -> dict[str, Tensor]:
        """Cut `flat` into the named tensors, without copying."""
        parts = flat.split(self._numels)
        return {name: part.view(size) for part, (name, size) in zip(parts, self._sizes.items(), strict=True)}

    @property
    def revision(self) -> int:
        """A number that grows with every change of the values."""
        return int(self.flat._version)

    def load_fresh(self, seed: int) -> None:
        """Set A Kaiming-uniform (sqrt 5) from `seed` and B zero, so the adapter starts as the base model. In place."""
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            self.flat.zero_()
            for name, parameter in self.parameters.items():
                if ".lora_A." in name:
                    bound = parameter.shape[1] ** -0.5  # kaiming_uniform_(a=sqrt 5) is U(-1/sqrt in, 1/sqrt in)
                    parameter.copy_(torch.empty(parameter.shape).uniform_(-bound, bound, generator=generator))

    def load(self, adapter: AdapterTensors) -> None:
        """Copy the values of `adapter`. In place. Raises ValueError if the names differ."""
        if set(adapter.tensors) != set(self.parameters):
            raise ValueError("the adapter sits on other modules than its configuration says")
        with torch.no_grad():
            for name, parameter in self.parameters.items():
                parameter.copy_(adapter.tensors[name])

    def fade(self, share: float) -> None:
        """Multiply B by `share`, and with it everything the adapter adds to the base model. In place."""
        with torch.no_grad():
            for name, parameter in self.parameters.items():
                if ".lora_B." in name:
                    parameter.mul_(share)

    def export(self) -> AdapterTensors:
        """Return a copy of the values in PEFT's file format, on the CPU."""
        return AdapterTensors(self.config, self.views(self.flat.detach().cpu().clone()))

    @contextmanager
    def holding(self, flat: Tensor) -> Iterator[None]:
        """Compute with the values `flat` (an average, a snapshot) for the duration of the block."""
        kept = self.flat.detach().clone()
        with torch.no_grad():
            self.flat.copy_(flat)
        try:
            yield
        finally:
            with torch.no_grad():
                self.flat.copy_(kept)
