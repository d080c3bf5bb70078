"""Memory that a process has freed stays with it, for the next tensor of that size, until all of it is given back.

By default glibc hands each large block back to the kernel and takes it anew, page by page and zeroed: a tenth of a
training step on a CPU. A thread's own arena holds no large block at all, so all threads share one. Between lessons a
large model would hold the most that one has ever needed, so it is given back when one ends. tcmalloc
(`engine.host.allocator`) keeps memory by itself; elsewhere than on it and on glibc nothing happens.
"""

import ctypes
from collections.abc import Callable

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -2, -3, -8  # as in malloc.h
_KEPT_BYTES = (1 << 31) - 1  # the largest that fits into the argument
_GROWTH_BYTES = 1 << 26  # taken from the kernel at once
_TCMALLOC_RELEASE = "MallocExtension_ReleaseFreeMemory"


def install() -> bool:
    """Keep freed memory from here on. Return True if the C library has agreed, or tcmalloc stands in its place."""
    if _function(_TCMALLOC_RELEASE) is not None:
        return True
    set_option = _function("mallopt")
    if set_option is None:
        return False
    kept = ((_MMAP_THRESHOLD, _KEPT_BYTES), (_TRIM_THRESHOLD, _KEPT_BYTES))
    options = (*kept, (_TOP_PAD, _GROWTH_BYTES), (_ARENA_MAX, 1))
    return [set_option(option, value) for option, value in options] == [1] * len(options)


def give_back() -> bool:
    """Hand all freed memory back to the kernel. Return True if the allocator can; a gigabyte takes some .1 s."""
    release, trim = _function(_TCMALLOC_RELEASE), _function("malloc_trim")
    if release is not None:
        release()
    elif trim is not None:
        trim(0)
    return release is not None or trim is not None


def _function(name: str) -> Callable[..., int] | None:
    """Return a function of this process's libraries, None if none has it."""
    try:
        found: Callable[..., int] = getattr(ctypes.CDLL(None), name)
    except (AttributeError, OSError):
        return None
    return found
