"""The size of the KV cache and the longest context, from the model's configuration and the memory that is there.

On a CPU vLLM takes what it is told: here room for FULL_CONTEXTS whole contexts, or a shorter context if that is more
than a share of the free memory. On a GPU vLLM measures for itself, within what learning leaves it. Invariant: what an
operator has set is never changed; what cannot work is refused with the setting's name before vLLM is started.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from engine.config import HostConfig
from engine.errors import EngineStartError
from engine.host.model_shape import ModelShape

FULL_CONTEXTS = 4
LONGEST_CPU_CONTEXT = 8192  # tokens, unless the operator wants more: beyond it a CPU reads for minutes
SHORTEST_CONTEXT = 512
LEAST_CACHE_BYTES = 256 << 20
MEMORY_SHARE = 0.25  # of the free memory, for the cache; the rest is for weights, the trainer's copy and adapters
MOST_OF_GPU = 0.85  # for vLLM; the rest is for activations, also of models that need less for training
LEAST_OF_GPU = 0.3
AS_LONG_AS_FITS = -1  # vLLM's word for the model's own limit, or less where the cache is smaller
_ROUND = 128
_TYPE_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}


@dataclass(frozen=True)
class Sizing:
    """The cache in bytes (None: vLLM's own choice), the context in tokens, a remark, and vLLM's share of a GPU."""

    kv_cache_bytes: int | None
    max_model_len: int
    remark: str = ""
    gpu_share: float = MOST_OF_GPU


def on_cpu(folder: Path, host: HostConfig, dtype: str, free_bytes: int, longest: int | None = None) -> Sizing:
    """Return the sizes for a CPU. `longest`: tokens that heed can train at. Blocking: one file.

    Raises EngineStartError if what the operator set cannot work.
    """
    shape = ModelShape.in_folder(folder)
    value_bytes = _TYPE_BYTES.get(dtype, 2)
    _require_memory(folder, shape.num_weights * value_bytes, free_bytes)
    one = shape.kv_bytes_per_token(value_bytes)
    wanted = host.max_model_len or min(shape.context_tokens, LONGEST_CPU_CONTEXT)
    wanted = min(wanted, longest or wanted)
    if host.kv_cache_bytes is not None:
        return _in_cache(host, wanted, one)
    room = max(LEAST_CACHE_BYTES, int(MEMORY_SHARE * free_bytes))
    needed = FULL_CONTEXTS * wanted * one
    if needed <= room:
        return Sizing(max(LEAST_CACHE_BYTES, needed), wanted)
    if host.max_model_len is not None:
        if wanted * one > room:
            raise EngineStartError(
                f"A context of {wanted} tokens needs {_mb(wanted * one)} MB of cache and {_mb(room)} MB can be spared. "
                f"Set HEED_HOST_MAX_MODEL_LEN to {_rounded(room // one)} or less, or HEED_HOST_KV_CACHE_BYTES yourself."
            )
        return Sizing(room, wanted)
    fits = max(SHORTEST_CONTEXT, _rounded(room // (FULL_CONTEXTS * one)))
    return Sizing(
        max(room, fits * one),
        fits,
        f"the memory here is enough for conversations of {fits} tokens, not {wanted}: "
        "HEED_HOST_MAX_MODEL_LEN and HEED_HOST_KV_CACHE_BYTES choose otherwise",
    )


def on_gpu(host: HostConfig, share: float, longest: int | None = None) -> Sizing:
    """Return the sizes for a GPU of whose memory vLLM gets a share (`engine.host.gpu_plan`). `longest` as above."""
    length = min((n for n in (host.max_model_len, longest) if n is not None), default=AS_LONG_AS_FITS)
    return Sizing(host.kv_cache_bytes, length, gpu_share=share)


def stored_weights(folder: Path) -> int:
    """Return the bytes of a model's weights as files. Blocking."""
    return sum(path.stat().st_size for path in folder.glob("*.safetensors"))


def _require_memory(folder: Path, weights: int, free_bytes: int) -> None:
    """Raise EngineStartError if not even the weights fit: the machine would end this process or another one.

    Weights that are smaller as files are quantised, and stay so.
    """
    needed = min(weights, stored_weights(folder))
    if needed > free_bytes:
        raise EngineStartError(
            f"The weights of the model in {folder} need {_mb(needed)} MB of memory and {_mb(free_bytes)} MB are free: "
            "close other programs, or set HEED_MODEL to a smaller model (`heed models` lists what each needs)."
        )


def _in_cache(host: HostConfig, wanted: int, one: int) -> Sizing:
    """Return the sizes for a cache that the operator has set."""
    assert host.kv_cache_bytes is not None
    fits = _rounded(host.kv_cache_bytes // one)
    if fits >= wanted:
        return Sizing(host.kv_cache_bytes, wanted)
    if host.max_model_len is not None or fits < SHORTEST_CONTEXT:
        raise EngineStartError(
            f"HEED_HOST_KV_CACHE_BYTES={host.kv_cache_bytes} holds {host.kv_cache_bytes // one} tokens and a "
            f"conversation may have {wanted}. Set it to {wanted * one} or more, or HEED_HOST_MAX_MODEL_LEN lower."
        )
    return Sizing(host.kv_cache_bytes, fits, f"HEED_HOST_KV_CACHE_BYTES leaves room for conversations of {fits} tokens")


def free_memory(meminfo: Path = Path("/proc/meminfo"), cgroup: Path = Path("/sys/fs/cgroup")) -> int:
    """Return the bytes that this process may still take: the machine's, or the container's if that is less."""
    found = re.search(r"MemAvailable:\s+(\d+) kB", meminfo.read_text(encoding="utf-8")) if meminfo.is_file() else None
    free = int(found[1]) << 10 if found else 4 << 30
    limit, used = cgroup / "memory.max", cgroup / "memory.current"
    if limit.is_file() and used.is_file() and (text := limit.read_text().strip()) != "max":
        free = min(free, max(0, int(text) - int(used.read_text())))
    return free


def _rounded(tokens: int) -> int:
    return tokens // _ROUND * _ROUND


def _mb(size: int) -> int:
    return size >> 20
