"""engine.training.gpu_ops: hand-written backward passes against autograd's own."""

import torch
from torch import Tensor, nn

from engine.training.gpu_ops import attention, linear_onto, norm, rotary
from engine.training.llama_ops import AdaptedPart, StackedLoRA, refresh
from tests.engine.training.test_lean_ops import assert_same, seeded


def test_an_adapted_layer_is_added_to_what_was_there() -> None:
    """Values, the gradients of both inputs, and those of A and B, which are added to what is there."""
    weight, a, b = seeded(7, 6, seed=1), seeded(2, 6, seed=2), seeded(7, 2, seed=3)
    grads = [torch.ones_like(a), torch.ones_like(b)]
    lora = StackedLoRA(weight, [AdaptedPart(slice(0, 7), slice(0, 2), a, b, *grads)], 0.5)
    refresh([lora])
    leaves = [a.clone().requires_grad_(), b.clone().requires_grad_()]

    def reference(residual: Tensor, x: Tensor) -> Tensor:
        return residual + x @ weight.t() + 0.5 * x @ leaves[0].t() @ leaves[1].t()

    inputs = seeded(5, 7, seed=4), seeded(5, 6)
    assert_same(lambda residual, x: linear_onto(residual, x, x, weight, lora), reference, *inputs)
    for found, leaf in zip(grads, leaves, strict=True):
        assert leaf.grad is not None
        assert torch.allclose(found, leaf.grad + 1, atol=1e-5)


def test_a_layer_without_an_adapter_is_the_base() -> None:
    """Values and both gradients."""
    weight = seeded(7, 6, seed=1)
    inputs = seeded(5, 7, seed=4), seeded(5, 6)
    assert_same(lambda r, x: linear_onto(r, x, x, weight, None), lambda r, x: r + x @ weight.t(), *inputs)


def test_halves_are_rotated() -> None:
    """As rotate_half of Hugging Face, with a sign in the table in place of one in the halves."""
    angles = seeded(5, 1, 4, seed=2)
    cos, sin = (torch.cat([table, table], -1) for table in (angles.cos(), angles.sin()))
    signed = torch.cat([-angles.sin(), angles.sin()], -1)

    def reference(x: Tensor) -> Tensor:
        first, second = x.chunk(2, -1)
        return x * cos + torch.cat([-second, first], -1) * sin

    assert_same(lambda x: rotary(x, cos, signed), reference, seeded(5, 3, 8))


def test_the_norm_is_the_root_mean_squares() -> None:
    """With a weight, and without one."""
    weight = seeded(8, seed=1)

    def scaled(x: Tensor) -> Tensor:
        return x * (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt()

    assert_same(lambda x: norm(x, weight, 1e-6), lambda x: scaled(x) * weight, seeded(5, 8))
    assert_same(lambda x: norm(x, None, 1e-6), scaled, seeded(5, 3, 8))


def test_queries_look_where_the_mask_is_true() -> None:
    """Heads of queries share those of keys; values and the gradients of all three."""
    mask = torch.tensor([[1, 0, 0, 1], [1, 1, 0, 1], [0, 1, 1, 0]], dtype=torch.bool)

    def reference(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        keys, values = (side.repeat_interleave(2, 1).transpose(0, 1) for side in (k, v))
        scores = (q.transpose(0, 1) @ keys.transpose(1, 2) / 8**0.5).masked_fill(~mask, -torch.inf)
        return nn.functional.softmax(scores, -1).matmul(values).transpose(0, 1).flatten(1)

    inputs = seeded(3, 4, 8), seeded(4, 2, 8, seed=1), seeded(4, 2, 8, seed=2)
    assert_same(lambda q, k, v: attention(q, k, v, mask), reference, *inputs)
