"""engine.host.memory: what a model needs, from its config.json."""

from dataclasses import replace
from pathlib import Path

from engine.config import EngineConfig, HostConfig
from engine.host.memory import RUNTIME_BYTES, memory_need
from tests.engine.host.test_model_shape import SHAPE


def test_what_is_needed_is_the_sum_of_its_parts() -> None:
    """Four contexts in the cache, an adapter for each slot, the weights, training and the processes."""
    config = EngineConfig("m", Path("/data"))
    need = memory_need(SHAPE, config, 2, 17)
    assert need.weights == 2 * 134_479_872
    assert need.kv_cache == 4 * 8192 * SHAPE.kv_bytes_per_token(2)
    assert need.total == need.weights + need.adapters + need.training + need.kv_cache + RUNTIME_BYTES
    shorter = replace(config, host=HostConfig(max_model_len=4096))
    assert memory_need(SHAPE, shorter, 2, 17).kv_cache == need.kv_cache // 2
