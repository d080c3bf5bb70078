"""Models of random weights, and what stands around them."""

from pathlib import Path

import torch
from transformers import Qwen3Config

from bench.gpu import shape
from engine.host.model_shape import ModelShape
from engine.prompts.builder import PromptBuilder
from engine.training.model import load_base, load_tokenizer

CPU = torch.device("cpu")
TINY = Qwen3Config(
    vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
    num_key_value_heads=1, head_dim=16, max_position_embeddings=256, tie_word_embeddings=False,
)  # fmt: skip


def test_the_published_shape_has_eight_billion_weights() -> None:
    """As its makers count them, norms left out."""
    assert round(ModelShape.of(shape.qwen3_8b().to_dict()).num_weights / 1e9, 1) == 8.2


def test_a_random_model_is_a_folder_like_any_other(tmp_path: Path) -> None:
    """Its words are those of its vocabulary, each a row; what it does not know is one of them."""
    folder = shape.save_random(TINY, tmp_path / "model", CPU)
    tokenizer = load_tokenizer(folder)
    assert len(tokenizer) == TINY.vocab_size
    ids = PromptBuilder(tokenizer, 256).prompt_token_ids([{"role": "user", "content": "w1 elephants"}])
    assert max(ids) < TINY.vocab_size
    assert tokenizer.unk_token_id in ids
    assert load_base(folder, torch.bfloat16)(torch.tensor([ids])).logits.isfinite().all()


def test_a_named_folder_is_measured_as_it_is(tiny: Path) -> None:
    """In the type that a GPU computes in, frozen."""
    base = shape.base_model(str(tiny), CPU)
    assert {p.dtype for p in base.parameters()} == {torch.bfloat16}
    assert not any(p.requires_grad for p in base.parameters())
    assert shape.config_of(str(tiny)).hidden_size == 128


def test_random_weights_are_frozen() -> None:
    """And of the wanted type."""
    base = shape.random_model(TINY, CPU)
    assert {(p.dtype, p.requires_grad) for p in base.parameters()} == {(torch.bfloat16, False)}
