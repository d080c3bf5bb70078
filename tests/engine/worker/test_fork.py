"""engine.worker.fork: a forked worker computes on the cores of a spawned one, and holds no pipe open."""

import os
import subprocess
import sys
from pathlib import Path

from tests.patience import PATIENCE_S

PROGRAM = """
import multiprocessing, os, signal, sys, time
from multiprocessing.connection import wait
from types import SimpleNamespace

CONFIG = SimpleNamespace(
    parallel_config=SimpleNamespace(local_world_size=1, data_parallel_rank_local=None, _api_process_count=1),
    kv_transfer_config=None,
)


def computing():
    import torch

    size = 512
    product = torch.ones(size, size) @ torch.ones(size, size)  # by all threads there are
    print("fork", sorted(os.sched_getaffinity(0)), torch.get_num_threads(), float(product[0, 0]) == size, flush=True)


def engine_core(told, work, *arguments):
    from engine.worker.fork import fork_workers
    from vllm.utils.system_utils import get_mp_context

    sys.stdout = open(os.devnull if work is time.sleep else "said", "w")  # as heed's log is its output
    fork_workers(CONFIG)
    context = get_mp_context()
    assert context.get_start_method() == "fork"
    worker = context.Process(target=work, args=arguments)
    worker.start()
    told.put(worker.pid)
    worker.join()


if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    told = context.Queue()
    work, arguments = (computing, ()) if sys.argv[1] == "compute" else (time.sleep, ({patience},))
    core = context.Process(target=engine_core, args=(told, work, *arguments))
    core.start()
    worker = told.get(timeout={patience})
    if sys.argv[1] == "compute":
        core.join()
        print(open("said").read())
    else:
        core.kill()
        is_told = bool(wait([core.sentinel], timeout=10))
        print("told" if is_told else "not told", os.path.exists("/proc/%d" % worker))
        os.kill(worker, signal.SIGKILL)
"""


def forked(folder: Path, act: str, binding: str) -> str:
    """Return the output of a worker that is forked from a spawned process, as vLLM's EngineCore is."""
    program = folder / "program.py"
    program.write_text(PROGRAM.replace("{patience}", str(PATIENCE_S)))
    names = {"VLLM_CPU_OMP_THREADS_BIND": binding, "VLLM_LOGGING_LEVEL": "ERROR", "PYTHONPATH": str(Path.cwd())}
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"} | names
    done = subprocess.run(
        [sys.executable, str(program), act],
        capture_output=True, text=True, check=False, env=environment, timeout=PATIENCE_S, cwd=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_it_takes_the_cores_it_is_bound_to(tmp_path: Path) -> None:
    """The worker has as many threads as cores, on these cores, and computes."""
    cores = sorted(os.sched_getaffinity(0))[:2]
    assert forked(tmp_path, "compute", ",".join(map(str, cores))) == f"fork {cores} {len(cores)} True"


def test_the_death_of_engine_core_is_seen_while_the_worker_lives(tmp_path: Path) -> None:
    """EngineCore's end is seen while its worker still runs, so heed does not wait for it."""
    assert forked(tmp_path, "die", "nobind") == "told True"
