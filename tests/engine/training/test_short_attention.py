"""engine.training.short_attention: the numbers of the fused kernel, and its gradients."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from engine.training import short_attention
from engine.training.short_attention import LONGEST_ROW, attention

HEADS, KEY_HEADS, WIDTH = 6, 2, 8


def inputs(length: int) -> list[Tensor]:
    """Return query, key and value with gradients, as a model hands them over: heads and positions swapped."""
    torch.manual_seed(0)
    heads = (HEADS, KEY_HEADS, KEY_HEADS)
    return [torch.randn(2, length, count, WIDTH).transpose(1, 2).requires_grad_() for count in heads]


def both(length: int, mask: Tensor | None) -> list[list[Tensor]]:
    """Return output and gradients of heed's attention and of the fused kernel."""
    module: Any = SimpleNamespace(num_key_value_groups=HEADS // KEY_HEADS, is_causal=True)
    found = []
    for function in (attention, sdpa_attention_forward):
        leaves = inputs(length)
        out, _ = function(module, *leaves, mask, scaling=0.3, dropout=0.0)
        weights = torch.arange(out.numel(), dtype=torch.float32).reshape(out.shape).cos()
        found.append([out, *torch.autograd.grad((out * weights).sum(), leaves)])
    return found


def window(length: int) -> Tensor:
    """Return the mask of a sliding window of three positions, axes [1, 1, L, L]."""
    allowed = torch.ones(length, length, dtype=torch.bool).tril()
    return allowed.triu(-2)[None, None]


@pytest.mark.parametrize("length", [1, 2, 37])
@pytest.mark.parametrize("is_masked", [False, True])
def test_it_gives_the_kernels_values_and_gradients(length: int, is_masked: bool) -> None:
    """With and without a sliding window; several query heads share one of the keys'."""
    own, kernels = both(length, window(length) if is_masked else None)
    for mine, theirs in zip(own, kernels, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-5)


def test_a_position_sees_nothing_behind_it() -> None:
    """A changed last token changes the last output only."""
    module: Any = SimpleNamespace(num_key_value_groups=HEADS // KEY_HEADS)
    query, key, value = (leaf.detach() for leaf in inputs(9))
    before, _ = attention(module, query, key, value, None)
    value[:, :, -1] += 1
    after, _ = attention(module, query, key, value, None)
    assert torch.equal(before[:, :-1], after[:, :-1])
    assert not torch.equal(before[:, -1], after[:, -1])


@pytest.mark.parametrize("count", [1, 4])
def test_positions_behind_cached_keys_see_all_of_them(count: int) -> None:
    """A model that writes asks for one token at a time, one that learns for an answer behind its prompt."""
    module: Any = SimpleNamespace(num_key_value_groups=HEADS // KEY_HEADS, is_causal=True)
    query, key, value = (leaf.detach() for leaf in inputs(9))
    whole, _ = attention(module, query, key, value, None, scaling=0.3, dropout=0.0)
    last, _ = attention(module, query[:, :, -count:], key, value, None, scaling=0.3, dropout=0.0)
    torch.testing.assert_close(last, whole[:, -count:], rtol=1e-4, atol=1e-5)


def test_long_rows_go_to_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """No weights [L, L] are made for them."""
    module: Any = SimpleNamespace(num_key_value_groups=HEADS // KEY_HEADS, is_causal=True)
    monkeypatch.setattr(short_attention.torch, "bmm", lambda *_: pytest.fail("weights were made"))
    out, _ = attention(module, *inputs(LONGEST_ROW + 1), None, scaling=0.3, dropout=0.0)
    assert out.shape == (2, LONGEST_ROW + 1, HEADS, WIDTH)
