"""tcmalloc for vLLM's processes, where the machine has it: what they allocate is a tensor a moment after another.

glibc looks through all free blocks for an aligned one, and between a server's requests and its lessons they become
thousands: a fifth of a pretrained model's training step, and more with each lesson. vLLM's own builds for CPU bring
tcmalloc along; here the system's is taken (Debian: libtcmalloc-minimal4).
"""

from ctypes.util import find_library

PACKAGE = "libtcmalloc-minimal4"
_NAME = "tcmalloc_minimal"
QUIET = {"TCMALLOC_LARGE_ALLOC_REPORT_THRESHOLD": str(1 << 50)}  # a line for each large block, otherwise


def find() -> str | None:
    """Return the library as the dynamic loader knows it, None if it is not there."""
    return find_library(_NAME)


def preloads(before: str) -> dict[str, str]:
    """Return what a child's environment needs for it, beside the libraries that are preloaded before; else nothing."""
    library = find()
    if library is None or _NAME in before:
        return {}
    return {"LD_PRELOAD": ":".join(filter(None, (library, before))), **QUIET}
