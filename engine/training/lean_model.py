"""The training forward for small Qwen3 models on a CPU, at less than half the cost of Hugging Face and PEFT.

On a model of one or two million parameters a module tree spends as long between the matrix products as in them, and
a correction is learned while a person waits. So base weight and LoRA product are added up once per step, and every
linear layer is then one product; query, key and value are one, gate and up are one. In a step prompts are read
without a gradient, in a row of their own; where nothing is learned there is one row (`engine.training.packing`).
Invariants: float32 throughout; base weights are never changed; equal to Hugging Face with PEFT to rounding (a test
compares values and gradients).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from engine.training.batching import Batch
from engine.training.fused_layers import ATTENTION, FusedLayer, tensor_name
from engine.training.fused_model import FusedModel
from engine.training.lean_ops import FusedLoRA, LoRAPart, lora_linear, rms_norm, swiglu
from engine.training.lora_slot import LoraSlot
from engine.training.packing import TokenRow, pack, unpadded, whole
from engine.training.row_attention import HeadNorm, RowPlaces, reading_attention, row_attention
from engine.training.row_pieces import RowPiece, answer_pieces, row_pieces

FUSED = ATTENTION | {"gate_up": ("mlp.gate_proj", "mlp.up_proj"), "down": ("mlp.down_proj",)}
ROW_MULTIPLE = 32  # oneDNN makes a kernel per shape, which takes as long as the product: keep shapes few


def can_compute(config: Any) -> bool:
    """Return True if this forward computes the model of a Hugging Face configuration."""
    return bool(
        config.model_type == "qwen3"
        and not config.attention_bias
        and not config.use_sliding_window
        and config.hidden_act == "silu"
        and config.rope_parameters.get("rope_type", "default") == "default"
    )


@dataclass
class Adapted:
    """A slot made ready for the forward pass: fused views of its values, merged weights of one revision."""

    slot: LoraSlot
    loras: list[dict[str, FusedLoRA | None]]
    revision: int = -1
    weights: list[dict[str, Tensor]] = field(default_factory=list)


@dataclass(frozen=True)
class LayerProducts:
    """The linear products of one layer, with a slot's LoRA or without."""

    weights: dict[str, Tensor]  # by the names of FUSED, the LoRA product merged in
    loras: dict[str, FusedLoRA | None]
    anchor: Tensor

    def linear(self, name: str, x: Tensor) -> Tensor:
        """Return the product of a fused layer, axes [M, N]."""
        return lora_linear(x, self.anchor, self.weights[name], self.loras[name])


class LeanModel(FusedModel[Adapted]):
    """Forward passes with or without a LoRA slot; the counterpart of `engine.training.peft_model.PeftTrainingModel`."""

    def __init__(self, base: Any, base_name: str) -> None:
        """Take the weights out of a Hugging Face Qwen3 model in float32, which computes nothing afterwards."""
        super().__init__(base, base_name, FUSED)
        self._frequencies = _inverse_frequencies(base.config)
        self._head_norms = [HeadNorm(_required(layer.qk_norm), self._eps) for layer in self._layers]

    def _adapted(self, slot: LoraSlot) -> Adapted:
        return Adapted(
            slot, [{name: _fused(slot, fused) for name, fused in layer.fused.items()} for layer in self._layers]
        )

    # -- forward -----------------------------------------------------------------------------------------------------

    def hidden(self, slot: LoraSlot | None, batch: Batch) -> Tensor:
        """Return the last hidden states at the response positions, axes [N, H]; gradients go through these alone."""
        products = self._products(slot)
        x = self._taught(batch, products) if torch.is_grad_enabled() else self._measured(batch, products)
        return rms_norm(x[: len(batch.rows_N)], self._final_norm, self._eps)

    def _taught(self, batch: Batch, products: list[LayerProducts]) -> Tensor:
        """Return the states behind the last layer, axes [P, H], the N asked for first. Prompts are only read."""
        packed = pack(batch)
        with torch.no_grad():
            read = self._read(packed.read, products)
        places = self._places(_filled(packed.asked.positions_P), answer_pieces(packed))
        x = self._embedding[_filled(packed.asked.ids_P)]
        for i in range(self.num_layers):
            qkv = self._asked(i, x, products[i])
            x = self._behind(i, x, row_attention(qkv, self._heads, self._head_norms[i], places, read[i]), products[i])
        return x

    def _measured(self, batch: Batch, products: list[LayerProducts]) -> Tensor:
        """Return the same without a gradient: one row, for in so small a model two of them take longer."""
        row, places_N = whole(batch)
        places, asked_N = self._places(_filled(row.positions_P), row_pieces(row)), _filled(places_N)
        x = self._embedding[_filled(row.ids_P)]
        for i in range(self.num_layers):
            seen, _ = self._attended(i, x, products[i], places)
            if i == self.num_layers - 1:
                x, seen = x[asked_N], seen[asked_N]
            x = self._behind(i, x, seen, products[i])
        return x

    def _read(self, row: TokenRow, products: list[LayerProducts]) -> list[Tensor | None]:
        """Return the keys and values of the prompts in each layer, axes [2 K, P, D]."""
        if not len(row.ids_P):
            return [None] * self.num_layers
        places = self._places(_filled(row.positions_P), row_pieces(row))
        unread = replace(places, pieces=[])
        x, found = self._embedding[_filled(row.ids_P)], []
        for i in range(self.num_layers):
            is_last = i == self.num_layers - 1  # of which nothing is looked at but keys and values
            attended, sides = self._attended(i, x, products[i], unread if is_last else places)
            found.append(sides)
            if not is_last:
                x = self._behind(i, x, attended, products[i])
        return found

    def layer_states(self, input_ids_BL: Tensor, layers: Sequence[int]) -> list[Tensor]:
        """Return the base model's states behind some layers, axes [B, L, H] each; those of the last one are normed."""
        products, row = self._products(None), unpadded(input_ids_BL)
        places = self._places(row.positions_P, row_pieces(row))

        def behind(i: int, x: Tensor) -> Tensor:
            seen, _ = self._attended(i, x, products[i], places)
            return self._behind(i, x, seen, products[i])

        return self._states_behind(input_ids_BL, layers, behind)

    def logits(self, hidden_NH: Tensor) -> Tensor:
        """Return the next-token logits, axes [N, V]."""
        padding = -len(hidden_NH) % ROW_MULTIPLE
        padded = nn.functional.pad(hidden_NH, (0, 0, 0, padding))
        return lora_linear(padded, padded, self._head, None)[: len(hidden_NH)]

    def _products(self, slot: LoraSlot | None) -> list[LayerProducts]:
        if slot is None:
            plain = [{name: fused.weight for name, fused in layer.fused.items()} for layer in self._layers]
            return [LayerProducts(weights, dict.fromkeys(FUSED), self._embedding) for weights in plain]
        adapted = self._known(slot)
        if adapted.revision != slot.revision:
            with torch.no_grad():
                adapted.weights = [
                    {name: _with(lora[name], fused.weight) for name, fused in layer.fused.items()}
                    for layer, lora in zip(self._layers, adapted.loras, strict=True)
                ]
            adapted.revision = slot.revision
        return [
            LayerProducts(weights, loras, slot.flat)
            for weights, loras in zip(adapted.weights, adapted.loras, strict=True)
        ]

    def _asked(self, index: int, x: Tensor, products: LayerProducts) -> Tensor:
        """Return the fused queries, keys and values of a layer, axes [P, (H + 2 K) D]."""
        return products.linear("qkv", rms_norm(x, self._layers[index].input_norm, self._eps))

    def _attended(self, index: int, x: Tensor, products: LayerProducts, places: RowPlaces) -> tuple[Tensor, Tensor]:
        """Return what a layer attends to where nothing is learned, and its keys and values, axes [2 K, P, D]."""
        return reading_attention(self._asked(index, x, products), self._heads, self._head_norms[index], places)

    def _behind(self, index: int, x: Tensor, attended: Tensor, products: LayerProducts) -> Tensor:
        """Return the states behind a layer, axes [P, H], of those before it and what they attended to."""
        x = x + products.linear("out", attended)
        normed = rms_norm(x, self._layers[index].post_norm, self._eps)
        return x + products.linear("down", swiglu(products.linear("gate_up", normed)))

    def _places(self, positions_P: Tensor, pieces: list[RowPiece]) -> RowPlaces:
        return RowPlaces.of(torch.outer(positions_P.float(), self._frequencies), pieces)


def _filled(rows_N: Tensor) -> Tensor:
    """Repeat the first row until the number of rows is a multiple of ROW_MULTIPLE."""
    return torch.cat([rows_N, rows_N[:1].expand(-len(rows_N) % ROW_MULTIPLE)])


def _required(norm: Tensor | None) -> Tensor:
    assert norm is not None  # every Qwen3 model has one (`can_compute`)
    return norm


def _inverse_frequencies(config: Any) -> Tensor:
    exponents = torch.arange(0, config.head_dim, 2).float() / config.head_dim
    return 1.0 / (float(config.rope_parameters["rope_theta"]) ** exponents)


def _with(lora: FusedLoRA | None, weight: Tensor) -> Tensor:
    return weight if lora is None else lora.merged(weight)


def _fused(slot: LoraSlot, fused: FusedLayer) -> FusedLoRA | None:
    """Return views of the slot's values for one fused layer, or None if no part of it has LoRA."""
    found: list[LoRAPart] = []
    names: list[str] = []
    for path, outputs, ranks in fused.adapted(slot.shape):
        name = tensor_name(path, "B")
        found.append(LoRAPart(outputs, ranks, slot.parameters[name], slot.grads[name]))
        names.append(tensor_name(path, "A"))
    if not found:
        return None
    return FusedLoRA(_stacked(slot.parameters, names), _stacked(slot.grads, names), found, slot.shape.scaling)


def _stacked(tensors: dict[str, Tensor], names: list[str]) -> Tensor:
    """Return tensors that lie one behind the other in memory as one matrix."""
    first = tensors[names[0]]
    rows, columns = first.shape
    return first.as_strided((rows * len(names), columns), (columns, 1))
