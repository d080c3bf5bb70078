"""Settings of vLLM and its watching: every default once, with its unit and its source."""

from dataclasses import dataclass

from engine.config.checks import require, require_range

CPU_CACHE_BYTES, GPU_CACHE_BYTES = 16 << 20, 2 << 30
VLLM_LORA_RANKS = (8, 16, 32, 64, 128, 256, 320, 512)  # the ranks vLLM 0.32 can allocate slots for


@dataclass(frozen=True)
class HostConfig:
    """How vLLM is built and watched."""

    max_model_len: int | None = None  # tokens of prompt and answer together; None: the model's own; LongRoPE: its first
    max_num_seqs: int = 16  # answers decoded at once
    max_num_batched_tokens: int = 2048  # tokens of one forward pass, prefill included
    block_size: int = 32  # tokens of one prefix-cache block; vLLM's CPU kernels want a multiple of 32
    kv_cache_bytes: int | None = None  # None: four whole contexts on a CPU, vLLM's own profile on a GPU
    max_lora_rank: int = 32  # the rank every adapter slot is padded to: the highest that is served (as in CLaaS)
    adapter_cache_bytes: int | None = None  # of host memory, for adapters kept ready; None: 16 MiB on a CPU, else 2 GiB
    max_loras_gpu: int = 8  # adapter slots in GPU memory: 174 MB each for an 8B model at rank 32
    dtype: str = "auto"  # "auto": float32 on a CPU, the checkpoint's own type on a GPU
    gpu_memory_utilization: float | None = None  # share of GPU memory for vLLM; None: 0.85, less if training needs more
    trust_remote_code: bool = False  # code shipped with a model runs only when the operator says so
    start_timeout_s: float = 600.0  # a large model may need minutes to load
    rpc_timeout_s: float = 120.0  # longest single call into the worker; a healthy one takes milliseconds
    watch_interval_s: float = 1.0  # how often the children check that their parent still lives
    max_restarts: int = 5  # within restart_window_s; more means the model cannot run here
    restart_window_s: float = 600.0
    busy_budget_ms: float = 25.0  # longest call into the worker while a stream is being read; one piece may exceed it
    idle_budget_ms: float = 250.0  # the same while none is
    log_level: str = "WARNING"  # of vLLM and its children
    teacher_model: str = ""  # a model folder with the same tokenizer, for learn.teacher "external"; empty: none

    def num_slots(self, *, is_cpu: bool) -> int:
        """Return the adapters that one batch may use: on a CPU one for each stream, and the base model's."""
        return self.max_num_seqs + 1 if is_cpu else self.max_loras_gpu

    def cache_bytes(self, *, is_cpu: bool) -> int:
        """Return the bytes for adapters kept ready: files of theirs that were read lately are in memory anyway."""
        return self.adapter_cache_bytes or (CPU_CACHE_BYTES if is_cpu else GPU_CACHE_BYTES)

    def __post_init__(self) -> None:
        """Refuse values that vLLM would reject only after the model has been loaded."""
        require_range("host.max_num_seqs", self.max_num_seqs, 1, 1024)
        require_range("host.max_num_batched_tokens", self.max_num_batched_tokens, 64, 1 << 20)
        require(self.block_size in (16, 32, 64, 128), f"host.block_size is {self.block_size}: use 16, 32, 64 or 128")
        require(
            self.max_lora_rank in VLLM_LORA_RANKS,
            f"host.max_lora_rank is {self.max_lora_rank}: use one of {VLLM_LORA_RANKS}",
        )
        if self.adapter_cache_bytes is not None:
            require_range("host.adapter_cache_bytes", self.adapter_cache_bytes, 1 << 20, 1 << 40)
        if self.gpu_memory_utilization is not None:
            require_range("host.gpu_memory_utilization", self.gpu_memory_utilization, 0.05, 0.98)
        require_range("host.watch_interval_s", self.watch_interval_s, 0.05, 8.0)
