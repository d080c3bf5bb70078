"""Linear layers of Llama's family as one product each, and which of their parts carry an adapter.

Invariant: an adapter's tensors have PEFT's names, so that a slot of such a forward is the file that PEFT and vLLM read.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from engine.training.lean_ops import HeadLayout
from engine.training.lora_slot import LoraShape, LoraSlot

ATTENTION = {"qkv": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"), "out": ("self_attn.o_proj",)}
PEFT_PREFIX = "base_model.model.model."

Fusion = dict[str, tuple[str, ...]]  # names of the modules that are one product, by the name of that


@dataclass(frozen=True)
class FusedLayer:
    """One fused linear layer of the base model."""

    weight: Tensor  # [N, K], frozen
    parts: list[tuple[str, int]]  # PEFT module name and outputs of each part, from the first row on
    bias: Tensor | None = None  # [N]

    def adapted(self, shape: LoraShape) -> Iterator[tuple[str, slice, slice]]:
        """Yield module name, rows, and rows among the stacked A of each part that a shape adapts."""
        first, count = 0, 0
        for path, outputs in self.parts:
            if path.rpartition(".")[2] in shape.target_modules:
                yield path, slice(first, first + outputs), slice(count * shape.rank, (count + 1) * shape.rank)
                count += 1
            first += outputs


@dataclass(frozen=True)
class DecoderLayer:
    """The frozen weights of one decoder layer."""

    fused: dict[str, FusedLayer]  # by the names of the fusion
    input_norm: Tensor
    post_norm: Tensor
    qk_norm: Tensor | None  # of query and key heads, axes [H + K, D], if the model has one


def decoder_layer(state: dict[str, Tensor], index: int, fusion: Fusion, heads: HeadLayout) -> DecoderLayer:
    """Return one decoder layer from its weights by Hugging Face's names."""
    norms = [(state.get(f"self_attn.{side}_norm.weight"), n) for side, n in zip("qk", heads.counts, strict=True)]
    by_head = [norm.expand(count, -1) for norm, count in norms if norm is not None]
    return DecoderLayer(
        fuse(state, index, fusion),
        state["input_layernorm.weight"],
        state["post_attention_layernorm.weight"],
        torch.cat(by_head) if by_head else None,
    )


def fuse(state: dict[str, Tensor], index: int, fusion: Fusion) -> dict[str, FusedLayer]:
    """Return the linear layers of one decoder layer by the names of `fusion`."""
    found: dict[str, FusedLayer] = {}
    for name, modules in fusion.items():
        weights = [state[f"{module}.weight"] for module in modules]
        biases = [state[f"{module}.bias"] for module in modules if f"{module}.bias" in state]
        parts = [(f"layers.{index}.{m}", len(weight)) for m, weight in zip(modules, weights, strict=True)]
        found[name] = FusedLayer(joined(weights), parts, joined(biases) if biases else None)
    return found


def joined(parts: Sequence[Tensor]) -> Tensor:
    """Return tensors one below the other: the one that they are views of, as vLLM keeps them, or else a copy."""
    first = parts[0]
    if not all(_follows(after, before) for before, after in pairwise(parts)):
        return torch.cat([*parts])
    return first.as_strided((sum(map(len, parts)), *first.shape[1:]), first.stride())


def _follows(after: Tensor, before: Tensor) -> bool:
    """Return True if a tensor's memory begins where another's of the same storage ends."""
    is_one = after.untyped_storage().data_ptr() == before.untyped_storage().data_ptr()
    is_whole = after.is_contiguous() and before.is_contiguous()
    return bool(is_one and is_whole and after.data_ptr() == before.data_ptr() + before.nbytes)


def new_slot(layers: Sequence[dict[str, FusedLayer]], shape: LoraShape, base_name: str) -> LoraSlot:
    """Return a slot of zeros. In it the A of all parts of a fused layer lie together, as one matrix."""
    sizes: dict[str, tuple[int, int]] = {}
    for fused in (fused for layer in layers for fused in layer.values()):
        adapted = list(fused.adapted(shape))
        sizes |= {tensor_name(path, "A"): (shape.rank, fused.weight.shape[1]) for path, _, _ in adapted}
        sizes |= {tensor_name(path, "B"): (rows.stop - rows.start, shape.rank) for path, rows, _ in adapted}
    return LoraSlot(shape, sizes, base_name, layers[0]["qkv"].weight.device)


def tensor_name(path: str, letter: str) -> str:
    """Return PEFT's name of a module's A or B."""
    return f"{PEFT_PREFIX}{path}.lora_{letter}.weight"
