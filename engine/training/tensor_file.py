"""A safetensors file read into one block of memory.

The library copies each tensor into a block of its own, and an adapter has hundreds. Adapters of one kind have one
header: the library checks it where it is met first, and files that begin with it and are as long are cut the same way.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_safetensors
from torch import Tensor

_LENGTH_BYTES = 8  # of the header, which begin a file
_NUM_KINDS = 64  # whose headers are remembered


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Return a file's tensors by name. Raises OSError or ValueError if it is missing or broken. Blocking."""
    data = _read(path)
    length = _LENGTH_BYTES + int.from_bytes(data[:_LENGTH_BYTES], "little")
    try:
        layout = _layout(bytes(data[:length]), len(data))
        return load_safetensors(bytes(data)) if layout is None else layout.cut(data)
    except SafetensorError as error:
        raise ValueError(f"{path} is not a safetensors file: {error}") from error


def _read(path: Path) -> bytearray:
    """Return a file's content as memory that tensors may be views of."""
    with path.open("rb", buffering=0) as file:
        data = bytearray(path.stat().st_size)
        del data[file.readinto(data) :]  # the file may have become shorter
    return data


@dataclass(frozen=True)
class _Layout:
    """The tensors of a file as they follow each other: all of one type."""

    names: tuple[str, ...]
    shapes: tuple[torch.Size, ...]
    dtype: torch.dtype
    begins: int  # bytes

    def cut(self, data: bytearray) -> dict[str, Tensor]:
        """Return the tensors as views of a file's content."""
        flat = torch.frombuffer(data, dtype=self.dtype, offset=self.begins)
        parts = flat.split([shape.numel() for shape in self.shapes])
        return dict(zip(self.names, map(Tensor.view, parts, self.shapes), strict=True))


@lru_cache(_NUM_KINDS)
def _layout(header: bytes, num_bytes: int) -> _Layout | None:
    """Return how files with this header are cut, None if not as views of one block.

    Raises SafetensorError if no file of this length can begin so.
    """
    tensors: Mapping[str, Tensor] = load_safetensors(header + bytes(num_bytes - len(header)))
    if len({tensor.dtype for tensor in tensors.values()}) != 1:
        return None
    entries = json.loads(header[_LENGTH_BYTES:])
    names = sorted(tensors, key=lambda name: entries[name]["data_offsets"])
    shapes = tuple(tensors[name].shape for name in names)
    return _Layout(tuple(names), shapes, tensors[names[0]].dtype, len(header))
