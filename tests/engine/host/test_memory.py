"""engine.host.memory: what a model needs, from its config.json."""

from dataclasses import replace
from pathlib import Path

from engine.config import EngineConfig, HostConfig
from engine.host.memory import RUNTIME_BYTES, memory_need
from tests.engine.host.test_model_shape import SHAPE


def test_what_is_needed_is_the_sum_of_its_parts() -> None:
    """Four contexts in the cache, an adapter for each slot, the weights, training and the processes."""
    config = EngineConfig("m", Path("/data"))
    need = memory_need(SHAPE, config, 2, 17, is_cpu=False)
    assert need.weights == 2 * 134_479_872
    assert need.kv_cache == 4 * 8192 * SHAPE.kv_bytes_per_token(2)
    assert need.total == need.weights + need.adapters + need.training + need.kv_cache + RUNTIME_BYTES
    shorter = replace(config, host=HostConfig(max_model_len=4096))
    assert memory_need(SHAPE, shorter, 2, 17, is_cpu=False).kv_cache == need.kv_cache // 2


def test_a_cpu_has_its_weights_twice_and_adapters_at_the_rank_that_is_trained() -> None:
    """vLLM packs the weights for its products, and writes adapters where they are multiplied; the rest stays."""
    config = EngineConfig("m", Path("/data"))
    on_gpu, on_cpu = (memory_need(SHAPE, config, 4, 17, is_cpu=is_cpu) for is_cpu in (False, True))
    assert on_cpu.weights == 2 * on_gpu.weights
    assert on_cpu.adapters == 17 * 4 * SHAPE.num_adapter_values(config.learn.lora_rank)
    assert on_gpu.adapters == 17 * 4 * SHAPE.num_adapter_values(config.host.max_lora_rank)
    assert (on_cpu.training, on_cpu.kv_cache) == (on_gpu.training, on_gpu.kv_cache)
