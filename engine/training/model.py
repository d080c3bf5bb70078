"""The trainer's models: forward passes of the frozen base model, with or without a LoRA slot.

Four implementations: `engine.training.lean_model` for small Qwen3 models on a CPU, `engine.training.llama_model` for
larger ones of Llama's family there, `engine.training.gpu_model` for that family on a GPU, `engine.training.peft_model`
(Hugging Face and PEFT) for every other model. Invariant: all give the same numbers to rounding.
"""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

import torch
from torch import Tensor, nn

from engine.config import LearnConfig
from engine.training import short_attention
from engine.training.adapter_tensors import AdapterTensors
from engine.training.batching import Batch
from engine.training.lora_slot import LoraShape, LoraSlot

_ANY_LENGTH = 10**30  # heed measures prompts itself; a tokenizer with a length of its own writes warnings
LEAN_PARAMETERS = 50_000_000  # above it the copies for merged weights cost more than they save

Role = Literal["train", "score"]
logger = logging.getLogger(__name__)


class TrainingModel(Protocol):
    """Forward passes with or without a LoRA slot."""

    @property
    def device(self) -> torch.device:
        """The device of the model."""

    @property
    def vocab_size(self) -> int:
        """Rows of the output matrix."""

    def slot(self, shape: LoraShape, role: Role = "train") -> LoraSlot:
        """Return the slot of this shape and role, made on first use. Scoring never touches the values being trained."""

    def forget_slots(self) -> None:
        """Free the memory of the slots, which no one holds any more. In place."""

    def zero_adapter(self, target_modules: tuple[str, ...]) -> AdapterTensors:
        """Return the base model as an adapter of rank 1: every value zero."""

    def hidden(self, slot: LoraSlot | None, batch: Batch) -> Tensor:
        """Return the last hidden states at the response positions, axes [N, H]; gradients go through these alone."""

    def logits(self, hidden_NH: Tensor) -> Tensor:
        """Return the next-token logits, float32, axes [N, V]."""

    @property
    def num_layers(self) -> int:
        """The number of decoder layers."""

    def layer_states(self, input_ids_BL: Tensor, layers: Sequence[int]) -> list[Tensor]:
        """Return the base model's states behind some of its layers (1 to `num_layers`), axes [B, L, H] each."""


def is_lean(config: Any, dtype: torch.dtype, num_weights: int) -> bool:
    """Return True for a model of some million weights, trained by `engine.training.lean_model` between decode steps."""
    from engine.training import lean_model

    return dtype == torch.float32 and lean_model.can_compute(config) and num_weights <= LEAN_PARAMETERS


def load_training_model(
    folder: Path, base_name: str, dtype: torch.dtype = torch.float32, embedding: Tensor | None = None
) -> TrainingModel:
    """Load the trainer's own copy of the model on a CPU, in the implementation that suits it. Blocking.

    `embedding`: a matrix in memory that is read in place of the copy's if their rows are the same.
    """
    from engine.training import lean_model, llama_model, stacked_model

    base = load_base(folder, dtype)
    if is_lean(base.config, dtype, sum(p.numel() for p in base.parameters())):
        return lean_model.LeanModel(base, base_name)
    is_stacked = stacked_model.can_compute(base.config)
    if is_stacked:
        _take_off_file(base)
    if embedding is not None:
        _share_embedding(base, embedding)
    return llama_model.LlamaModel(base, base_name) if is_stacked else _general_model(base, base_name)


def _take_off_file(base: nn.Module) -> None:
    """Copy the weights, which may be a file's own pages: all of it would stay in memory for the few that are kept."""
    for parameter in base.parameters():
        parameter.data = parameter.data.clone()


def _share_embedding(base: Any, embedding: Tensor) -> None:
    own = base.get_input_embeddings().weight
    rows = embedding[: len(own)]
    if rows.dtype == own.dtype and torch.equal(rows, own):
        own.data = rows  # that of the outputs, too, if the model has one matrix for both


def gpu_training_model(base: Any, base_name: str) -> TrainingModel:
    """Return the implementation that suits a frozen Hugging Face model on a GPU, on the very weights it has."""
    from engine.training import gpu_model, graphs, stacked_model

    if stacked_model.can_compute(base.config):
        is_gpu = next(base.parameters()).is_cuda
        return gpu_model.GpuModel(base, base_name, graphs.Graphs.of_gpu() if is_gpu else None)
    return _general_model(base, base_name)


def _general_model(base: nn.Module, base_name: str) -> TrainingModel:
    from engine.training.peft_model import PeftTrainingModel

    return PeftTrainingModel(base, base_name)


def load_base(folder: Path, dtype: torch.dtype = torch.float32) -> Any:
    """Load the Hugging Face model of a folder, frozen. Blocking."""
    from transformers import AutoConfig, AutoModelForCausalLM
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()
    config = AutoConfig.from_pretrained(folder)
    base: nn.Module = AutoModelForCausalLM.from_pretrained(
        folder, config=config, dtype=dtype, attn_implementation=attention_of(config, short_attention.install())
    )
    return base.requires_grad_(requires_grad=False).eval()


def attention_of(config: Any, preferred: str = "sdpa") -> str:
    """Return the attention implementation of Hugging Face that computes a model: others would skip its soft-capping."""
    return "eager" if getattr(config, "attn_logit_softcapping", None) else preferred


def load_tokenizer(folder: Path) -> Any:
    """Load the tokenizer of a folder, which reads texts of any length without a warning. Blocking."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(folder, model_max_length=_ANY_LENGTH)


def open_slot(
    model: TrainingModel, learn: LearnConfig, parent: AdapterTensors | None, role: Role = "train"
) -> LoraSlot:
    """Return a slot with the parent's values, or a fresh adapter. Raises ValueError if they do not fit."""
    if parent is None:
        slot = model.slot(LoraShape(learn.lora_rank, learn.lora_alpha, tuple(sorted(learn.target_modules))), role)
        slot.load_fresh(learn.seed)
        return slot
    slot = model.slot(LoraShape.of(parent.config), role)
    slot.load(parent)
    return slot
