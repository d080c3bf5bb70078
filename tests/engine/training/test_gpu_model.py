"""engine.training.gpu_model: the values and gradients of Hugging Face with PEFT, on whichever device."""

from pathlib import Path

import pytest
import torch

from engine.config import LORA_TARGET_MODULES
from engine.sample import Sample
from engine.training import recomputing
from engine.training.batching import plan_batches
from engine.training.gpu_model import GpuModel
from engine.training.graphs import Graphs
from engine.training.lora_slot import LoraShape
from engine.training.model import gpu_training_model, load_base
from engine.training.peft_model import PeftTrainingModel
from engine.training.shared_weights import share_weights
from tests.engine.training.test_graphs import Rerun
from tests.engine.training.test_lean_model import SHAPE, randomise
from tests.engine.training.test_llama_model import (
    CPU,
    FAMILY,
    TEXTS,
    assert_half_precision_is_as_close,
    assert_values_and_gradients_are_the_same,
    batch_of,
    states_and_gradients,
)
from tests.engine.training.test_shared_weights import Served
from tests.engine.updates_of import correction_with_company, run_update, token_ids
from tests.tiny_architectures import save_tiny_architecture


def both(folder: Path, name: str, dtype: torch.dtype = torch.float32) -> tuple[GpuModel, PeftTrainingModel]:
    """Return the two forwards of one model."""
    save_tiny_architecture(folder, name)
    return GpuModel(load_base(folder, dtype), name), PeftTrainingModel(load_base(folder, dtype), name)


@pytest.mark.parametrize("name", FAMILY)
@pytest.mark.parametrize("modules", [SHAPE.target_modules, ("q_proj", "v_proj"), ("up_proj",), ("down_proj", "o_proj")])
@pytest.mark.parametrize("texts", TEXTS.values(), ids=TEXTS)
def test_values_and_gradients_are_pefts(
    name: str, modules: tuple[str, ...], texts: tuple[tuple[int, int], ...], tmp_path: Path
) -> None:
    """Of sequences that begin alike, with an adapter on all layers or on a part of a fused one."""
    assert_values_and_gradients_are_the_same(both(tmp_path, name), modules, texts)


@pytest.mark.parametrize("texts", TEXTS.values(), ids=TEXTS)
def test_without_a_gradient_one_row_gives_the_same(texts: tuple[tuple[int, int], ...], tmp_path: Path) -> None:
    """Of one sequence, of several, of long ones."""
    models = both(tmp_path, "Qwen3")
    slots = randomise(*models)
    with torch.no_grad():
        ours, theirs = (m.hidden(slot, batch_of(*texts)) for m, slot in zip(models, slots, strict=True))
    assert torch.allclose(ours, theirs, atol=1e-4)


def test_half_precision_is_as_close_as_pefts(tmp_path: Path) -> None:
    """In bfloat16 the gradients are no further from those in float32 than Hugging Face's are."""
    exact, _ = both(tmp_path, "Qwen3")
    assert_half_precision_is_as_close(exact, both(tmp_path, "Qwen3", torch.bfloat16), batch_of(*TEXTS["together"]))


@pytest.mark.parametrize("name", FAMILY)
def test_vllms_tensors_are_used_as_they_are(name: str, tmp_path: Path) -> None:
    """Weights and biases of its fused layers, its embedding and norms: nothing is there twice, and values are right."""
    base = load_base(save_tiny_architecture(tmp_path, name))
    served = Served(base)
    model, reference = GpuModel(share_weights(tmp_path, served), name), PeftTrainingModel(base, name)
    theirs = {weight.untyped_storage().data_ptr() for weight in served.parameters()}
    layers = [fused for layer in model._layers for fused in layer.fused.values()]
    tensors = [*(fused.weight for fused in layers), *(fused.bias for fused in layers if fused.bias is not None)]
    assert len(tensors) == model.num_layers * (6 if name == "Qwen2" else 5)
    assert all(tensor.untyped_storage().data_ptr() in theirs for tensor in [*tensors, model._embedding, model._head])
    with torch.no_grad():
        ours, wanted = (each.hidden(None, batch_of(*TEXTS["together"])) for each in (model, reference))
    assert torch.allclose(ours, wanted, atol=1e-4)


@pytest.mark.parametrize("name", FAMILY)
def test_states_behind_layers_are_hugging_faces(name: str, tmp_path: Path) -> None:
    """Of padded sequences, as the reader of feedback asks for them; those of the last layer are normed."""
    ours, theirs = both(tmp_path, name)
    ids = torch.tensor([token_ids(12, 1), token_ids(12, 2)])
    with torch.no_grad():
        pairs = zip(ours.layer_states(ids, [1, 4]), theirs.layer_states(ids, [1, 4]), strict=True)
        assert all(torch.allclose(mine, reference, atol=1e-4) for mine, reference in pairs)


def test_passes_are_the_same_as_graphs(tmp_path: Path) -> None:
    """Of texts whose filled-up rows have one shape, also when the slot's values have changed in between."""
    save_tiny_architecture(tmp_path, "Qwen3")
    models = [GpuModel(load_base(tmp_path), "Qwen3", graphs) for graphs in (None, Graphs(Rerun))]
    slots = randomise(*models)
    for texts in ((4, 7),), ((5, 9), (8, 3)), ((6, 7), (8, 5)), ((40, 70),), ((1, 2),):
        batch = batch_of(*texts)
        found = [states_and_gradients(model, slot, batch) for model, slot in zip(models, slots, strict=True)]
        assert torch.allclose(found[0][0], found[1][0], atol=1e-5)
        assert all(torch.allclose(found[0][1][key], found[1][1][key], atol=1e-4) for key in found[0][1])
        with torch.no_grad():
            for slot in slots:
                slot.flat.mul_(1.1)
            looks = [model.hidden(slot, batch) for model, slot in zip(models, slots, strict=True)]
        assert torch.allclose(*looks, atol=1e-5)


def test_a_whole_update_is_the_same_with_graphs(tmp_path: Path) -> None:
    """Ten steps, most of them replayed."""
    save_tiny_architecture(tmp_path, "Qwen3")
    runs = [
        run_update(GpuModel(load_base(tmp_path), "Qwen3", graphs), correction_with_company(), steps=10)
        for graphs in (None, Graphs(Rerun))
    ]
    assert runs[0].measured.losses == pytest.approx(runs[1].measured.losses, rel=1e-4)
    assert runs[0].update_norm == pytest.approx(runs[1].update_norm, rel=1e-4)


def test_a_prompt_of_one_token_is_answered(tmp_path: Path) -> None:
    """Nothing is read before its answer."""
    models = both(tmp_path, "Qwen3")
    slots = randomise(*models)
    (batch,) = plan_batches([Sample("correction", [7], [7], token_ids(5, 1))], [0], "student", 100, CPU)
    (ours, _), (theirs, _) = (states_and_gradients(m, slot, batch) for m, slot in zip(models, slots, strict=True))
    assert torch.allclose(ours, theirs, atol=1e-4)


@pytest.mark.parametrize("texts", TEXTS.values(), ids=TEXTS)
def test_what_is_computed_again_has_the_same_gradients(
    texts: tuple[tuple[int, int], ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each layer keeps its input alone where a step would keep too much."""
    found = []
    for limit in (1 << 30, 0):
        monkeypatch.setattr(recomputing, "KEPT_ON_CPU", limit)
        model, _ = both(tmp_path, "Qwen3")
        (slot,) = randomise(model)
        found.append(states_and_gradients(model, slot, batch_of(*texts)))
    (kept, kept_gradients), (again, again_gradients) = found
    assert torch.equal(kept, again)
    assert all(torch.equal(kept_gradients[key], again_gradients[key]) for key in kept_gradients)


def test_a_whole_update_is_the_same_in_both(tmp_path: Path) -> None:
    """Ten steps from the same seed give the same losses and the same adapter to rounding."""
    runs = [run_update(model, correction_with_company(), steps=10) for model in both(tmp_path, "Qwen3")]
    assert runs[0].measured.losses == pytest.approx(runs[1].measured.losses, rel=1e-3)
    assert runs[0].update_norm == pytest.approx(runs[1].update_norm, rel=1e-3)


def test_the_base_is_left_alone_and_zero_is_the_base(tmp_path: Path) -> None:
    """Before and after an update, and with an adapter whose values are zero."""
    model, _ = both(tmp_path, "Llama")
    batch = batch_of((5, 6), (30, 20))
    zero = model.slot(LoraShape.of(model.zero_adapter(LORA_TARGET_MODULES).config))
    with torch.no_grad():
        before = model.hidden(None, batch)
        assert torch.allclose(model.hidden(zero, batch), before, atol=1e-5)
    run_update(model, correction_with_company(), steps=2)
    with torch.no_grad():
        assert torch.equal(model.hidden(None, batch), before)


@pytest.mark.parametrize(
    ("name", "forward"), [("Llama", GpuModel), ("Gemma 2", PeftTrainingModel), ("Phi-3", PeftTrainingModel)]
)
def test_others_are_left_to_hugging_face(name: str, forward: type, tmp_path: Path) -> None:
    """The family is computed by this forward, what it does not know by Hugging Face's."""
    save_tiny_architecture(tmp_path, name)
    assert isinstance(gpu_training_model(load_base(tmp_path), name), forward)
