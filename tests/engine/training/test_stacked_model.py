"""engine.training.stacked_model: the models that are computed, and adapters beside their layers."""

from pathlib import Path

import pytest
import torch

from engine.training.llama_model import LlamaModel
from engine.training.lora_slot import LoraShape
from engine.training.model import load_base
from engine.training.stacked_model import can_compute
from tests.tiny_architectures import CONFIGS, save_tiny_architecture


@pytest.mark.parametrize(
    ("name", "can"),
    [
        ("Llama", True),
        ("Qwen2", True),
        ("Qwen3", True),
        ("Phi-3", False),
        ("Gemma 2", False),
        ("Gemma 3 (text only)", False),
    ],
)
def test_only_the_family_is_computed(name: str, can: bool) -> None:
    """Others have fused layers, windows, soft-capping or norms of another formula."""
    assert can_compute(CONFIGS[name](vocab_size=100)) == can


def test_a_window_is_left_to_hugging_face() -> None:
    """It would cut what a packed row sees; one that is not in use does not count."""
    config = CONFIGS["Mistral"](vocab_size=100)
    assert not can_compute(config)
    config.sliding_window = None
    assert can_compute(config)
    config.hidden_act = "gelu"
    assert not can_compute(config)


def test_an_adapter_follows_its_slot(tmp_path: Path) -> None:
    """A change of the slot's values is what the next forward pass computes with; without one nothing is copied."""
    save_tiny_architecture(tmp_path, "Llama")
    model = LlamaModel(load_base(tmp_path), "Llama")
    slot = model.slot(LoraShape(4, 8, ("o_proj", "v_proj")))
    slot.load_fresh(1)
    loras, anchor = model._loras(slot)
    assert anchor is slot.flat
    lora = loras[0]["qkv"]
    assert lora is not None
    assert torch.equal(lora.b, torch.zeros_like(lora.b))
    with torch.no_grad():
        slot.flat.add_(1.0)
    model._loras(slot)
    assert float(lora.b.sum()) == lora.b.shape[1] * 64  # the rows of values: two heads of 32
    lora.b.zero_()
    model._loras(slot)
    assert float(lora.b.sum()) == 0.0
