"""The model the trainer computes with: Hugging Face module, PEFT adapters, response positions only.

Owns the frozen base (on a CPU its own copy, on a GPU views of vLLM's tensors: see `engine.shared_weights`) and the
LoRA slots, each one flat buffer of float32 parameters that PEFT's own parameters are views of. Invariants: base
parameters never require a gradient and are never changed; with no slot active the output is the base model's.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from torch import Tensor, nn

from engine.lora_registry import AdapterTensors
from engine.samples import Batch

Role = Literal["train", "score"]


@dataclass(frozen=True)
class LoraShape:
    """What decides the tensors of an adapter: rank, scaling and the linear layers it sits on."""

    rank: int
    alpha: int
    target_modules: tuple[str, ...]

    @property
    def name(self) -> str:
        """Part of the PEFT adapter name of a slot with this shape."""
        return f"r{self.rank}a{self.alpha}-{'-'.join(self.target_modules)}"

    def peft_config(self, base_model: str) -> LoraConfig:
        """PEFT's configuration; B starts at zero and A is drawn again for every fresh adapter."""
        return LoraConfig(
            r=self.rank,
            lora_alpha=self.alpha,
            target_modules=list(self.target_modules),
            lora_dropout=0.0,
            bias="none",
            task_type="CAUSAL_LM",
            base_model_name_or_path=base_model,
        )

    def config_dict(self, base_model: str) -> dict[str, Any]:
        """The content of adapter_config.json."""
        config = self.peft_config(base_model).to_dict() | {"inference_mode": True, "peft_type": "LORA"}
        plain = {key: sorted(value) if isinstance(value, set) else value for key, value in config.items()}
        return {key: getattr(value, "value", value) for key, value in plain.items()}

    @classmethod
    def of(cls, config: dict[str, Any]) -> "LoraShape":
        """The shape of an adapter_config.json."""
        return cls(int(config["r"]), int(config["lora_alpha"]), tuple(sorted(config["target_modules"])))


class LoraSlot:
    """One set of trainable LoRA parameters: `flat` holds all values, `grad` all gradients, PEFT's are views."""

    def __init__(
        self, name: str, shape: LoraShape, parameters: dict[str, nn.Parameter], config: dict[str, Any]
    ) -> None:
        """`parameters` are PEFT's own, by the names of the PEFT file format. In place: they become views of `flat`."""
        self.name = name
        self.shape = shape
        self.config = config
        self.parameters = parameters
        size = sum(p.numel() for p in parameters.values())
        device = next(iter(parameters.values())).device
        self.flat = nn.Parameter(torch.zeros(size, device=device))
        self.grad = torch.zeros(size, device=device)
        self.flat.grad = self.grad
        self._bind()

    def _bind(self) -> None:
        views = zip(self.views(self.flat.data), self.views(self.grad), strict=True)
        for parameter, (values, grads) in zip(self.parameters.values(), views, strict=True):
            parameter.data = values
            parameter.grad = grads

    def views(self, flat: Tensor) -> list[Tensor]:
        """`flat` cut into the parameters' shapes, in order, without copying."""
        sizes = [p.numel() for p in self.parameters.values()]
        shapes = [p.shape for p in self.parameters.values()]
        return [part.view(shape) for part, shape in zip(flat.split(sizes), shapes, strict=True)]

    def load_fresh(self, seed: int) -> None:
        """In place: A Kaiming-uniform (sqrt 5) from `seed`, B zero, so the adapter starts as the base model."""
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            self.flat.zero_()
            for name, parameter in self.parameters.items():
                if ".lora_A." in name:
                    bound = parameter.shape[1] ** -0.5  # kaiming_uniform_(a=sqrt 5) is U(-1/sqrt in, 1/sqrt in)
                    parameter.copy_(torch.empty(parameter.shape).uniform_(-bound, bound, generator=generator))

    def load(self, adapter: AdapterTensors) -> None:
        """In place: takes the values of `adapter`. Raises ValueError when the names differ."""
        if set(adapter.tensors) != set(self.parameters):
            raise ValueError("the parent adapter sits on other modules than this update trains")
        with torch.no_grad():
            for name, parameter in self.parameters.items():
                parameter.copy_(adapter.tensors[name])

    def export(self) -> AdapterTensors:
        """A copy of the values in PEFT's file format, on the CPU."""
        copy = self.flat.detach().cpu().clone()
        return AdapterTensors(self.config, dict(zip(self.parameters, self.views(copy), strict=True)))

    @contextmanager
    def holding(self, flat: Tensor) -> Iterator[None]:
        """For the duration of the block the slot computes with the values `flat` (a snapshot, an average)."""
        kept = self.flat.detach().clone()
        with torch.no_grad():
            self.flat.copy_(flat)
        try:
            yield
        finally:
            with torch.no_grad():
                self.flat.copy_(kept)


class TrainingModel:
    """Forward passes with or without a LoRA slot."""

    def __init__(self, base: nn.Module, base_name: str) -> None:
        """`base` is a Hugging Face causal model with frozen parameters. In place: PEFT wraps its linear layers."""
        base.requires_grad_(requires_grad=False)
        base.eval()
        self.base_name = base_name
        self.base = base
        self._peft: PeftModel | None = None
        self._slots: dict[tuple[LoraShape, Role], LoraSlot] = {}
        self._active: LoraSlot | None = None

    @property
    def device(self) -> torch.device:
        """Where the model computes."""
        return next(self.base.parameters()).device

    @property
    def vocab_size(self) -> int:
        """Rows of the output matrix."""
        return int(self.base.get_output_embeddings().weight.shape[0])

    def slot(self, shape: LoraShape, role: Role = "train") -> LoraSlot:
        """The slot of this shape and role, made on first use: scoring never touches the values being trained."""
        if (shape, role) not in self._slots:
            self._slots[shape, role] = self._make_slot(shape, f"{role}-{shape.name}")
        return self._slots[shape, role]

    def _make_slot(self, shape: LoraShape, name: str) -> LoraSlot:
        config = shape.peft_config(self.base_name)
        if self._peft is None:
            self._peft = get_peft_model(self.base, config, adapter_name=name)
        else:
            self._peft.add_adapter(name, config)
        marker = f".{name}.weight"
        parameters = {
            name.replace(marker, ".weight"): parameter
            for name, parameter in self._peft.named_parameters()
            if name.endswith(marker)
        }
        return LoraSlot(name, shape, parameters, shape.config_dict(self.base_name))

    def zero_adapter(self, target_modules: tuple[str, ...]) -> AdapterTensors:
        """The base model written as an adapter of rank 1: every value zero."""
        slot = self.slot(LoraShape(1, 1, target_modules))
        return slot.export()

    def hidden(self, slot: LoraSlot | None, batch: Batch) -> Tensor:
        """Last hidden states at the response positions, axes [N, H]; gradients reach the slot if they are enabled."""
        with self._using(slot):
            out = self.base.base_model(input_ids=batch.input_ids_BL, use_cache=False).last_hidden_state
        return out.flatten(0, 1).index_select(0, batch.rows_N)

    def logits(self, hidden_NH: Tensor) -> Tensor:
        """Next-token logits, float32, axes [N, V]."""
        logits: Tensor = self.base.get_output_embeddings()(hidden_NH)
        return logits.float()

    @contextmanager
    def _using(self, slot: LoraSlot | None) -> Iterator[None]:
        if self._peft is None:  # no slot was made yet, so the base is still bare
            yield
            return
        if slot is None:
            with self._peft.disable_adapter():
                yield
            return
        if self._active is not slot:
            self._peft.set_adapter(slot.name)
            self._active = slot
        yield


def load_copy(model: str) -> nn.Module:
    """The trainer's own float32 copy of the base model, from the folder vLLM was given. Blocking."""
    from transformers import AutoModelForCausalLM

    loaded: nn.Module = AutoModelForCausalLM.from_pretrained(
        model, dtype=torch.float32, attn_implementation="sdpa", low_cpu_mem_usage=True
    )
    return loaded
