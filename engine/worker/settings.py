"""The settings that heed's process gives vLLM's processes, as vLLM's additional configuration."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.worker.watchdog import ProcessId


@dataclass(frozen=True)
class WorkerSettings:
    """The facts that heed's code in a process of vLLM needs."""

    owner: ProcessId  # with which vLLM's processes end
    watch_interval_s: float
    log_file: Path
    is_cpu: bool
    num_weights: int

    @classmethod
    def of(cls, vllm_config: Any) -> "WorkerSettings":
        """Return those in vLLM's configuration."""
        found: WorkerSettings = vllm_config.additional_config
        return found

    def compute_hash(self) -> str:
        """Return the same at every start: vLLM keeps what it has compiled by this, and nothing here changes that."""
        return "heed"
