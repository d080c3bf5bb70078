"""engine.host.start_failure: a failed start in a sentence that names the setting."""

from pathlib import Path

import pytest

from engine.host.start_failure import size_of, told


@pytest.mark.parametrize(
    ("logged", "words"),
    [
        (
            "ValueError: 1.0 GiB KV cache is needed, which is larger than the available KV cache memory",
            "KV_CACHE_BYTES",
        ),
        ("ValueError: No available memory for the cache blocks.", "HEED_HOST_MAX_MODEL_LEN"),
        ("Free memory on device cuda:0 (1/24 GiB) on startup is less", "HEED_HOST_GPU_MEMORY_UTILIZATION"),
        ("torch.OutOfMemoryError: CUDA out of memory.", "Memory ran out"),
        ("RuntimeError: DefaultCPUAllocator: can't allocate memory", "Memory ran out"),
        ("Model architectures ['X'] are not supported for now.", "HEED_MODEL"),
        ("Please pass the argument `trust_remote_code=True`", "HEED_HOST_TRUST_REMOTE_CODE"),
        ("ValueError: Failed to find a kernel that can implement the WNA16 linear layer.", "before it was quantised"),
        ("AttributeError: '_OpNamespace' '_C' object has no attribute 'cpu_gemm_wna16'", "before it was quantised"),
        ("OSError: Can't load tokenizer for 'x'.", "tokenizer cannot be loaded"),
        ("OSError: [Errno 28] No space left on device", "disk is full"),
        ("RuntimeError: Failed core proc(s): {'EngineCore': -9}", "Memory ran out"),
        ("ValueError: something new", "vLLM did not start: it failed."),
    ],
)
def test_a_known_cause_is_named_and_the_log_last(tmp_path: Path, logged: str, words: str) -> None:
    """The cause stands in the log of vLLM's child; what is not known is told in vLLM's words."""
    log = tmp_path / "vllm.log"
    log.write_text(f"started\n{logged}\n")
    said = told(RuntimeError("it failed."), log, 0)
    assert words in said
    assert said.endswith(f"Its log is {log}.")


def test_an_earlier_start_is_not_blamed(tmp_path: Path) -> None:
    """Only what this start has logged counts; a log that was begun anew is read from its beginning."""
    log = tmp_path / "vllm.log"
    assert size_of(log) == 0
    assert "it failed" in told(RuntimeError("it failed"), log, 0)
    log.write_text("CUDA out of memory\n")
    assert "Memory" not in told(RuntimeError("it failed"), log, size_of(log))
    assert "Memory" in told(RuntimeError("it failed"), log, size_of(log) + 1)
