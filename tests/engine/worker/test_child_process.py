"""engine.worker.child_process: a child's own session, heed's log and the watchdog."""

import os
import subprocess
import sys
from pathlib import Path

from engine.worker.watchdog import ProcessId
from tests.patience import PATIENCE_S

CHILD = """
import os, subprocess, sys
from pathlib import Path
from types import SimpleNamespace
from engine.worker.child_process import settle_in
from engine.worker.settings import WorkerSettings
from engine.worker.watchdog import ProcessId
settings = WorkerSettings(ProcessId({pid}, {started}), 0.05, Path({log!r}), True, 0)
config = SimpleNamespace(additional_config=settings)
settle_in(config)
settle_in(config)  # harmless to repeat
print("session", os.getsid(0) == os.getpid(), flush=True)
subprocess.run([sys.executable, "-c", "import sys; print('from a grandchild', file=sys.stderr)"])
"""


def run_child(owner: ProcessId, log_file: Path) -> "subprocess.CompletedProcess[str]":
    """Start a process that settles in as EngineCore does."""
    code = CHILD.format(pid=owner.pid, started=owner.started, log=str(log_file))
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=PATIENCE_S)


def test_it_gets_its_own_session_and_writes_to_the_log(tmp_path: Path) -> None:
    """Ctrl-C in heed's terminal does not reach the child, and neither it nor its children write there."""
    done = run_child(ProcessId.current(), tmp_path / "vllm.log")
    assert done.returncode == 0
    assert done.stdout == done.stderr == ""
    assert (tmp_path / "vllm.log").read_text().split("\n")[:2] == ["session True", "from a grandchild"]


def test_it_ends_when_heed_is_gone_already(tmp_path: Path) -> None:
    """A child ends even if heed was killed while vLLM was still being imported."""
    done = run_child(ProcessId(os.getpid(), 1), tmp_path / "vllm.log")
    assert done.returncode in (-9, 0)  # at the latest at the next look


LEAVING = """
import gc
from engine.worker.child_process import leave_as_it_is
class Node: pass
gc.disable()
def circle():
    node = Node()
    node.self = node
circle()
leave_as_it_is()
gc.unfreeze()
print(gc.collect(), gc.get_freeze_count() > 0)
"""


def test_a_process_that_ends_collects_nothing() -> None:
    """Not even a circle that nothing refers to, after vLLM has asked to unfreeze and to collect all."""
    done = subprocess.run(
        [sys.executable, "-c", LEAVING], capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )
    assert done.stdout == "0 True\n", done.stderr
