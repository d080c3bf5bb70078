"""engine.training.lean_ops: hand-written backward passes against autograd's own."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from engine.training.lean_ops import FusedLoRA, LoRAPart, linear, lora_linear, rms_norm, swiglu


def seeded(*shape: int, seed: int = 0) -> Any:
    """Return a random tensor."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def assert_same(ours: Callable[..., Tensor], reference: Callable[..., Tensor], *inputs: Tensor) -> None:
    """Assert that the values and the gradients of all inputs agree."""
    results = []
    for function in (ours, reference):
        leaves = [x.clone().requires_grad_() for x in inputs]
        out = function(*leaves)
        out.backward(seeded(*out.shape, seed=99))
        results.append([out, *(leaf.grad for leaf in leaves)])
    for mine, theirs in zip(*results, strict=True):
        assert torch.allclose(mine, theirs, atol=1e-5, rtol=1e-4)


def test_linear_is_torchs_linear() -> None:
    """The product agrees with torch's to float32 rounding."""
    x, weight = seeded(33, 48), seeded(20, 48, seed=1)
    assert torch.allclose(linear(x, weight), nn.functional.linear(x, weight), atol=1e-4)


def test_rms_norm_is_qwens() -> None:
    """The norm and its gradient agree with the formula and autograd."""
    weight = seeded(16, seed=1)

    def reference(x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * weight

    assert_same(lambda x: rms_norm(x, weight, 1e-6), reference, seeded(2, 7, 16))


def test_swiglu_is_silu_times_up() -> None:
    """The activation and its gradient agree with torch's on the two halves of the last axis."""
    assert_same(lambda x: swiglu(x), lambda x: nn.functional.silu(x.chunk(2, -1)[0]) * x.chunk(2, -1)[1], seeded(5, 24))


def fused_lora(rank: int = 3) -> tuple[FusedLoRA, list[Tensor]]:
    """Return LoRA on the first and last third of a fused layer with 12 inputs and 3 x 5 outputs, and [A, B0, B2]."""
    a, b0, b2 = seeded(2 * rank, 12, seed=1), seeded(5, rank, seed=2), seeded(5, rank, seed=3)
    parts = [
        LoRAPart(slice(0, 5), slice(0, rank), b0, torch.zeros_like(b0)),
        LoRAPart(slice(10, 15), slice(rank, 2 * rank), b2, torch.zeros_like(b2)),
    ]
    return FusedLoRA(a, torch.zeros_like(a), parts, scaling=2.0), [a, b0, b2]


def test_merged_lora_linear_gives_the_gradients_of_the_unmerged_one() -> None:
    """The output, the input's gradient and the slot's gradients of A and B agree."""
    lora, values = fused_lora()
    weight, x = seeded(15, 12, seed=4), seeded(9, 12, seed=5)
    anchor = torch.zeros(1, requires_grad=True)
    mine = x.clone().requires_grad_()
    out = lora_linear(mine, anchor, lora.merged(weight), lora)
    out.backward(seeded(9, 15, seed=6))

    a, b0, b2 = (value.clone().requires_grad_() for value in values)
    theirs = x.clone().requires_grad_()
    delta = torch.cat([theirs @ a[:3].t() @ b0.t(), torch.zeros(9, 5), theirs @ a[3:].t() @ b2.t()], dim=1)
    reference = theirs @ weight.t() + 2.0 * delta
    reference.backward(seeded(9, 15, seed=6))

    assert torch.allclose(out, reference, atol=1e-4)
    pairs = [(mine.grad, theirs.grad), (lora.grad_a, a.grad)]
    pairs += [(lora.parts[0].grad_b, b0.grad), (lora.parts[1].grad_b, b2.grad)]
    for ours, expected in pairs:
        assert torch.allclose(ours, expected, atol=1e-4)


def test_gradients_are_added_up_over_micro_batches() -> None:
    """Gradients of two passes add up to twice the gradient of one."""
    lora, _ = fused_lora()
    x, grad = seeded(9, 12), seeded(9, 15, seed=1)
    lora.add_gradients(x, grad)
    once = lora.grad_a.clone()
    lora.add_gradients(x, grad)
    assert torch.allclose(lora.grad_a, 2 * once, atol=1e-4)


def test_the_slot_gets_its_gradient_also_where_the_input_needs_none() -> None:
    """LoRA gets its gradient even if the input (the frozen embedding) needs none."""
    lora, _ = fused_lora()
    out = lora_linear(seeded(9, 12), torch.zeros(1, requires_grad=True), seeded(15, 12), lora)
    out.sum().backward()
    assert lora.grad_a.abs().sum() > 0


def test_merging_leaves_the_base_weight_alone() -> None:
    """Merging makes a new tensor and leaves the base weights as they are."""
    lora, _ = fused_lora()
    weight = seeded(15, 12)
    kept = weight.clone()
    lora.merged(weight)
    assert torch.equal(weight, kept)
