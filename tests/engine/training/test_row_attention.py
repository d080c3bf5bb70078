"""engine.training.row_attention: attention over a packed row against torch's over the sequences by themselves."""

import pytest
import torch
from torch import Tensor, nn

from engine.training.lean_ops import HeadLayout
from engine.training.row_attention import HeadNorm, RowPiece, RowPlaces, asked_pieces, row_attention, row_pieces
from tests.engine.training.test_lean_ops import assert_same, seeded

SIZE = 8


def own_spans(num_shared: int, lengths: list[int]) -> list[slice]:
    """Return the places of sequences with so many tokens each behind their common beginning."""
    ends = [num_shared + sum(lengths[: b + 1]) for b in range(len(lengths))]
    return [slice(end - length, end) for end, length in zip(ends, lengths, strict=True)]


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
    places = places_of(num_shared, lengths, row_pieces(num_shared, own))

    def reference(qkv: Tensor) -> Tensor:
        shared = qkv[:num_shared]
        each = [by_torch(torch.cat([shared, qkv[span]]), heads, norm)[num_shared:] for span in own]
        return torch.cat([by_torch(shared, heads, norm), *each])

    qkv = seeded(num_shared + sum(lengths), (num_heads + 2 * num_kv) * SIZE)
    assert_same(lambda x: row_attention(x, heads, norm, places), reference, qkv)


def test_a_layer_may_compute_the_asked_positions_alone() -> None:
    """From the first asked position of a piece on, values are the same; before it nothing is attended to."""
    heads = HeadLayout(2, 2, SIZE)
    norm = HeadNorm(seeded(heads.num_normed, SIZE, seed=1), 1e-6)
    pieces = row_pieces(5, own_spans(5, [4, 3]))
    asked = asked_pieces(pieces, [7, 8, 11])
    assert [piece.queries for piece in asked] == [slice(7, 12)]
    qkv = seeded(12, 6 * SIZE)
    whole, part = (row_attention(qkv, heads, norm, places_of(5, [4, 3], cut)) for cut in (pieces, asked))
    assert torch.allclose(part[[7, 8, 11]], whole[[7, 8, 11]], atol=1e-6)
    assert not part[:7].any()


def test_a_row_is_cut_into_pieces_of_like_length() -> None:
    """Every token is in one piece; a piece sees the beginning, and its own sequence up to its last token."""
    pieces = row_pieces(100, own_spans(100, [300, 90]))
    assert [piece.queries for piece in pieces] == [
        slice(0, 100),
        slice(100, 200),
        slice(200, 300),
        slice(300, 400),
        slice(400, 490),
    ]
    assert pieces[2].keys == (slice(0, 100), slice(100, 300))
    assert pieces[4].keys == (slice(0, 100), slice(400, 490))


def test_short_sequences_share_a_piece_and_see_nothing_of_one_another() -> None:
    """Tokens of one piece look at their own sequence alone; a sequence without own tokens is in no piece."""
    (piece,) = row_pieces(0, own_spans(0, [2, 0, 1]))
    assert piece.queries == slice(0, 3)
    assert (piece.bias_NN == 0).int().tolist() == [[1, 0, 0], [1, 1, 0], [0, 0, 1]]
