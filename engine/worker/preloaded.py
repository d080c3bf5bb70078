"""The imports of EngineCore, made in the process that it is a fork of: see `engine.host.fork_server`.

The garbage collector leaves alone what is there by then, so that the forks go on sharing its memory.
"""

import gc

from engine.worker.imports import uncollected

with uncollected():
    import vllm.v1.engine.core

    import engine.worker.executor

gc.freeze()

__all__ = ["engine", "vllm"]
