"""engine.training.pooling: the base model's states of texts, pooled."""

from pathlib import Path

import pytest
import torch

from engine.sample import Passage
from engine.training import pooling
from engine.training.lean_model import LeanModel
from engine.training.llama_model import LlamaModel
from engine.training.model import TrainingModel, load_base
from engine.training.peft_model import PeftTrainingModel
from engine.training.pooling import pooled_states
from tests.engine.updates_of import correction_with_company, run_update, token_ids

PASSAGES = [Passage(token_ids(9, 1), 2, 5), Passage(token_ids(30, 2), 0, 30), Passage(token_ids(4, 3), 3, 4)]
DEPTHS = (0.2, 0.6, 1.0)


@pytest.fixture(params=[LeanModel, LlamaModel, PeftTrainingModel])
def model(request: pytest.FixtureRequest, tiny_model: Path) -> TrainingModel:
    """A tiny model in each of the implementations."""
    loaded: TrainingModel = request.param(load_base(tiny_model), "tiny")
    return loaded


def test_states_are_hugging_faces(model: TrainingModel, tiny_model: Path) -> None:
    """The mean over the span, then the last token, behind the layer at each depth; the last layer's are normed."""
    found = pooled_states(model, PASSAGES, DEPTHS)
    base = load_base(tiny_model)
    layers = [max(1, round(model.num_layers * depth)) for depth in DEPTHS]
    assert model.num_layers == base.config.num_hidden_layers
    for passage, states in zip(PASSAGES, found, strict=True):
        with torch.no_grad():
            hidden = base.model(torch.tensor([passage.token_ids]), output_hidden_states=True).hidden_states
        for layer, state in zip(layers, states, strict=True):
            wanted = torch.cat([hidden[layer][0, passage.first : passage.end].mean(0), hidden[layer][0, -1]])
            assert torch.allclose(state, wanted, atol=1e-4)


def test_the_company_of_a_text_changes_nothing(model: TrainingModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """Alone or padded to a longer one, a text has the same states to rounding, in its own place."""
    together = pooled_states(model, PASSAGES, DEPTHS)
    monkeypatch.setattr(pooling, "BUDGET_TOKENS", 1)
    assert torch.allclose(pooled_states(model, PASSAGES, DEPTHS), together, atol=1e-4)


def test_an_adapter_in_training_changes_nothing(model: TrainingModel) -> None:
    """States are the base model's, also while an update is open."""
    before = pooled_states(model, PASSAGES, DEPTHS)
    run_update(model, correction_with_company())
    after = pooled_states(model, PASSAGES, DEPTHS)
    assert torch.allclose(before, after, atol=1e-5)
    assert not after.requires_grad
