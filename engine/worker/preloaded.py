"""The imports of EngineCore, made in the process that it is a fork of: see `engine.host.fork_server`.

The garbage collector leaves alone what is there by then, so that the forks go on sharing its memory. Nothing is logged
meanwhile: a fork learns where to.
"""

import gc
import logging

from engine.worker.imports import uncollected

logging.getLogger("vllm").addHandler(logging.NullHandler())
logging.getLogger("vllm").propagate = False

with uncollected():
    import vllm.v1.engine.core

    import engine.worker.executor

gc.freeze()

__all__ = ["engine", "vllm"]
