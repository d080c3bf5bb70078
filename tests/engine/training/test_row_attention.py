"""engine.training.row_attention: attention over a packed row against torch's over the sequences by themselves."""

import pytest
import torch
from torch import Tensor, nn

from engine.training.lean_ops import HeadLayout
from engine.training.packing import Family, Packed, TokenRow
from engine.training.row_attention import HeadNorm, RowPlaces, reading_attention, row_attention
from engine.training.row_pieces import RowPiece, answer_pieces, row_pieces
from tests.engine.training.test_lean_ops import assert_same, seeded

SIZE = 8
NO_IDS = torch.empty(0, dtype=torch.long)


def own_spans(num_shared: int, lengths: list[int]) -> list[slice]:
    """Return the places of sequences with so many tokens each behind their common beginning."""
    ends = [num_shared + sum(lengths[: b + 1]) for b in range(len(lengths))]
    return [slice(end - length, end) for end, length in zip(ends, lengths, strict=True)]


def token_row(num_shared: int, own_B: list[slice]) -> TokenRow:
    """Return a row of one family, of whose tokens nothing is asked."""
    return TokenRow(NO_IDS, NO_IDS, [Family(slice(0, num_shared), own_B)])


def by_torch(qkv_LC: Tensor, heads: HeadLayout, norm: HeadNorm) -> Tensor:
    """Return Qwen3's attention over one sequence, axes [L, H D], by torch's operations."""
    length = len(qkv_LC)
    q, k, v = qkv_LC.unflatten(1, (-1, SIZE)).split([heads.num_heads, heads.num_kv, heads.num_kv], dim=1)
    both = torch.cat([q, k], dim=1)
    both = both * torch.rsqrt(both.square().mean(-1, keepdim=True) + norm.eps) * norm.weight
    angles = angles_of(torch.arange(length))[:, None]
    a, b = both.chunk(2, dim=-1)
    both = torch.cat([a * angles.cos() - b * angles.sin(), b * angles.cos() + a * angles.sin()], dim=-1)
    q, k = both.split([heads.num_heads, heads.num_kv], dim=1)
    q, k, v = (side.transpose(0, 1)[None] for side in (q, k, v))
    out = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=heads.repeats > 1)
    return out[0].transpose(0, 1).flatten(1)


def angles_of(positions: Tensor) -> Tensor:
    """Return the angles of the rotary embedding, axes [L, D / 2]."""
    return torch.outer(positions.float(), torch.tensor([1.0, 0.3, 0.1, 0.03]))


def places_of(num_shared: int, lengths: list[int], pieces: list[RowPiece]) -> RowPlaces:
    """Return the positions' tables beside the pieces of a row."""
    positions = torch.cat([torch.arange(num_shared), *(num_shared + torch.arange(n) for n in lengths)])
    return RowPlaces.of(angles_of(positions), pieces)


@pytest.mark.parametrize(("num_heads", "num_kv"), [(4, 4), (4, 2), (6, 1)])
@pytest.mark.parametrize(
    ("num_shared", "lengths"),
    [(5, [3, 7, 1]), (0, [4, 6]), (9, [0]), (0, [11]), (6, [0, 5]), (140, [130, 2, 40, 100]), (0, [300])],
)
def test_values_and_gradients_are_those_of_the_sequences_by_themselves(
    num_heads: int, num_kv: int, num_shared: int, lengths: list[int]
) -> None:
    """A token of the beginning gets the gradients of all sequences; it, and they, have torch's values."""
    heads = HeadLayout(num_heads, num_kv, SIZE)
    norm = HeadNorm(seeded(heads.num_normed, SIZE, seed=1), 1e-6)
    own = own_spans(num_shared, lengths)
    places = places_of(num_shared, lengths, row_pieces(token_row(num_shared, own)))

    def reference(qkv: Tensor) -> Tensor:
        shared = qkv[:num_shared]
        each = [by_torch(torch.cat([shared, qkv[span]]), heads, norm)[num_shared:] for span in own]
        return torch.cat([by_torch(shared, heads, norm), *each])

    qkv = seeded(num_shared + sum(lengths), (num_heads + 2 * num_kv) * SIZE)
    assert_same(lambda x: row_attention(x, heads, norm, places), reference, qkv)


@pytest.mark.parametrize(
    ("num_shared", "prompts", "answers"),
    [
        (5, [3, 7, 1], [2, 4, 1]),
        (0, [4, 6], [3, 3]),
        (9, [0, 2], [5, 1]),
        (1, [0, 0], [2, 3]),
        (0, [11], [200]),
        (140, [130, 2, 40], [150, 9, 3]),
    ],
)
def test_an_answer_sees_its_prompt_which_gets_no_gradient(
    num_shared: int, prompts: list[int], answers: list[int]
) -> None:
    """Values are torch's over prompt and answer; the gradients are those with the prompt as a constant."""
    heads = HeadLayout(4, 2, SIZE)
    norm = HeadNorm(seeded(heads.num_normed, SIZE, seed=1), 1e-6)
    read, asked = own_spans(num_shared, prompts), own_spans(0, answers)
    firsts = [num_shared + length for length in prompts]
    positions = torch.cat([first + torch.arange(n) for first, n in zip(firsts, answers, strict=True)])
    packed = Packed(token_row(num_shared, read), token_row(0, asked))
    prompt_qkv = seeded(num_shared + sum(prompts), 8 * SIZE, seed=2)
    _, sides = reading_attention(prompt_qkv, heads, norm, places_of(num_shared, prompts, []))
    places = RowPlaces.of(angles_of(positions), answer_pieces(packed))

    def reference(qkv: Tensor) -> Tensor:
        shared = prompt_qkv[:num_shared]
        pairs = zip(read, asked, strict=True)
        whole = [torch.cat([shared, prompt_qkv[prompt], qkv[answer]]) for prompt, answer in pairs]
        seen = [by_torch(row, heads, norm)[first:] for row, first in zip(whole, firsts, strict=True)]
        return torch.cat(seen)

    qkv = seeded(sum(answers), 8 * SIZE)
    assert_same(lambda x: row_attention(x, heads, norm, places, sides), reference, qkv)
