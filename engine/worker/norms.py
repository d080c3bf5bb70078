"""RMSNorm on a CPU by the kernels that vLLM is built with there, and uses only on GPUs.

vLLM's own norm on a CPU is eight of PyTorch's operations: for 16 rows of 576 values in bfloat16 it takes 36 us, with
the sum before it 54, where the kernels take 8 and 7 (docs/LOG.md, 2026-11-30). Invariant: what these kernels cannot
take, vLLM norms as before.
"""

from typing import Any

import torch
from torch import Tensor

PROVIDER = "heed"  # the name of an implementation in vLLM's registry


def install(vllm_config: Any) -> None:
    """Make vLLM's norms in this process use them first. In place. Before the worker is built."""
    from vllm import ir
    from vllm.platforms import current_platform

    current_platform.import_kernels()
    priority = vllm_config.kernel_config.ir_op_priority
    if PROVIDER not in ir.ops.rms_norm.impls:
        ir.ops.rms_norm.register_impl(PROVIDER, supported=_is_built("rms_norm"), supports_args=_takes)(_norm)
        ir.ops.fused_add_rms_norm.register_impl(
            PROVIDER, supported=_is_built("fused_add_rms_norm"), supports_args=_takes_sum, inplace=True
        )(_add_and_norm)
    priority.rms_norm = [PROVIDER, "native"]
    priority.fused_add_rms_norm = [PROVIDER, "native"]


def _is_built(name: str) -> bool:
    return hasattr(torch.ops._C, name)


def _takes(x: Tensor, weight: Tensor | None, epsilon: float, variance_size: int | None = None) -> bool:
    return variance_size is None and weight is not None and weight.dtype == x.dtype


def _norm(x: Tensor, weight: Tensor | None, epsilon: float, variance_size: int | None = None) -> Tensor:
    rows = x.contiguous()  # heads are a part of QKV, whose rows are longer
    out = torch.empty_like(rows)
    torch.ops._C.rms_norm(out, rows, weight, epsilon)
    return out


def _takes_sum(
    x: Tensor, x_residual: Tensor, weight: Tensor | None, epsilon: float, variance_size: int | None = None
) -> bool:
    return _takes(x, weight, epsilon, variance_size) and x.is_contiguous() and x_residual.is_contiguous()


def _add_and_norm(
    x: Tensor, x_residual: Tensor, weight: Tensor | None, epsilon: float, variance_size: int | None = None
) -> tuple[Tensor, Tensor]:
    torch.ops._C.fused_add_rms_norm(x, x_residual, weight, epsilon)
    return x, x_residual
