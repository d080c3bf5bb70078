"""The training forward by Hugging Face and PEFT: each architecture that heed trains, on a CPU or a GPU.

Owns the PEFT model; its LoRA parameters are views of the slots' flat buffers. Prompts are read without a gradient
(`engine.training.packing`). Invariants: base parameters never require a gradient and are never changed; with no slot
active the output is the base model's; a layer that an adapter is wanted on gets one, also if it is a part of a larger
one (Phi-3's qkv_proj and gate_up_proj), or none is made.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from peft.tuners.lora import LoraLayer
from torch import Tensor, nn

from engine.config.learning import FUSED_MODULES
from engine.training import adapted_linear
from engine.training.adapter_tensors import AdapterTensors
from engine.training.batching import Batch
from engine.training.lora_slot import LoraShape, LoraSlot
from engine.training.packing import Packed, TokenRow, pack
from engine.training.prompt_cache import PromptCache
from engine.training.recomputing import Recomputing, kept_bytes
from engine.training.step_memory import StepMemory


class PeftTrainingModel:
    """Forward passes with or without a LoRA slot."""

    def __init__(self, base: nn.Module, base_name: str) -> None:
        """Take a Hugging Face causal model with frozen parameters. In place: PEFT wraps its linear layers."""
        self.base_name = base_name
        self.base = base
        self._softcap: float | None = getattr(base.config, "final_logit_softcapping", None)  # of Gemma 2
        self._window: float = getattr(base.config.get_text_config(), "sliding_window", None) or math.inf  # tokens
        self._takes_masks: bool = base.config._attn_implementation != "eager"  # which adds them, in numbers
        text = base.config.get_text_config()
        memory = StepMemory(text.num_hidden_layers, text.hidden_size, text.intermediate_size)
        self._recomputing = Recomputing(memory, kept_bytes(self.device))
        self._recomputing.wrap(base.base_model.layers)
        self._linear = {path.rpartition(".")[2] for path, m in base.named_modules() if isinstance(m, nn.Linear)}
        self._peft: PeftModel | None = None
        self._lora_layers: list[LoraLayer] = []
        self._slots: dict[tuple[LoraShape, str], LoraSlot] = {}
        self._names: dict[int, str] = {}  # PEFT adapter name by the slot's identity
        self._active: LoraSlot | None = None

    @property
    def device(self) -> torch.device:
        """The device of the model."""
        device: torch.device = next(self.base.parameters()).device
        return device

    @property
    def vocab_size(self) -> int:
        """Rows of the output matrix."""
        return int(self.base.get_output_embeddings().weight.shape[0])

    def slot(self, shape: LoraShape, role: str = "train") -> LoraSlot:
        """Return the slot of this shape and role, made on first use. Raises ValueError if the model lacks a layer."""
        shape = replace(shape, target_modules=self._layers(shape.target_modules))
        if (shape, role) not in self._slots:
            self._slots[shape, role] = self._make_slot(shape, f"{role}-{shape.name}")
        return self._slots[shape, role]

    def forget_slots(self) -> None:
        """Keep them: PEFT's modules hold the values."""

    def zero_adapter(self, target_modules: tuple[str, ...]) -> AdapterTensors:
        """Return the base model as an adapter of rank 1: every value zero."""
        return self.slot(LoraShape(1, 1, target_modules)).export()

    def _layers(self, wanted: tuple[str, ...]) -> tuple[str, ...]:
        """Return the names of the model's own layers that the wanted ones are, or are parts of."""
        fused = {part: name for name, parts in FUSED_MODULES.items() for part in parts if name in self._linear}
        found = {module if module in self._linear else fused.get(module, "") for module in wanted}
        if not found <= self._linear:
            missing = ", ".join(m for m in wanted if m not in self._linear and m not in fused)
            raise ValueError(f"the model has no linear layers named {missing}")
        return tuple(sorted(found))

    def _make_slot(self, shape: LoraShape, name: str) -> LoraSlot:
        self._add_to_peft(shape, name)
        marker = f".{name}.weight"
        own = {
            full.replace(marker, ".weight"): parameter
            for full, parameter in self._peft_model.named_parameters()
            if full.endswith(marker)
        }
        slot = LoraSlot(shape, {key: tuple(p.shape) for key, p in own.items()}, self.base_name, self.device)
        for key, parameter in own.items():
            parameter.data = slot.parameters[key]
            parameter.grad = slot.grads[key]
        self._names[id(slot)] = name
        self._active = None  # PEFT has just activated nothing or the new one: set it again before use
        return slot

    def _add_to_peft(self, shape: LoraShape, name: str) -> None:
        config = LoraConfig(
            r=shape.rank, lora_alpha=shape.alpha, target_modules=list(shape.target_modules), task_type="CAUSAL_LM"
        )
        if self._peft is None:
            self._peft = get_peft_model(self.base, config, adapter_name=name, autocast_adapter_dtype=True)
        else:
            self._peft.add_adapter(name, config)
        self._lora_layers = [layer for layer in self._peft.modules() if isinstance(layer, LoraLayer)]
        for layer in self._lora_layers:
            adapted_linear.install(layer)

    @property
    def _peft_model(self) -> Any:
        if self._peft is None:
            raise RuntimeError("no LoRA slot was made yet")
        return self._peft

    def hidden(self, slot: LoraSlot | None, batch: Batch) -> Tensor:
        """Return the last hidden states at the response positions, axes [N, H]; gradients go through these alone."""
        parts = [batch] if self._can_pack(batch) else batch.alone
        with self._using(slot):
            return torch.cat([self._answered(pack(part)) for part in parts])

    def _can_pack(self, batch: Batch) -> bool:
        """Return True if the model takes a mask of our own and no window of its own would cut it."""
        return self._takes_masks and batch.input_ids_BL.shape[1] <= self._window

    def _answered(self, packed: Packed) -> Tensor:
        """Return the states of the asked row behind the prompts, which are read without a gradient, axes [N, H]."""
        with torch.no_grad():
            prompts = self._read(packed.read)
        with self._recomputing.step_of(len(packed.asked.ids_P)):
            return self._states(packed.asked, prompts, None if packed.asked.is_alone else packed.may_see_11NM)

    def _read(self, row: TokenRow) -> Any:
        """Return a row's keys and values in a cache that no layer changes afterwards."""
        prompts = PromptCache(self.base.config)
        if len(row.ids_P):
            packed = {} if row.is_alone else {"unpacked": row.unpacked}
            self._states(row, prompts, None if row.is_alone else row.may_see_11PP, **packed)
        return prompts.fixed()

    def _states(self, row: TokenRow, prompts: Any, mask: Tensor | None, **packed: Any) -> Tensor:
        out = self.base.base_model(
            input_ids=row.ids_P[None],
            position_ids=row.positions_P[None],
            attention_mask=mask,
            past_key_values=prompts,
            use_cache=True,
            **packed,
        )
        states: Tensor = out.last_hidden_state[0]
        return states

    @property
    def num_layers(self) -> int:
        """The number of decoder layers."""
        return int(self.base.config.get_text_config().num_hidden_layers)

    def layer_states(self, input_ids_BL: Tensor, layers: Sequence[int]) -> list[Tensor]:
        """Return the base model's states behind some layers, axes [B, L, H] each; those of the last one are normed."""
        with self._using(None):
            out = self.base.base_model(input_ids=input_ids_BL, use_cache=False, output_hidden_states=True)
        return [out.hidden_states[layer] for layer in layers]

    def logits(self, hidden_NH: Tensor) -> Tensor:
        """Return the next-token logits, float32, axes [N, V]; soft-capped, c tanh(x / c), if the model's are."""
        logits: Tensor = self.base.get_output_embeddings()(hidden_NH)
        if self._softcap:
            logits = torch.tanh(logits / self._softcap) * self._softcap
        return logits.float()

    @contextmanager
    def _using(self, slot: LoraSlot | None) -> Iterator[None]:
        if slot is not None:
            if self._active is not slot:
                self._peft_model.set_adapter(self._names[id(slot)])
                self._active = slot
            yield
        elif self._peft is None:
            yield
        else:
            with self._without_adapters():
                yield

    @contextmanager
    def _without_adapters(self) -> Iterator[None]:
        """Switch the adapters off by their layers' own flags: PEFT walks all modules for it, 57 ms on an 8B model."""
        for layer in self._lora_layers:
            layer._disable_adapters = True
        try:
            yield
        finally:
            for layer in self._lora_layers:
                layer._disable_adapters = False
