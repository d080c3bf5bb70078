"""engine.host.sizing: room for whole conversations, or a sentence that says what to set."""

import json
from pathlib import Path

import pytest

from engine.config import HostConfig
from engine.errors import EngineStartError
from engine.host import sizing
from tests.engine.host.test_model_shape import SMOLLM2 as SMALL

LONG = SMALL | {"max_position_embeddings": 131_072}
TOKEN = 2 * 30 * 3 * 64 * 2  # bytes in bfloat16
MUCH = 64 << 30


def folder(tmp_path: Path, **more: int) -> Path:
    """Return a folder with a model's configuration."""
    (tmp_path / "config.json").write_text(json.dumps(SMALL | {"max_position_embeddings": 8192} | more))
    return tmp_path


def test_there_is_room_for_four_whole_contexts(tmp_path: Path) -> None:
    """Where memory allows."""
    found = sizing.on_cpu(folder(tmp_path), HostConfig(), "bfloat16", MUCH)
    assert (found.kv_cache_bytes, found.max_model_len, found.remark) == (4 * 8192 * TOKEN, 8192, "")


def test_a_very_long_context_is_cut(tmp_path: Path) -> None:
    """A CPU would read it for minutes; who wants it says so."""
    path = folder(tmp_path, max_position_embeddings=131_072)
    assert sizing.on_cpu(path, HostConfig(), "bfloat16", MUCH).max_model_len == sizing.LONGEST_CPU_CONTEXT
    assert sizing.on_cpu(path, HostConfig(max_model_len=16_384), "bfloat16", MUCH).max_model_len == 16_384


def test_little_memory_shortens_the_context_and_says_so(tmp_path: Path) -> None:
    """The remark names both settings; four of the shorter contexts fit."""
    found = sizing.on_cpu(folder(tmp_path), HostConfig(), "bfloat16", 2 << 30)
    assert found.max_model_len is not None
    assert found.kv_cache_bytes is not None
    assert 512 <= found.max_model_len < 8192
    assert found.kv_cache_bytes >= 4 * found.max_model_len * TOKEN
    assert "HEED_HOST_MAX_MODEL_LEN" in found.remark
    assert "HEED_HOST_KV_CACHE_BYTES" in found.remark


def test_what_the_operator_set_is_kept(tmp_path: Path) -> None:
    """The cache, the context, or both."""
    host = HostConfig(kv_cache_bytes=1 << 30, max_model_len=2048)
    found = sizing.on_cpu(folder(tmp_path), host, "bfloat16", MUCH)
    assert (found.kv_cache_bytes, found.max_model_len, found.remark) == (1 << 30, 2048, "")
    only_cache = sizing.on_cpu(folder(tmp_path), HostConfig(kv_cache_bytes=100 << 20), "bfloat16", MUCH)
    assert only_cache.kv_cache_bytes == 100 << 20
    assert "HEED_HOST_KV_CACHE_BYTES" in only_cache.remark


def test_on_a_gpu_conversations_are_as_long_as_fits() -> None:
    """Unless the operator or the model sets less; the cache is vLLM's own choice."""
    free = sizing.on_gpu(HostConfig(), 0.75)
    assert (free.gpu_share, free.max_model_len, free.kv_cache_bytes) == (0.75, sizing.AS_LONG_AS_FITS, None)
    assert sizing.on_gpu(HostConfig(max_model_len=2048), 0.9, 4096).max_model_len == 2048
    assert sizing.on_gpu(HostConfig(), 0.85, 4096).max_model_len == 4096


def test_weights_that_do_not_fit_are_refused_before_they_are_loaded(tmp_path: Path) -> None:
    """The sentence says how much is missing; a checkpoint that is smaller as a file is held to its file."""
    path = folder(tmp_path)
    with (path / "model.safetensors").open("wb") as weights:
        weights.truncate(400 << 20)  # takes no room on the disk
    with pytest.raises(EngineStartError, match=r"need 256 MB of memory and 200 MB are free.*HEED_MODEL to a smaller"):
        sizing.on_cpu(path, HostConfig(), "bfloat16", 200 << 20)
    with (path / "model.safetensors").open("wb") as weights:
        weights.truncate(100 << 20)
    assert sizing.on_cpu(path, HostConfig(), "bfloat16", 200 << 20).remark != ""


@pytest.mark.parametrize(
    ("host", "free"),
    [
        (HostConfig(kv_cache_bytes=1 << 20), MUCH),
        (HostConfig(kv_cache_bytes=100 << 20, max_model_len=8192), MUCH),
        (HostConfig(max_model_len=65_536), 1 << 30),
    ],
)
def test_what_cannot_work_is_refused_by_name(tmp_path: Path, host: HostConfig, free: int) -> None:
    """In one sentence with a value that would do, before vLLM is started."""
    with pytest.raises(EngineStartError, match="HEED_HOST_MAX_MODEL_LEN"):
        sizing.on_cpu(folder(tmp_path), host, "bfloat16", free)


def test_free_memory_is_the_container_s_if_that_is_less(tmp_path: Path) -> None:
    """And the machine's without a limit."""
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal: 9 kB\nMemAvailable:    8388608 kB\n")
    assert sizing.free_memory(meminfo, tmp_path) == 8 << 30
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text(f"{1 << 30}\n")
    assert sizing.free_memory(meminfo, tmp_path) == 8 << 30
    (tmp_path / "memory.max").write_text(f"{3 << 30}\n")
    assert sizing.free_memory(meminfo, tmp_path) == 2 << 30
