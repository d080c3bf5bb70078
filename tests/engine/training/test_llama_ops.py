"""engine.training.llama_ops: hand-written backward passes against autograd's own."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from engine.sample import Sample
from engine.training import row_pieces as row_pieces_module
from engine.training.batching import plan_batches
from engine.training.lean_ops import HeadLayout
from engine.training.llama_ops import (
    AdaptedPart,
    StackedLoRA,
    attention,
    gated,
    packed_rotary,
    queries_and_sides,
    reading_attention,
    refresh,
    stacked_linear,
)
from engine.training.packing import Packed, pack
from engine.training.row_pieces import answer_pieces, row_pieces
from tests.engine.training.test_lean_ops import assert_same, seeded

HEADS = HeadLayout(4, 2, 8)


def test_the_gated_unit_is_silu_times_up() -> None:
    """Values and both gradients."""
    assert_same(gated, lambda gate, up: nn.functional.silu(gate) * up, seeded(5, 8), seeded(5, 8, seed=1))


def test_queries_and_keys_are_rotated_and_values_are_not() -> None:
    """As rotate_half of Hugging Face, head by head."""
    angles = seeded(5, 1, 4, seed=2)

    def reference(qkv: Tensor) -> Tensor:
        by_head = qkv.view(5, 8, 8)
        cos, sin = (torch.cat([table, table], -1) for table in (angles.cos(), angles.sin()))
        first, second = by_head[:, :6].chunk(2, -1)
        turned = by_head[:, :6] * cos + torch.cat([-second, first], -1) * sin
        return torch.cat([turned, by_head[:, 6:]], 1).flatten(1)

    assert_same(lambda x: packed_rotary(x, angles.cos(), angles.sin(), HEADS), reference, seeded(5, 64))


@pytest.mark.parametrize("bias", [None, seeded(7, seed=5)])
def test_an_adapted_layer_is_the_base_and_the_adapters_of_its_parts(bias: Tensor | None) -> None:
    """The second part alone carries one: y, dx, and the gradients that are added to what is there."""
    weight, a, b = seeded(7, 6, seed=1), seeded(2, 6, seed=2), seeded(4, 2, seed=3)
    grads = [torch.ones_like(a), torch.ones_like(b)]
    lora = StackedLoRA(weight, [AdaptedPart(slice(3, 7), slice(0, 2), a, b, *grads)], 0.5)
    refresh([lora])
    leaves = [a.clone().requires_grad_(), b.clone().requires_grad_()]

    def reference(x: Tensor) -> Tensor:
        added = 0.5 * x @ leaves[0].t() @ leaves[1].t()
        return nn.functional.linear(x, weight, bias) + nn.functional.pad(added, (3, 0))

    assert_same(lambda x: stacked_linear(x, x, weight, bias, lora), reference, seeded(5, 6))
    for found, leaf in zip(grads, leaves, strict=True):
        assert leaf.grad is not None
        assert torch.allclose(found, leaf.grad + 1, atol=1e-5)


@pytest.mark.parametrize("shared", [0, 3])
def test_each_sequence_of_a_row_attends_to_itself(shared: int) -> None:
    """As every sequence by itself does, also where what they begin with stands in the row once."""
    row = packed_prompts(shared).read
    assert [family.shared for family in row.families] == [slice(0, shared)]
    pieces = row_pieces(row)
    assert_same(lambda x: attention(x, HEADS, pieces), masked(row.may_see_11PP), seeded(len(row.ids_P), 64))


@pytest.mark.parametrize("shared", [0, 3])
def test_what_is_read_is_seen_alike(shared: int) -> None:
    """Without anything kept for a backward pass; keys and values are the row's own."""
    row = packed_prompts(shared).read
    qkv = seeded(len(row.ids_P), 64)
    seen, sides = reading_attention(qkv, HEADS, row_pieces(row))
    assert torch.allclose(seen, attention(qkv, HEADS, row_pieces(row)), atol=1e-6)
    assert torch.equal(sides, qkv.view(-1, 8, 8)[:, 4:].transpose(0, 1))


@pytest.mark.parametrize("kept", [1 << 22, 0], ids=["kept", "again"])
@pytest.mark.parametrize("shared", [0, 3])
def test_each_answer_attends_to_its_prompt_as_to_a_constant(
    shared: int, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values, and the gradients of what is asked alone, also where the weights are computed again for these."""
    monkeypatch.setattr(row_pieces_module, "_KEPT_WEIGHTS", kept)
    packed = packed_prompts(shared)
    before = seeded(len(packed.read.ids_P), 64, seed=3)
    _, sides = queries_and_sides(before, HEADS)
    reference = masked(packed.may_see_11NM)
    assert_same(
        lambda x: attention(x, HEADS, answer_pieces(packed), sides),
        lambda x: reference(torch.cat([before, x]))[len(before) :],
        seeded(len(packed.asked.ids_P), 64),
    )


def packed_prompts(shared: int) -> Packed:
    """Return three prompts that begin with so many tokens in common, and their answers."""
    prompts = [[1] * shared + [2 + i] * (3 + i) for i in range(3)]
    samples = [Sample("correction", p, p, [9] * (2 + i)) for i, p in enumerate(prompts)]
    (batch,) = plan_batches(samples, range(3), "student", 1000, torch.device("cpu"))
    return pack(batch)


def masked(may_see_11PM: Tensor) -> Callable[[Tensor], Tensor]:
    """Return attention of the last P of M tokens by autograd, with a mask; zero for those before."""

    def attended(qkv: Tensor) -> Tensor:
        may_see = may_see_11PM[0, 0]
        q, k, v = qkv.view(len(qkv), 8, 8).transpose(0, 1).split([4, 2, 2])
        k, v = (side.repeat_interleave(2, 0) for side in (k, v))
        scores = q[:, -len(may_see) :] @ k.transpose(1, 2) / math.sqrt(8)
        out = (scores.masked_fill(~may_see, -math.inf).softmax(-1) @ v).transpose(0, 1).flatten(1)
        return nn.functional.pad(out, (0, 0, len(qkv) - len(out), 0))

    return attended


def test_values_are_taken_in_the_type_of_the_base() -> None:
    """The slot stays in float32, and its values are found in half precision after a refresh."""
    values: dict[str, Any] = {"lora_a": seeded(2, 6), "lora_b": seeded(7, 2)}
    part = AdaptedPart(slice(0, 7), slice(0, 2), **values, grad_a=torch.zeros(2, 6), grad_b=torch.zeros(7, 2))
    lora = StackedLoRA(torch.zeros(7, 6, dtype=torch.bfloat16), [part], 2.0)
    refresh([lora])
    assert torch.equal(lora.a, (2 * part.lora_a).bfloat16())
    lora.add_gradients(torch.ones(2, 6, dtype=torch.bfloat16), torch.ones(7, 2, dtype=torch.bfloat16))
    assert part.grad_a.dtype == torch.float32
    assert torch.equal(part.grad_a, torch.full((2, 6), 2.0))
