"""engine.training.fused_model: the weights and slots of heed's own forwards."""

from pathlib import Path

import pytest
import torch
from torch import nn

from engine.config import LORA_TARGET_MODULES
from engine.training.fused_model import FusedModel
from engine.training.lean_model import LeanModel
from engine.training.llama_model import LlamaModel
from engine.training.lora_slot import LoraShape
from engine.training.model import load_base
from tests.engine.updates_of import token_ids

SHAPE = LoraShape(4, 8, tuple(sorted(LORA_TARGET_MODULES)))
KINDS = pytest.mark.parametrize("kind", [LeanModel, LlamaModel])


@KINDS
def test_a_slot_is_made_once_for_each_shape_and_role(kind: type[FusedModel], tiny_model: Path) -> None:
    """Training and scoring have values of their own."""
    model = kind(load_base(tiny_model), "tiny")
    trained, scored = model.slot(SHAPE), model.slot(SHAPE, "score")
    assert model.slot(SHAPE) is trained
    assert scored is not trained
    assert (model._known(trained).slot, model._known(scored).slot) == (trained, scored)


@KINDS
def test_the_weights_are_taken_out_of_hugging_faces_model(kind: type[FusedModel], tiny_model: Path) -> None:
    """No decoder layer is there twice."""
    base = load_base(tiny_model)
    model = kind(base, "tiny")
    assert [type(layer) for layer in base.model.layers] == [nn.Identity] * model.num_layers
    assert model.vocab_size == len(base.get_input_embeddings().weight)


@KINDS
def test_states_do_not_depend_on_what_else_is_asked(kind: type[FusedModel], tiny_model: Path) -> None:
    """Each layer's by itself are those that it has beside others, in the order of the question."""
    model = kind(load_base(tiny_model), "tiny")
    ids = torch.tensor([token_ids(9, 1), token_ids(9, 2)])
    with torch.no_grad():
        last, first = model.layer_states(ids, [model.num_layers, 1])
        assert torch.equal(model.layer_states(ids, [1])[0], first)
        assert torch.equal(model.layer_states(ids, [model.num_layers])[0], last)
    assert first.shape == last.shape == (*ids.shape, model._embedding.shape[1])
