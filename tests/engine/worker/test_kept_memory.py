"""engine.worker.kept_memory: a large block that was freed is there for the next one, until all is given back."""

import os
import subprocess
import sys

import pytest

from engine.host import allocator

PROGRAM = """
import resource
import sys
from concurrent.futures import ThreadPoolExecutor

import torch
from engine.worker import kept_memory

agreed = sys.argv[1] == "default" or kept_memory.install()
torch.set_num_threads(1)


def blocks():
    for _ in range(3):
        torch.ones(1 << 24)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        torch.ones(1 << 24)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


print(agreed, blocks() if sys.argv[2] == "main" else ThreadPoolExecutor(1).submit(blocks).result())
"""
RETURNS = """
from pathlib import Path

import torch
from engine.worker import kept_memory


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1])


kept_memory.install()
blocks = [torch.ones(1 << 24) for _ in range(8)]
last = torch.ones(1 << 20)  # above them: they are not at the end of what the process has
full = resident()
del blocks
kept = resident()
agreed = kept_memory.give_back()
print(agreed, full, kept, resident())
"""
BLOCK_PAGES = (4 << 24) // 4096


def glibc() -> dict[str, str]:
    """The environment without what an engine in this process may have preloaded for its children."""
    return {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}


def faults(how: str, thread: str) -> int:
    """Return how many pages twenty blocks of 64 MB took from the kernel, in a process of its own."""
    words = (sys.executable, "-c", PROGRAM, how, thread)
    done = subprocess.run(words, env=glibc(), capture_output=True, text=True, check=True)
    agreed, count = done.stdout.split()
    assert agreed == "True"
    return int(count)


@pytest.mark.parametrize("thread", ["main", "other"])
def test_freed_blocks_are_used_again(thread: str) -> None:
    """By default each block is taken anew; afterwards most are not, also in the thread that trains."""
    assert faults("default", thread) > 15 * BLOCK_PAGES
    assert faults("kept", thread) < 10 * BLOCK_PAGES


def test_all_of_it_can_be_given_back() -> None:
    """What was freed is still the process's own until then, also below blocks that are in use."""
    done = subprocess.run((sys.executable, "-c", RETURNS), env=glibc(), capture_output=True, text=True, check=True)
    agreed, full, kept, after = done.stdout.split()
    assert agreed == "True"
    assert int(kept) > int(full) - BLOCK_PAGES
    assert int(after) < int(full) - 7 * BLOCK_PAGES


@pytest.mark.skipif(allocator.find() is None, reason=f"tcmalloc is not installed here: apt install {allocator.PACKAGE}")
def test_tcmalloc_keeps_memory_by_itself_and_gives_it_back() -> None:
    """Blocks of the size of a layer's tensors are used again, and all of it can be given back."""
    environment = os.environ | allocator.preloads("")
    words = (sys.executable, "-c", RETURNS)
    done = subprocess.run(words, capture_output=True, text=True, check=True, env=environment)
    agreed, full, _, after = done.stdout.split()
    assert agreed == "True"
    assert int(after) < int(full) - 7 * BLOCK_PAGES
