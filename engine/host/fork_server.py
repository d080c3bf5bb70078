"""EngineCore on a CPU as a fork of a process that imports vLLM while heed does.

vLLM would start another Python for it, which imports what heed has just imported: nearly half of a start, and most of a
restart after a death. Python's own fork server does so beside heed, and once. Invariants: the server imports and forks
and does nothing else, so that there is no thread which a fork could lose; EngineCore has heed's environment and log as
they are at EngineCore's start; the server ends when heed and EngineCore have ended.
"""

import json
import logging.config
import os
from collections.abc import Callable, Mapping
from multiprocessing import forkserver
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from typing import Any

from engine.host.vllm_settings import LOGGING, has_gpu

PRELOADED = "engine.worker.preloaded"


def begin() -> None:
    """Begin the server, unless it is there, or a GPU is. In place. It imports vLLM, which takes seconds."""
    if not has_gpu():
        forkserver.set_forkserver_preload([PRELOADED])
        forkserver.ensure_running()


def install() -> None:
    """Have vLLM fork its EngineCore from the server, if there is no GPU. In place. Imports vLLM."""
    from vllm.v1.engine import utils

    if not has_gpu():
        utils.get_mp_context = _Forks


class _Fork(ForkServerProcess):
    """A process with this one's environment."""

    def __init__(self, *, target: Callable[..., None], name: str, kwargs: Mapping[str, Any]) -> None:
        super().__init__(target=_with_environment, name=name, args=(dict(os.environ), target), kwargs=dict(kwargs))


class _Forks(ForkServerContext):
    """The context of multiprocessing that vLLM makes its processes in."""

    Process = _Fork


def _with_environment(environment: Mapping[str, str], target: Callable[..., None], **kwargs: object) -> None:
    for name in os.environ.keys() - environment.keys():
        del os.environ[name]
    for name, value in environment.items() - os.environ.items():  # no others: a process's title is kept beside them
        os.environ[name] = value
    if LOGGING in environment:  # vLLM reads it when it is imported, which was in the server
        logging.config.dictConfig(json.loads(Path(environment[LOGGING]).read_text()))
    target(**kwargs)
