"""Attention over short rows by plain matrix products, as a function that Hugging Face's models call.

On a CPU the fused kernel's backward pass takes six times as long as these products where rows have a hundred tokens.
Longer rows go to the fused kernel, which keeps no weights. A packed row of prompts (`engine.training.packing`) is
attended to sequence by sequence: of its weights [P, P] most are masked. Invariant: all give the same numbers to
rounding.
"""

from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from engine.training.packing import Unpacked

NAME = "heed_short_rows"
LONGEST_ROW = 512  # tokens; the weights [B, H, L, L] of longer rows cost more memory than the kernel costs time


@cache
def install() -> str:
    """Make the function known to Hugging Face's models. Return its name."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import sdpa_mask

    AttentionInterface.register(NAME, attention)
    AttentionMaskInterface.register(NAME, sdpa_mask)
    return NAME


def attention(
    module: nn.Module,
    query_BHLD: Tensor,
    key_BKMD: Tensor,
    value_BKMD: Tensor,
    mask: Tensor | None,
    unpacked: Unpacked | None = None,
    **settings: Any,
) -> tuple[Tensor, None]:
    """Return the values that each position attends to, axes [B, L, H, D].

    H query heads share K key heads; M keys, of which the last are the positions' own. `mask` is True where a position
    may look; None means at itself and before. `unpacked`: the sequences of a packed row, which say what the mask says.
    """
    if unpacked is not None and unpacked.rows_BW.shape[1] <= LONGEST_ROW:
        query, key, value = (_unpack(side, unpacked.rows_BW) for side in (query_BHLD, key_BKMD, value_BKMD))
        attended, _ = attention(module, query, key, value, None, **settings)
        return attended.flatten(0, 1).index_select(0, unpacked.places_P)[None], None
    if key_BKMD.shape[2] > LONGEST_ROW:
        from transformers.integrations.sdpa_attention import sdpa_attention_forward

        attended, _ = sdpa_attention_forward(module, query_BHLD, key_BKMD, value_BKMD, mask, **settings)
        return attended, None
    (size, heads, length, width), (key_heads, num_keys) = query_BHLD.shape, key_BKMD.shape[1:3]
    shared = size * key_heads
    query = query_BHLD.reshape(shared, heads // key_heads * length, width)
    keys, values = key_BKMD.reshape(shared, num_keys, width), value_BKMD.reshape(shared, num_keys, width)
    scores = torch.bmm(query * (settings.get("scaling") or width**-0.5), keys.transpose(1, 2))
    weights = (scores.view(size, heads, length, num_keys) + _penalty(mask, scores, length)).float().softmax(-1)
    values_seen = torch.bmm(weights.to(values.dtype).view(shared, -1, num_keys), values)
    return values_seen.view(size, heads, length, width).transpose(1, 2).contiguous(), None


def _unpack(side_1HPD: Tensor, rows_BW: Tensor) -> Tensor:
    """Return the tokens of a packed row as one row per sequence, axes [B, H, W, D]."""
    _, heads, _, width = side_1HPD.shape
    return side_1HPD[0].index_select(1, rows_BW.flatten()).view(heads, *rows_BW.shape, width).transpose(0, 1)


def _penalty(mask: Tensor | None, scores: Tensor, length: int) -> Tensor:
    """Return what is added to the scores: the least number where a position may not look, so that padding is finite."""
    num_keys = scores.shape[-1]
    ones = torch.ones(length, num_keys, dtype=torch.bool, device=scores.device)
    allowed = ones.tril(num_keys - length) if mask is None else mask
    return torch.zeros_like(allowed, dtype=scores.dtype).masked_fill(~allowed, torch.finfo(scores.dtype).min)
