"""A Hugging Face model whose parameters are views of vLLM's: the base model is in GPU memory once.

vLLM keeps query, key and value (and gate and up) as one matrix each, one below the other, so each of them is a row
slice of it. Invariants: nothing is copied except small buffers; the views never require a gradient and must never be
moved, tied or resized. Works for dense, unquantised models; vLLM's CPU build repacks its weights, so there the trainer
loads a copy of its own (`engine.training.model`).
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn


def share_weights(folder: Path, served: nn.Module) -> nn.Module:
    """Build the Hugging Face model of `folder` on vLLM's tensors. Raises ValueError if one is missing."""
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.from_pretrained(folder)
    weights = dict(served.named_parameters())
    device = next(iter(weights.values())).device
    dtype = next(iter(weights.values())).dtype
    with torch.device("meta"):
        model: nn.Module = AutoModelForCausalLM.from_config(config, dtype=dtype, attn_implementation="sdpa")
    for name, view in hugging_face_views(model, weights, served.packed_modules_mapping):
        _set_parameter(model, name, view)
    if config.tie_word_embeddings:
        model.get_output_embeddings().weight = model.get_input_embeddings().weight
    _make_buffers(model, config, device)
    _require_complete(model)
    return model.requires_grad_(requires_grad=False).eval()


def hugging_face_views(
    model: nn.Module, weights: dict[str, Tensor], packed: dict[str, list[str]]
) -> Iterator[tuple[str, Tensor]]:
    """Yield name and view for every parameter of `model`, from vLLM's `weights` and its map of packed layers.

    A LoRA-wrapped layer has its weights under `base_layer`; an embedding may have more rows than the vocabulary.
    """
    shapes = {name: p.shape for name, p in model.named_parameters()}
    for name, shape in shapes.items():
        path, _, kind = name.rpartition(".")
        parent, _, module = path.rpartition(".")
        fused = next((big for big, small in packed.items() if module in small), module)
        before = packed[fused][: packed[fused].index(module)] if fused != module else []
        offset = sum(shapes[f"{parent}.{part}.{kind}"][0] for part in before)
        weight = _find(weights, f"{parent}.{fused}" if parent else fused, kind)
        yield name, weight[offset : offset + shape[0]]


def _find(weights: dict[str, Tensor], path: str, kind: str) -> Tensor:
    for name in (f"{path}.base_layer.{kind}", f"{path}.{kind}"):
        if name in weights:
            return weights[name].detach()
    raise ValueError(f"vLLM's model has no {path}.{kind}: this architecture cannot share its weights")


def _set_parameter(model: nn.Module, name: str, value: Tensor) -> None:
    path, _, kind = name.rpartition(".")
    setattr(model.get_submodule(path), kind, nn.Parameter(value, requires_grad=False))


def _make_buffers(model: nn.Module, config: Any, device: torch.device) -> None:
    """Compute the buffers of rotary embeddings, which a model made without memory lacks. In place."""
    for path, module in list(model.named_modules()):
        if hasattr(module, "inv_freq"):
            parent, _, name = path.rpartition(".")
            setattr(model.get_submodule(parent), name, type(module)(config=config).to(device))


def _require_complete(model: nn.Module) -> None:
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        if tensor.is_meta:
            raise ValueError(f"{name} has no values: this architecture cannot share its weights")
