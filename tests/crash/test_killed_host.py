"""A SIGKILL of the process that owns vLLM leaves nothing behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from engine.watchdog import ProcessId
from tests.tiny_model import save_tiny_model

pytestmark = [pytest.mark.engine, pytest.mark.crash, pytest.mark.slow, pytest.mark.timeout(300)]

GONE_WITHIN_S = 10.0
HOST = """
import asyncio, sys
from pathlib import Path
from engine.config import EngineConfig
from engine.vllm_host import VllmHost

async def main():
    host = VllmHost(EngineConfig(sys.argv[1], Path(sys.argv[2])))
    await host.start(lambda line: print(line, flush=True))
    print("ready", flush=True)
    await asyncio.sleep(600)

if __name__ == "__main__":
    asyncio.run(main())
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model."""
    return save_tiny_model(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def owner(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator["subprocess.Popen[str]"]:
    """A process that runs a host, started once; the last test kills it."""
    tmp_path = tmp_path_factory.mktemp("host")
    script = tmp_path / "host.py"
    script.write_text(HOST)
    environment = os.environ | {"PYTHONPATH": str(Path.cwd())}
    command = [sys.executable, str(script), str(folder), str(tmp_path / "data")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        read_until(process, "ready")
        yield process
        process.kill()


def descendants(pid: int) -> list[ProcessId]:
    """Everything the process has started, and what that has."""
    found = (ProcessId.of(child.pid) for child in psutil.Process(pid).children(recursive=True))
    return [process for process in found if process is not None]


def read_until(process: "subprocess.Popen[str]", line: str) -> None:
    """Reads the process's output up to a line."""
    assert process.stdout is not None
    for found in process.stdout:
        if found.strip() == line:
            return
    raise AssertionError(f"it ended before it said {line!r}")


def test_ctrl_c_in_the_terminal_reaches_the_owner_alone(owner: "subprocess.Popen[str]") -> None:
    """The children have a session of their own: the owner decides when and how they end."""
    sessions = {os.getsid(child.pid) for child in descendants(owner.pid) if b"resource_tracker" not in _command(child)}
    assert os.getsid(owner.pid) not in sessions


def test_nothing_is_left_ten_seconds_after_a_sigkill(owner: "subprocess.Popen[str]") -> None:
    """EngineCore, worker and Python's own helpers: without the watchdog they hold 2 GB for good."""
    children = descendants(owner.pid)
    assert len(children) >= 2
    os.kill(owner.pid, signal.SIGKILL)
    owner.wait()
    deadline = time.monotonic() + GONE_WITHIN_S
    while time.monotonic() < deadline and any(child.is_alive() for child in children):
        time.sleep(0.1)
    assert [child for child in children if child.is_alive()] == []


def _command(process: ProcessId) -> bytes:
    return Path(f"/proc/{process.pid}/cmdline").read_bytes()
