"""engine.training.prompt_cache: what is read once, and shown to every pass behind it."""

from pathlib import Path

import torch

from engine.training.model import load_base
from engine.training.prompt_cache import PromptCache
from tests.engine.updates_of import token_ids


def test_a_fixed_cache_is_shown_and_never_changed(tiny_model: Path) -> None:
    """Two passes behind the same prompt say the same, as one that goes through prompt and answer does."""
    model = load_base(tiny_model).base_model
    prompt, answer = torch.tensor([token_ids(9, 1)]), torch.tensor([token_ids(4, 2)])
    cache = PromptCache(model.config)
    with torch.no_grad():
        model(prompt, past_key_values=cache, use_cache=True)
        cache.fixed()
        first, second = (model(answer, past_key_values=cache, use_cache=True).last_hidden_state for _ in range(2))
        whole = model(torch.cat([prompt, answer], dim=1), use_cache=False).last_hidden_state
    assert torch.equal(first, second)
    assert cache.get_seq_length() == 9
    assert torch.allclose(first, whole[:, 9:], atol=1e-4)


def test_nothing_was_read_before_a_prompt_of_one_token(tiny_model: Path) -> None:
    """An empty cache that is fixed shows what a pass adds, and nothing else."""
    cache = PromptCache(load_base(tiny_model).config).fixed()
    keys, values = torch.ones(1, 2, 3, 4), torch.zeros(1, 2, 3, 4)
    assert [torch.equal(*pair) for pair in zip(cache.update(keys, values, 0), (keys, values), strict=True)] == [
        True
    ] * 2
    assert cache.get_seq_length() == 0
