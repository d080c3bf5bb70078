"""engine.worker.kept_memory: a large block that was freed is there for the next one."""

import subprocess
import sys

PROGRAM = """
import resource
import sys
import torch
from engine.worker import kept_memory

agreed = sys.argv[1] == "default" or kept_memory.install()
torch.set_num_threads(1)
for _ in range(3):
    torch.ones(1 << 24)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    torch.ones(1 << 24)
print(agreed, resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
BLOCK_PAGES = (4 << 24) // 4096


def faults(how: str) -> int:
    """Return how many pages twenty blocks of 64 MB took from the kernel, in a process of its own."""
    done = subprocess.run((sys.executable, "-c", PROGRAM, how), capture_output=True, text=True, check=True)
    agreed, count = done.stdout.split()
    assert agreed == "True"
    return int(count)


def test_freed_blocks_are_used_again() -> None:
    """By default each block is taken anew; afterwards most are not."""
    assert faults("default") > 15 * BLOCK_PAGES
    assert faults("kept") < 10 * BLOCK_PAGES
