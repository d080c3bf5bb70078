"""vLLM's failures to start, as sentences that name the cause and the setting; its log is named last.

The root cause stands in the log of vLLM's child process. What is not known here is told in vLLM's own words.
"""

import re
from pathlib import Path

_TAIL_BYTES = 200_000
_MEMORY = (
    "Memory ran out while the model was loaded: close other programs, choose a smaller model (`heed models` lists what "
    "each needs), or set HEED_HOST_MAX_MODEL_LEN or HEED_HOST_MAX_NUM_SEQS lower."
)
_CACHE = (
    "The cache does not hold one conversation of the model's length: set HEED_HOST_MAX_MODEL_LEN lower or "
    "HEED_HOST_KV_CACHE_BYTES higher."
)
_KNOWN = (
    (r"larger than the available KV cache memory|No available memory for the cache blocks", _CACHE),
    (
        r"Free memory on device",
        "The GPU has less free memory than vLLM is to take: end other programs on it, or set "
        "HEED_HOST_GPU_MEMORY_UTILIZATION lower.",
    ),
    (r"out of memory|OutOfMemoryError|can't allocate memory|Cannot allocate memory|bad_alloc|MemoryError", _MEMORY),
    (
        r"architectures .* are not supported|does not recognize this architecture|has no vLLM implementation",
        "vLLM does not know the architecture of this model: set HEED_MODEL to another (`heed models` names some).",
    ),
    (
        r"Failed to find a kernel|_OpNamespace.* has no attribute",
        "vLLM cannot compute with this model on this machine, most often because of how it is quantised: set "
        "HEED_MODEL to the same model as it was before it was quantised.",
    ),
    (
        r"trust_remote_code",
        "This model brings code of its own, which heed does not run: set HEED_MODEL to another, or "
        "HEED_HOST_TRUST_REMOTE_CODE to true if you trust it.",
    ),
    (
        r"does not support LoRA|LoRA is not supported|is not supported yet.*LoRA",
        "vLLM cannot serve adapters on this model, so it could not learn: set HEED_MODEL to another.",
    ),
    (
        r"User-specified max_model_len .* is greater|greater than the derived max_model_len",
        "HEED_HOST_MAX_MODEL_LEN is above the model's own limit: set it lower, or leave it unset.",
    ),
    (
        r"Can't load tokenizer|instantiate the backend tokenizer|Unrecognized tokenizer",
        "The model's tokenizer cannot be loaded: fetch the model again, or set HEED_MODEL to another.",
    ),
    (r"No space left on device", "The disk is full: free some space, then start heed again."),
)
_KILLED = re.compile(r"Failed core proc\(s\): \{[^}]*: -9\b")


def told(error: BaseException, log_file: Path, logged_before: int) -> str:
    """Return one or two sentences about a failed start. `logged_before`: the log's bytes before it. Blocking."""
    said = f"{error}\n{_tail(log_file, logged_before)}"
    known = next((sentence for pattern, sentence in _KNOWN if re.search(pattern, said)), "")
    if not known and _KILLED.search(said):
        known = _MEMORY
    if not known:
        known = f"vLLM did not start: {str(error).rstrip('.')}."
    return f"{known} Its log is {log_file}."


def size_of(log_file: Path) -> int:
    """Return the bytes of a log that may not be there yet."""
    try:
        return log_file.stat().st_size
    except FileNotFoundError:
        return 0


def _tail(log_file: Path, logged_before: int) -> str:
    if size_of(log_file) < logged_before:
        logged_before = 0  # it was begun anew
    try:
        with log_file.open("rb") as log:
            log.seek(max(logged_before, size_of(log_file) - _TAIL_BYTES))
            return log.read().decode(errors="replace")
    except FileNotFoundError:
        return ""
