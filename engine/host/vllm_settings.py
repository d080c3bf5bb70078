"""heed's settings as vLLM's: environment, logging and engine arguments.

Must run before vllm is first imported in this process; the children inherit the environment.
"""

import atexit
import json
import logging.config
import os
import re
import shutil
import tempfile
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from engine.config import EngineConfig, HostConfig
from engine.config.learning import with_fused
from engine.host import allocator
from engine.host.architectures import Trainability
from engine.host.gpu_plan import gpu_plan, require_room, with_room
from engine.host.model_shape import ModelShape
from engine.host.sizing import Sizing, free_memory, on_gpu, stored_weights
from engine.host.sizing import on_cpu as sizing_on_cpu
from engine.worker.settings import WorkerSettings
from engine.worker.watchdog import ProcessId

QUIET = {
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_OFFLINE": "1",  # by now the model lies in a local folder
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "TQDM_DISABLE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "TORCH_CPP_LOG_LEVEL": "ERROR",
    "PYTHONWARNINGS": "ignore",  # of the children: theirs are about vLLM's own code
}
LOGGING = "VLLM_LOGGING_CONFIG_PATH"  # the file that says what a process of vLLM logs, and where to
SOCKETS = "VLLM_RPC_BASE_PATH"  # the folder of the sockets that vLLM's processes meet at
CPU_ONLY = {
    "TORCHDYNAMO_DISABLE": "1",  # vLLM compiles a log-probability kernel: 14 s at the first answer, and a compiler
    # Kernels that PyTorch and oneDNN keep, by default a thousand each: one for each number of rows, .6 MB in bfloat16.
    "LRU_CACHE_CAPACITY": "64",
    "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "64",
}
ALWAYS: dict[str, Any] = {  # arguments that no setting of heed's changes
    "enable_prefix_caching": True,
    "logprobs_mode": "processed_logprobs",  # at the sampling temperature; greedy: the raw distribution
    "scheduling_policy": "priority",
    "async_scheduling": False,  # a call into the worker finds no batch half done
    "disable_log_stats": True,  # metrics labelled by adapter grow without bound
    "enable_log_requests": False,
    "use_tqdm_on_load": False,
}


def set_environment(host: HostConfig, log_file: Path) -> None:
    """In place: set the environment of vLLM and its children, and send their log to `log_file`."""
    log_file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    config_file = log_file.with_suffix(".logging.json")
    config = logging_config(host.log_level, log_file)
    config_file.write_text(json.dumps(config))
    logging.config.dictConfig(config)
    warnings.filterwarnings("ignore", module=r"vllm\.")
    os.environ.update(QUIET)
    os.environ[LOGGING] = str(config_file)
    if SOCKETS not in os.environ:
        os.environ[SOCKETS] = _folder_of_this_process()
    if not has_gpu():
        os.environ.update(CPU_ONLY)
        os.environ.update(allocator.preloads(os.environ.get("LD_PRELOAD", "")))
        os.environ.pop("VLLM_CPU_KVCACHE_SPACE", None)  # would override kv_cache_bytes


def _folder_of_this_process() -> str:
    """Return a new temporary folder that goes when this process ends: vLLM leaves its sockets where they are."""
    folder = tempfile.mkdtemp(prefix="heed-vllm-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def logging_config(level: str, log_file: Path) -> dict[str, Any]:
    """Return a logging configuration that writes vLLM's and the trainer's records to a file, not to the terminal."""
    handler = {
        "class": "logging.handlers.RotatingFileHandler",
        "filename": str(log_file),
        "maxBytes": 5_000_000,
        "backupCount": 1,
        "formatter": "plain",
        "delay": True,
    }
    logger = {"handlers": ["file"], "level": level, "propagate": False}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"plain": {"format": "%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"}},
        "handlers": {"file": handler},
        "loggers": {
            "vllm": logger,
            "engine.worker.trainer": logger,
            "engine.worker.lora_registry": logger,
            "engine.training.graphs": logger,
            "py.warnings": logger,
        },
    }


def has_gpu(dev: Path = Path("/dev")) -> bool:
    """Return True if this process can reach an NVIDIA GPU: its device file is there. Loads neither torch nor vLLM.

    The driver's folder in /proc proves nothing: a container sees the host's.
    """
    return any(dev.glob("nvidia[0-9]*"))


def cpu_dtype(model_folder: Path, cpu_info: Path = Path("/proc/cpuinfo")) -> str:
    """Return the type a CPU computes in: bfloat16 for a checkpoint of 16 bits if its cores can, else float32."""
    return cpu_dtype_of(json.loads((model_folder / "config.json").read_text(encoding="utf-8")), cpu_info)


def cpu_dtype_of(config: Mapping[str, Any], cpu_info: Path = Path("/proc/cpuinfo")) -> str:
    """Return the same for a Hugging Face model configuration. Blocking: one file."""
    checkpoint = str(config.get("dtype") or config.get("torch_dtype") or "float32")
    if checkpoint not in ("bfloat16", "float16") or not cpu_info.is_file():
        return "float32"
    flags = set(re.findall(r"\b(?:avx512_bf16|amx_bf16|bf16)\b", cpu_info.read_text(encoding="utf-8")))
    return "bfloat16" if flags else "float32"


def engine_args(
    model_folder: Path,
    trainability: Trainability,
    config: EngineConfig,
    owner: ProcessId,
    log_file: Path,
    tell: Callable[[str], None] = lambda _line: None,
) -> Any:
    """Return the AsyncEngineArgs for this machine. The children end when the process `owner` ends.

    `tell` gets a remark on the sizes, empty for none. Raises EngineStartError if they cannot work.
    """
    from vllm import AsyncEngineArgs
    from vllm.platforms import current_platform

    host = config.host
    is_cpu = current_platform.is_cpu()
    dtype = _dtype(model_folder, host, trainability, is_cpu=is_cpu)
    if is_cpu:
        sizing = sizing_on_cpu(model_folder, host, dtype, free_memory(), trainability.longest_context)
    else:
        sizing = sizing_on_gpu(model_folder, config, trainability, current_platform.get_device_total_memory())
    tell(sizing.remark)
    return AsyncEngineArgs(
        model=str(model_folder),
        served_model_name=config.model,
        trust_remote_code=host.trust_remote_code,
        dtype=dtype,
        enforce_eager=is_cpu,
        max_model_len=sizing.max_model_len,
        max_num_seqs=host.max_num_seqs,
        max_num_batched_tokens=host.max_num_batched_tokens,
        block_size=host.block_size,
        kv_cache_memory_bytes=sizing.kv_cache_bytes,
        gpu_memory_utilization=sizing.gpu_share,
        **ALWAYS,
        **_lora_args(config, trainability, is_cpu=is_cpu),
        **_worker_args(model_folder, host, owner, log_file, is_cpu=is_cpu),
    )


def _lora_args(config: EngineConfig, trainability: Trainability, *, is_cpu: bool) -> dict[str, Any]:
    host = config.host
    num_slots = host.num_slots(is_cpu=is_cpu)
    return {
        "enable_lora": trainability.can_learn,
        "max_lora_rank": host.max_lora_rank,
        "max_loras": num_slots,
        "max_cpu_loras": num_slots,  # the others are kept ready once, in the worker's registry
        "lora_target_modules": with_fused(config.learn.target_modules),
    }


def _worker_args(
    model_folder: Path, host: HostConfig, owner: ProcessId, log_file: Path, *, is_cpu: bool
) -> dict[str, Any]:
    """Return what makes vLLM's processes heed's own: `engine.worker` runs in them."""
    num_weights = ModelShape.in_folder(model_folder).num_weights
    return {
        "distributed_executor_backend": f"engine.worker.executor.{'Cpu' if is_cpu else 'Gpu'}Executor",
        "worker_extension_cls": "engine.worker.trainer.TrainerExtension",
        "additional_config": WorkerSettings(owner, host.watch_interval_s, log_file, is_cpu, num_weights),
    }


def learns_here(folder: Path, trainability: Trainability, config: EngineConfig) -> Trainability:
    """Return the same, or a model that only answers if the GPU has no room to train it. Blocking: imports vLLM."""
    from vllm.platforms import current_platform

    if current_platform.is_cpu():
        return trainability
    shape = ModelShape.in_folder(folder)
    total = current_platform.get_device_total_memory()
    return with_room(trainability, shape, config, total, stored_weights(folder))


def sizing_on_gpu(folder: Path, config: EngineConfig, trainability: Trainability, total_bytes: int) -> Sizing:
    """Return the sizes for a GPU of `total_bytes`. Blocking: one file. Raises EngineStartError if they cannot work."""
    shape = ModelShape.in_folder(folder)
    plan = gpu_plan(shape, config, total_bytes, stored_weights(folder), learns=trainability.can_learn)
    require_room(plan, shape)
    return on_gpu(config.host, plan.share, trainability.longest_context)


def _dtype(model_folder: Path, host: HostConfig, trainability: Trainability, *, is_cpu: bool) -> str:
    """Return the type of the weights, which of a quantised model is that of its scales: no CPU kernel takes float32."""
    if host.dtype != "auto" or not is_cpu:
        return host.dtype
    return cpu_dtype(model_folder) if trainability.can_learn else "bfloat16"
