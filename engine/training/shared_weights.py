"""A Hugging Face model whose parameters are views of vLLM's: the base model is in GPU memory once.

vLLM keeps query, key and value (and gate and up) as one matrix each, one below the other, so each of them is a row
slice of it. Invariants: nothing is copied except small buffers; the views never require a gradient and must never be
moved, tied or resized; a tensor of another shape or of a quantised type is refused. vLLM's CPU build repacks its
weights but for the embedding, so there the trainer loads a copy of its own (`engine.training.model`).
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from engine.training.model import attention_of

TYPES = (torch.float32, torch.bfloat16, torch.float16)  # of weights that the trainer can differentiate through


def share_weights(folder: Path, served: nn.Module) -> nn.Module:
    """Build the Hugging Face model of `folder` on vLLM's tensors. Raises ValueError if one is missing or unfit."""
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.from_pretrained(folder)
    weights = dict(served.named_parameters())
    device = next(iter(weights.values())).device
    dtype = next((weight.dtype for weight in weights.values() if weight.dtype in TYPES), torch.float32)
    with torch.device("meta"):
        model: Any = AutoModelForCausalLM.from_config(config, dtype=dtype, attn_implementation=attention_of(config))
    _make_buffers(model, device)
    for name, view in hugging_face_views(model, weights, served.packed_modules_mapping):
        _set_parameter(model, name, view)
    if config.tie_word_embeddings:
        model.get_output_embeddings().weight = model.get_input_embeddings().weight
    _require_complete(model)
    frozen: nn.Module = model.requires_grad_(requires_grad=False).eval()
    return frozen


def served_embedding(served: nn.Module) -> Tensor | None:
    """Return vLLM's embedding, which may have rows behind those of the vocabulary; None if it has none by that name."""
    named = served.named_parameters()
    return next((weight.detach() for name, weight in named if name.endswith("embed_tokens.weight")), None)


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
        yield name, _fitting(name, weight[offset : offset + shape[0]], shape)


def _find(weights: dict[str, Tensor], path: str, kind: str) -> Tensor:
    for name in (f"{path}.base_layer.{kind}", f"{path}.{kind}"):
        if name in weights:
            return weights[name].detach()
    raise ValueError(f"vLLM's model has no {path}.{kind}: this architecture cannot share its weights")


def _fitting(name: str, view: Tensor, shape: torch.Size) -> Tensor:
    if view.dtype not in TYPES or view.shape != shape:
        found = f"{view.dtype} of shape {tuple(view.shape)}"
        raise ValueError(f"vLLM's {name} is {found}, not {tuple(shape)}: it is quantised or packed in another way")
    return view


def _set_parameter(model: nn.Module, name: str, value: Tensor) -> None:
    path, _, kind = name.rpartition(".")
    setattr(model.get_submodule(path), kind, nn.Parameter(value, requires_grad=False))


def _make_buffers(model: Any, device: torch.device) -> None:
    """Compute the buffers (rotary frequencies, Gemma's embedding scale), which a model made without memory lacks.

    In place. The parameters have no memory yet, so that Hugging Face's initialisation leaves them as they are.
    """
    for module in list(model.modules()):
        own = {name: buffer for name, buffer in module.named_buffers(recurse=False) if buffer.is_meta}
        for name, buffer in own.items():
            setattr(module, name, torch.empty_like(buffer, device=device))
        if own:
            model._init_weights(module)


def _require_complete(model: nn.Module) -> None:
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        if tensor.is_meta:
            raise ValueError(f"{name} has no values: this architecture cannot share its weights")
