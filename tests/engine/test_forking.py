"""engine.forking: a forked worker computes on the cores a spawned one would be bound to."""

import os
import subprocess
import sys

from tests.patience import PATIENCE_S

CHILD = """
import multiprocessing, os
from types import SimpleNamespace

import torch

from engine.forking import fork_workers

parallel = SimpleNamespace(local_world_size=1, data_parallel_rank_local=None, _api_process_count=1)
fork_workers(SimpleNamespace(parallel_config=parallel, kv_transfer_config=None))


def worker(told):
    size = 512
    product = torch.ones(size, size) @ torch.ones(size, size)  # by all threads there are
    told.put((sorted(os.sched_getaffinity(0)), torch.get_num_threads(), float(product[0, 0]) == size))


if __name__ == "__main__":
    from vllm.utils.system_utils import get_mp_context

    context = get_mp_context()
    told = context.Queue()
    process = context.Process(target=worker, args=(told,))
    process.start()
    print(context.get_start_method(), *told.get(timeout={patience}))
    process.join()
"""


def forked(binding: str) -> str:
    """What a forked worker says about itself."""
    names = {"VLLM_CPU_OMP_THREADS_BIND": binding, "VLLM_LOGGING_LEVEL": "ERROR"}
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"} | names
    code = CHILD.replace("{patience}", str(PATIENCE_S))
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment, timeout=PATIENCE_S
    )
    return done.stdout.strip()


def test_it_takes_the_cores_it_is_bound_to() -> None:
    """As many threads as cores, on these cores, and it computes."""
    cores = sorted(os.sched_getaffinity(0))[:2]
    said = forked(",".join(map(str, cores)))
    assert said == f"fork {cores} {len(cores)} True"


def test_unbound_it_may_run_everywhere() -> None:
    """Where whoever runs heed says that nothing is to be bound."""
    cores = sorted(os.sched_getaffinity(0))
    assert forked("nobind").startswith(f"fork {cores} ")
