"""heed's hold on a child process of vLLM: its session, its output and its end.

Invariants: from `settle_in` on, the process and everything it starts belong to a session of their own (Ctrl-C in
heed's terminal ends heed, which then ends them in order), write to heed's log instead of the terminal, and end when
heed ends.
"""

import gc
import os
from pathlib import Path
from typing import Any

from engine.worker.settings import WorkerSettings
from engine.worker.watchdog import watch


def settle_in(vllm_config: Any) -> None:
    """Give this process its own session, heed's log as its output, and the watchdog. In place."""
    settings = WorkerSettings.of(vllm_config)
    if os.getpid() != os.getsid(0):
        os.setsid()
    send_output_to(settings.log_file)
    watch(settings.owner, settings.watch_interval_s)


def send_output_to(log_file: Path) -> None:
    """Send standard output and error of this process and its children to the end of `log_file`. In place."""
    fd = os.open(log_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(fd, 1)
    os.dup2(fd, 2)
    os.close(fd)


def leave_as_it_is() -> None:
    """Leave this process's memory to the operating system: nothing is collected on the way out any more.

    vLLM unfreezes what it froze at the start and collects it all, to free a GPU's memory in a process that lives on;
    one that ends takes five seconds for it on a slow core, and is killed before it is done.
    """
    gc.freeze()
    gc.unfreeze = lambda: None
