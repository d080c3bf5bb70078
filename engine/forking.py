"""The worker on a CPU as a fork of EngineCore, which has imported most of what it needs.

vLLM would start another Python for it: five seconds of importing, at every start and after every death of the model. It
does so because OpenMP reads which cores it may take from the environment, once, when it is loaded; a fork is told here.
libgomp bears a fork as long as the parent has not computed with several threads: EngineCore never computes.
"""

import functools
import os
from typing import Any

import torch
from vllm.utils.ompmultiprocessing import OMPProcessManager

METHOD = "VLLM_WORKER_MULTIPROC_METHOD"


def fork_workers(vllm_config: Any) -> None:
    """In place, for the executor of this process: its worker is forked, on the cores that vLLM has chosen for it."""
    os.environ[METHOD] = "fork"
    cores = OMPProcessManager(vllm_config)
    if not cores.skip_setup:  # else heed's operator has said that nothing is bound
        mine = cores.cpu_lists[0]
        torch.set_num_threads(len(mine))
        os.register_at_fork(after_in_child=functools.partial(os.sched_setaffinity, 0, mine))
