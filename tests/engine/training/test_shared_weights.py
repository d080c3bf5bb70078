"""engine.training.shared_weights: views of vLLM's layout (tests/gpu compares vLLM's real tensors)."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from engine.training.model import load_base
from engine.training.shared_weights import served_embedding, share_weights
from tests.engine.updates_of import token_ids
from tests.tiny_architectures import CONFIGS, save_tiny_architecture

PACKED = {"qkv_proj": ["q_proj", "k_proj", "v_proj"], "gate_up_proj": ["gate_proj", "up_proj"]}

FUSED_ALREADY = {"qkv_proj": ["qkv_proj"], "gate_up_proj": ["gate_up_proj"]}  # of Phi-3


class Served(nn.Module):
    """A tree of parameters with vLLM's names: fused layers, LoRA wrappers' base_layer, a padded embedding."""

    def __init__(self, base: nn.Module, *, without: str = "nothing", as_type: torch.dtype | None = None) -> None:
        super().__init__()
        self.packed_modules_mapping = PACKED if "qkv_proj" not in str(base) else FUSED_ALREADY
        for name, value in fused(dict(base.named_parameters())).items():
            if without not in name:
                self.put(name, value.to(as_type or value.dtype))

    def put(self, name: str, value: Any) -> None:
        """Make the modules on the way to a parameter."""
        module: nn.Module = self
        *path, leaf = name.split(".")
        for part in path:
            if not hasattr(module, part):
                module.add_module(part, nn.Module())
            module = getattr(module, part)
        module.register_parameter(leaf, nn.Parameter(value, requires_grad=False))


def fused(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return a Hugging Face model's parameters as vLLM keeps them."""
    found: dict[str, Any] = {}
    parts: dict[str, list[Any]] = {}
    for name, value in parameters.items():
        module = name.split(".")[-2]
        big = next((b for b, small in PACKED.items() if module in small), None)
        if big:
            parts.setdefault(name.replace(module, f"{big}.base_layer"), []).append(value)
        elif module in ("o_proj", "down_proj"):
            found[name.replace(module, f"{module}.base_layer")] = value.clone()
        elif module == "embed_tokens":
            found[name] = torch.cat([value, torch.zeros(51, value.shape[1])])
        else:
            found[name] = value.clone()
    return found | {name: torch.cat(values) for name, values in parts.items()}


def test_the_shared_model_computes_what_a_copy_computes(tiny_model: Path) -> None:
    """A model of views gives the same logits, bit for bit."""
    base = load_base(tiny_model)
    shared = share_weights(tiny_model, Served(base))
    ids = torch.tensor([token_ids(20, 1)])
    with torch.no_grad():
        base.set_attn_implementation(shared.config._attn_implementation)
        assert torch.equal(shared(input_ids=ids).logits, base(input_ids=ids).logits)


def test_every_parameter_is_a_view_of_vllms_memory(tiny_model: Path) -> None:
    """Every parameter is a view, so the base model is in memory once."""
    served = Served(load_base(tiny_model))
    theirs = {p.untyped_storage().data_ptr() for p in served.parameters()}
    shared = share_weights(tiny_model, served)
    assert all(p.untyped_storage().data_ptr() in theirs for p in shared.parameters())
    assert not any(p.requires_grad for p in shared.parameters())


@pytest.mark.parametrize("missing", ["qkv_proj", "q_norm", "embed_tokens"])
def test_a_model_with_other_names_is_refused_by_name(tiny_model: Path, missing: str) -> None:
    """A missing tensor is refused, because half a model cannot be trained."""
    with pytest.raises(ValueError, match=missing):
        share_weights(tiny_model, Served(load_base(tiny_model), without=missing))


@pytest.mark.parametrize("name", CONFIGS)
def test_every_architecture_computes_the_same_on_shared_weights(name: str, tmp_path: Path) -> None:
    """Buffers that a model computes for itself, as rotary frequencies and Gemma's embedding scale, are there, too."""
    base = load_base(save_tiny_architecture(tmp_path, name))
    before = {key: value.clone() for key, value in base.named_parameters()}
    served = Served(base)
    shared = share_weights(tmp_path, served)
    ids = torch.tensor([token_ids(60, 1)])
    with torch.no_grad():
        base.set_attn_implementation(shared.config._attn_implementation)
        assert torch.equal(shared(input_ids=ids).logits, base(input_ids=ids).logits)
    assert all(torch.equal(value, before[key]) for key, value in shared.named_parameters())


@pytest.mark.parametrize("as_type", [torch.float8_e4m3fn, torch.int8])
def test_quantised_weights_are_refused(tiny_model: Path, as_type: torch.dtype) -> None:
    """No forward pass takes them, so it is said at once."""
    with pytest.raises(ValueError, match="quantised"):
        share_weights(tiny_model, Served(load_base(tiny_model), as_type=as_type))


def test_a_matrix_that_lies_the_other_way_round_is_refused(tiny_model: Path) -> None:
    """A kernel may want its weights transposed; their shape tells."""
    served = Served(load_base(tiny_model))
    down = served.get_submodule("model.layers.0.mlp.down_proj.base_layer")
    down.weight = nn.Parameter(down.weight.t().clone(), requires_grad=False)
    with pytest.raises(ValueError, match=r"layers\.0\.mlp\.down_proj"):
        share_weights(tiny_model, served)


def test_the_embedding_is_found_by_its_name(tiny_model: Path) -> None:
    """With the rows that vLLM has behind those of the vocabulary; a model without one has nothing to share."""
    base = load_base(tiny_model)
    found = served_embedding(Served(base))
    assert found is not None
    own = base.get_input_embeddings().weight
    assert torch.equal(found[: len(own)], own)
    assert not found.requires_grad
    assert served_embedding(Served(base, without="embed_tokens")) is None
