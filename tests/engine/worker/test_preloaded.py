"""engine.worker.preloaded: what EngineCore needs is there, and the collector leaves it alone."""

import subprocess
import sys

from tests.patience import PATIENCE_S

PROGRAM = """
import engine.worker.preloaded
import gc, sys, threading
print(threading.active_count(), gc.isenabled(), gc.get_freeze_count() > 100_000)
print("vllm.v1.engine.core" in sys.modules, "engine.worker.executor" in sys.modules)
"""


def test_it_imports_and_runs_nothing() -> None:
    """EngineCore and its executor are imported, and no thread of Python's was begun, which a fork would not have."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=PATIENCE_S
    )
    assert done.stdout.splitlines() == ["1 True True", "True True"]
