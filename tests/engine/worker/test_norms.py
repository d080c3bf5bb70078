"""engine.worker.norms: vLLM's norms on a CPU by its compiled kernels."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from engine.worker import norms

EPSILON = 1e-5


@pytest.fixture
def ops() -> Any:
    """Return vLLM's operations with heed's implementation put in place."""
    from vllm import ir

    priority = SimpleNamespace(rms_norm=["native"], fused_add_rms_norm=["native"])
    for _ in range(2):  # a process may build a worker twice
        norms.install(SimpleNamespace(kernel_config=SimpleNamespace(ir_op_priority=priority)))
    with (
        ir.ops.rms_norm.set_priority(priority.rms_norm),
        ir.ops.fused_add_rms_norm.set_priority(priority.fused_add_rms_norm),
    ):
        yield ir.ops


def native(op: Any, *arguments: Any) -> Any:
    """Return what vLLM computes without heed."""
    return op.impls["native"].impl_fn(*arguments)


def assert_alike(found: Tensor, expected: Tensor) -> None:
    """Fail if two tensors differ by more than the roundings of their type."""
    bound = 2**-7 if expected.dtype == torch.bfloat16 else 1e-5
    assert found.shape == expected.shape
    torch.testing.assert_close(found, expected, rtol=bound, atol=bound)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", [(1, 16), (7, 64), (3, 5, 32)])
def test_a_norm_is_vllms_own(ops: Any, dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    """In both types, of rows and of heads."""
    x, weight = torch.randn(shape).to(dtype), torch.randn(shape[-1]).to(dtype)
    assert ops.rms_norm.dispatch(x, weight, EPSILON).provider == norms.PROVIDER
    assert_alike(ops.rms_norm(x, weight, EPSILON), native(ops.rms_norm, x, weight, EPSILON))


def test_heads_that_are_a_part_of_longer_rows(ops: Any) -> None:
    """As the queries are of QKV."""
    heads = torch.randn(4, 96)[:, :64].view(4, 2, 32)
    weight = torch.randn(32)
    assert not heads.is_contiguous()
    assert_alike(ops.rms_norm(heads, weight, EPSILON), native(ops.rms_norm, heads, weight, EPSILON))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_sum_and_its_norm_are_vllms_own(ops: Any, dtype: torch.dtype) -> None:
    """What was given stays as it is, unless vLLM says that it may be written over."""
    x, residual, weight = (torch.randn(*shape).to(dtype) for shape in ((5, 64), (5, 64), (64,)))
    expected = native(ops.fused_add_rms_norm, x, residual, weight, EPSILON)
    before = x.clone(), residual.clone()
    found = ops.fused_add_rms_norm(x, residual, weight, EPSILON)
    for one, other in zip(found, expected, strict=True):
        assert_alike(one, other)
    assert torch.equal(x, before[0])
    assert torch.equal(residual, before[1])
    found = ops.fused_add_rms_norm.maybe_inplace(x, residual, weight, EPSILON)
    for one, other in zip(found, expected, strict=True):
        assert_alike(one, other)


def test_what_the_kernels_cannot_take_is_normed_as_before(ops: Any) -> None:
    """A part of a row, no weight, a weight of another type, rows that lie apart."""
    x, weight = torch.randn(4, 64), torch.randn(64)
    for arguments in ((x, weight, EPSILON, 32), (x, None, EPSILON), (x, weight.double(), EPSILON)):
        assert ops.rms_norm.dispatch(*arguments).provider == "native"
        assert_alike(ops.rms_norm(*arguments), native(ops.rms_norm, *arguments))
    apart = torch.randn(4, 128)[:, :64]
    assert ops.fused_add_rms_norm.dispatch(apart, x, weight, EPSILON).provider == "native"
