"""engine.worker.settings: what vLLM's processes are told, and that vLLM keeps what it compiled from start to start."""

from dataclasses import replace
from pathlib import Path

from engine.config import EngineConfig
from engine.host.vllm_settings import engine_args
from engine.worker.settings import WorkerSettings
from engine.worker.watchdog import ProcessId
from tests.engine.host.test_vllm_settings import QWEN


def test_a_start_changes_nothing_of_what_vllm_has_compiled(tiny_model: Path, tmp_path: Path) -> None:
    """vLLM's own hash of its configuration is that of another process with another log; a setting of its own counts."""
    config = EngineConfig(model="tiny", data_dir=tmp_path)

    def made(owner: ProcessId, name: str, **changes: int) -> tuple[str, WorkerSettings]:
        host = replace(config.host, **changes)
        args = engine_args(tiny_model, QWEN, replace(config, host=host), owner, tmp_path / name)
        found = args.create_engine_config()
        return found.compute_hash(), WorkerSettings.of(found)

    first, settings = made(ProcessId(1, 2), "a.log")
    second, others = made(ProcessId(3, 4), "b.log")
    assert first == second
    assert (settings.owner, others.owner) == (ProcessId(1, 2), ProcessId(3, 4))
    assert (settings.log_file, settings.is_cpu) == (tmp_path / "a.log", True)
    assert made(ProcessId(1, 2), "a.log", max_lora_rank=64)[0] != first
