"""engine.host.memory: what a model needs, from its config.json."""

from dataclasses import replace
from pathlib import Path

from engine.config import EngineConfig, HostConfig
from engine.host.memory import RUNTIME_BYTES, ModelShape, memory_need

SMOLLM2 = {
    "hidden_size": 576,
    "intermediate_size": 1536,
    "max_position_embeddings": 8192,
    "num_attention_heads": 9,
    "num_hidden_layers": 30,
    "num_key_value_heads": 3,
    "tie_word_embeddings": True,
    "vocab_size": 49152,
}
SHAPE = ModelShape.of(SMOLLM2)


def test_the_figures_of_a_real_model_are_right() -> None:
    """Cache per token, weights and adapter are those of SmolLM2-135M."""
    assert SHAPE.kv_bytes_per_token(2) == 2 * 30 * 3 * 64 * 2
    assert SHAPE.num_weights == 134_479_872
    assert SHAPE.num_adapter_values(16) == 30 * 16 * (2 * 1152 + 2 * 768 + 3 * 2112)


def test_the_text_part_of_a_larger_configuration_counts() -> None:
    """Models that see pictures keep the shape of their text model below text_config."""
    assert ModelShape.of({"text_config": SMOLLM2}) == SHAPE
    few = {name: value for name, value in SMOLLM2.items() if name != "num_key_value_heads"}
    assert ModelShape.of(few).num_kv_heads == 9


def test_what_is_needed_is_the_sum_of_its_parts() -> None:
    """Four contexts in the cache, an adapter for each slot, the weights, training and the processes."""
    config = EngineConfig("m", Path("/data"))
    need = memory_need(SHAPE, config, 2, 17)
    assert need.weights == 2 * 134_479_872
    assert need.kv_cache == 4 * 8192 * SHAPE.kv_bytes_per_token(2)
    assert need.total == need.weights + need.adapters + need.training + need.kv_cache + RUNTIME_BYTES
    shorter = replace(config, host=HostConfig(max_model_len=4096))
    assert memory_need(SHAPE, shorter, 2, 17).kv_cache == need.kv_cache // 2
