"""The values in an adapter's file of tensors, without PyTorch: NumPy knows no bfloat16."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import deserialize

_UPPER_HALF = np.uint32(16)  # bits of a float32 below those of a bfloat16
Values = NDArray[np.float32]


def read_values(content: bytes) -> dict[str, Values]:
    """Return each tensor as float32. Raises ValueError for other types than float32 and bfloat16.

    Raises SafetensorError if the content is no safetensors file.
    """
    return {name: _values(name, tensor).reshape(tensor["shape"]) for name, tensor in deserialize(content)}  # type: ignore[no-untyped-call]


def _values(name: str, tensor: dict[str, Any]) -> Values:
    if tensor["dtype"] == "F32":
        return np.frombuffer(tensor["data"], np.float32)
    if tensor["dtype"] == "BF16":
        return (np.frombuffer(tensor["data"], np.uint16).astype(np.uint32) << _UPPER_HALF).view(np.float32)
    raise ValueError(f"{name[:120]} is {tensor['dtype']}, and heed keeps F32 and BF16")
