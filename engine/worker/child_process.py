"""How a child of vLLM becomes heed's.

Invariants: from `settle_in` on, the process and everything it starts belong to a session of their own (Ctrl-C in
heed's terminal ends heed, which then ends them in order), write to heed's log instead of the terminal, and end when
heed ends.
"""

import os
from pathlib import Path
from typing import Any

from engine.worker.watchdog import ProcessId, watch


def settle_in(vllm_config: Any) -> None:
    """In place: this process gets its own session, heed's log as its output, and the watchdog."""
    settings = vllm_config.additional_config["heed"]
    if os.getpid() != os.getsid(0):
        os.setsid()
    send_output_to(Path(settings["log_file"]))
    watch(ProcessId(*settings["owner"]), settings["watch_interval_s"])


def send_output_to(log_file: Path) -> None:
    """In place: standard output and error of this process and its children go to the end of `log_file`."""
    fd = os.open(log_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(fd, 1)
    os.dup2(fd, 2)
    os.close(fd)
