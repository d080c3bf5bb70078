"""engine.host.model_shape: a model's figures, from its config.json."""

from engine.host.model_shape import UNTOLD_CONTEXT, ModelShape

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


def test_a_token_takes_its_keys_and_values() -> None:
    """Of every layer; grouped heads count once, and heads of a size of their own with that."""
    wide = ModelShape.of(SMOLLM2 | {"head_dim": 128})
    assert wide.kv_bytes_per_token(2) == 2 * SHAPE.kv_bytes_per_token(2)
    assert SHAPE.kv_bytes_per_token(4) == 2 * SHAPE.kv_bytes_per_token(2)


def test_a_model_without_a_limit_has_a_context_all_the_same() -> None:
    """Older configurations do not tell theirs."""
    untold = {name: value for name, value in SMOLLM2.items() if name != "max_position_embeddings"}
    assert ModelShape.of(untold).context_tokens == UNTOLD_CONTEXT
