"""engine.host.allocator: tcmalloc for vLLM's processes, where the machine has it."""

import os
import subprocess
import sys

import pytest

from engine.host import allocator

SAID = "import ctypes; print(hasattr(ctypes.CDLL(None), 'MallocExtension_ReleaseFreeMemory'))"


@pytest.mark.parametrize("before", ["", "libgomp.so.1"])
def test_it_comes_before_what_is_preloaded_already(monkeypatch: pytest.MonkeyPatch, before: str) -> None:
    """Its report of every large block is off."""
    monkeypatch.setattr(allocator, "find_library", lambda _name: "libtcmalloc_minimal.so.4")
    found = allocator.preloads(before)
    assert found["LD_PRELOAD"] == ":".join(filter(None, ("libtcmalloc_minimal.so.4", before)))
    assert int(found["TCMALLOC_LARGE_ALLOC_REPORT_THRESHOLD"]) > 2**40


def test_nothing_is_set_where_it_is_missing_or_there_already(monkeypatch: pytest.MonkeyPatch) -> None:
    """A library that cannot be preloaded would be an error line of every child."""
    monkeypatch.setattr(allocator, "find_library", lambda _name: None)
    assert (allocator.find(), allocator.preloads("")) == (None, {})
    monkeypatch.setattr(allocator, "find_library", lambda _name: "libtcmalloc_minimal.so.4")
    assert allocator.preloads("/opt/libtcmalloc_minimal.so.4") == {}


def test_a_child_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The dynamic loader finds it by the name that is set."""
    if allocator.find() is None:
        pytest.skip(f"tcmalloc is not installed here: apt install {allocator.PACKAGE}")
    environment = os.environ | allocator.preloads("")
    done = subprocess.run((sys.executable, "-c", SAID), env=environment, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("True\n", "")
