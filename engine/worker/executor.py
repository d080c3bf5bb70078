"""vLLM's executors with heed's housekeeping: the first code of ours that runs in the EngineCore process."""

from vllm.v1.executor.multiproc_executor import MultiprocExecutor
from vllm.v1.executor.uniproc_executor import UniProcExecutor

from engine.worker import queue_wait
from engine.worker.child_process import leave_as_it_is, settle_in
from engine.worker.fork import fork_workers


class CpuExecutor(MultiprocExecutor):
    """One worker process beside EngineCore: what vLLM needs on a CPU."""

    def _init_executor(self) -> None:
        settle_in(self.vllm_config)
        queue_wait.install()
        fork_workers(self.vllm_config)
        super()._init_executor()

    def shutdown(self) -> None:
        """End the worker. EngineCore ends next."""
        super().shutdown()
        leave_as_it_is()


class GpuExecutor(UniProcExecutor):
    """The worker inside EngineCore: one GPU."""

    def _init_executor(self) -> None:
        settle_in(self.vllm_config)
        super()._init_executor()

    def shutdown(self) -> None:
        """End the worker. EngineCore ends next."""
        super().shutdown()
        leave_as_it_is()
