"""Memory that a process has freed stays with it, for the next tensor of that size, until all of it is given back.

By default glibc hands each large block back to the kernel and takes it anew, page by page and zeroed: a tenth of a
training step on a CPU. A thread's own arena holds no large block at all, so all threads share one. Between lessons a
large model would hold the most that one has ever needed, so it is given back when one ends. Elsewhere than on glibc
nothing happens.
"""

import ctypes

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -2, -3, -8  # as in malloc.h
_KEPT_BYTES = (1 << 31) - 1  # the largest that fits into the argument
_GROWTH_BYTES = 1 << 26  # taken from the kernel at once


def install() -> bool:
    """Keep freed memory from here on. Return True if the C library has agreed."""
    try:
        set_option = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    kept = ((_MMAP_THRESHOLD, _KEPT_BYTES), (_TRIM_THRESHOLD, _KEPT_BYTES))
    options = (*kept, (_TOP_PAD, _GROWTH_BYTES), (_ARENA_MAX, 1))
    return [set_option(option, value) for option, value in options] == [1] * len(options)


def give_back() -> bool:
    """Hand all freed memory back to the kernel. Return True if the C library can; a gigabyte takes some .1 s."""
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError):
        return False
    trim(0)
    return True
