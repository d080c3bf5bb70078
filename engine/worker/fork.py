"""The worker on a CPU as a fork of EngineCore, which has imported most of what it needs.

vLLM would start another Python for it: five seconds of importing, at every start and after every death of the model. It
does so because OpenMP reads which cores it may take from the environment, once, when it is loaded; a fork is told here.
libgomp bears a fork as long as the parent has not computed with several threads: EngineCore never computes.

Invariant: the worker holds no pipe open whose closing tells heed that EngineCore is gone.
"""

import fcntl
import functools
import os
from collections.abc import Iterator, Mapping
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

import torch
from vllm.utils.ompmultiprocessing import OMPProcessManager

METHOD = "VLLM_WORKER_MULTIPROC_METHOD"


def fork_workers(vllm_config: Any) -> None:
    """Fork the worker of this process's executor, on the cores that vLLM has chosen for it. In place."""
    os.environ[METHOD] = "fork"
    os.register_at_fork(after_in_child=functools.partial(_let_go, dict(_write_ends())))
    cores = OMPProcessManager(vllm_config)
    if not cores.skip_setup:  # else the operator has switched binding off
        mine = cores.cpu_lists[0]
        torch.set_num_threads(len(mine))
        os.register_at_fork(after_in_child=functools.partial(os.sched_setaffinity, 0, mine))


def _write_ends() -> Iterator[tuple[int, int]]:
    """Yield descriptor and inode of the pipes this process can write to, whose closing tells that it has ended.

    The pipe to Python's resource tracker is left out: a worker uses it, too.
    """
    tracker = resource_tracker._resource_tracker._fd  # type: ignore[attr-defined]
    for entry in Path("/proc/self/fd").iterdir():
        fd = int(entry.name)
        try:
            is_pipe = str(entry.readlink()).startswith("pipe:")
            is_written = fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE == os.O_WRONLY
        except OSError:
            continue  # of this listing itself
        if is_pipe and is_written and fd != tracker:
            yield fd, os.fstat(fd).st_ino


def _let_go(pipes: Mapping[int, int]) -> None:
    """Close these pipes in a fork, unless a descriptor has become another file."""
    for fd, inode in pipes.items():
        try:
            if os.fstat(fd).st_ino == inode:
                os.close(fd)
        except OSError:
            continue
