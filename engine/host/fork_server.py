"""EngineCore on a CPU as a fork of a process that imports vLLM while heed does.

vLLM would start another Python for it, which imports what heed has just imported: nearly half of a start, and most of a
restart after a death. Python's own fork server does so beside heed, and once. Invariants: the server imports and forks
and does nothing else, so that there is no thread which a fork could lose; EngineCore has heed's environment as it is at
EngineCore's start, and heed's log; the server ends when heed does.
"""

import atexit
import json
import logging.config
import os
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from multiprocessing import forkserver
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from typing import Any

from engine.host.vllm_settings import LOGGING, has_gpu, set_environment

PRELOADED = "engine.worker.preloaded"
CONFIGURES_LOGGING = "VLLM_CONFIGURE_LOGGING"  # by itself, when it is imported: to the terminal


def begin() -> None:
    """Set vLLM's environment and begin the server, unless it is there, or a GPU is. In place.

    It imports vLLM, which takes seconds.
    """
    set_environment()
    if not has_gpu():
        forkserver.set_forkserver_preload([PRELOADED])
        os.environ[CONFIGURES_LOGGING] = "0"
        forkserver.ensure_running()
        del os.environ[CONFIGURES_LOGGING]
        atexit.unregister(_end)
        atexit.register(_end)


def install() -> None:
    """Have vLLM fork its EngineCore from the server, if there is no GPU. In place. Imports vLLM."""
    from vllm.v1.engine import utils

    if not has_gpu():
        utils.get_mp_context = _Forks


def _end() -> None:
    """End the server, which by itself would do so only when it has imported everything."""
    pid = forkserver._forkserver._forkserver_pid  # type: ignore[attr-defined]  # ours until it is waited for
    if pid is not None:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


class _Fork(ForkServerProcess):
    """A process with this one's environment."""

    def __init__(self, *, target: Callable[..., None], name: str, kwargs: Mapping[str, Any]) -> None:
        super().__init__(target=_as_started, name=name, args=(dict(os.environ), target), kwargs=dict(kwargs))


class _Forks(ForkServerContext):
    """The context of multiprocessing that vLLM makes its processes in."""

    Process = _Fork


def _as_started(environment: Mapping[str, str], target: Callable[..., None], **kwargs: object) -> None:
    """Run as a process would that had been started with this environment."""
    for name in os.environ.keys() - environment.keys():
        del os.environ[name]
    for name, value in environment.items() - os.environ.items():  # no others: a process's title is kept beside them
        os.environ[name] = value
    if LOGGING in environment:
        logging.config.dictConfig(json.loads(Path(environment[LOGGING]).read_text()))
    target(**kwargs)
