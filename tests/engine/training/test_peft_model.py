"""engine.training.peft_model: slots, views and gradients (test_lean_model compares the numbers)."""

from pathlib import Path

import pytest
import torch
from torch import Tensor
from transformers import AutoModelForCausalLM

from engine.config import LORA_TARGET_MODULES
from engine.sample import Sample
from engine.training.batching import plan_batches
from engine.training.lora_slot import LoraShape
from engine.training.model import load_base
from engine.training.peft_model import PeftTrainingModel
from tests.engine.updates_of import correction_with_company, run_update, sample, token_ids
from tests.tiny_architectures import CONFIGS, save_tiny_architecture

SIDES = ("q_proj", "k_proj", "v_proj")
SHAPE = LoraShape(8, 16, tuple(sorted(LORA_TARGET_MODULES)))


@pytest.fixture
def model(tiny_model: Path) -> PeftTrainingModel:
    """Return a fresh model for each test."""
    return PeftTrainingModel(load_base(tiny_model), "tiny")


def test_pefts_parameters_are_views_of_the_slot(model: PeftTrainingModel) -> None:
    """Changing the slot changes the forward pass; a backward pass fills the slot's gradient."""
    slot = model.slot(SHAPE)
    slot.load_fresh(1)
    (batch,) = plan_batches([sample()], [0], "student", 10_000, model.device)
    before = model.hidden(slot, batch).detach()
    with torch.no_grad():
        slot.flat.add_(0.05)
    after = model.hidden(slot, batch)
    assert not torch.allclose(before, after, atol=1e-2)
    after.sum().backward()
    assert slot.grad.abs().sum() > 0


def test_slots_do_not_see_each_other(model: PeftTrainingModel) -> None:
    """Slots of two shapes and two roles used in turn do not mix, and the base is found again in between."""
    (batch,) = plan_batches([sample()], [0], "student", 10_000, model.device)
    with torch.no_grad():
        base = model.hidden(None, batch)
        slots = [model.slot(SHAPE), model.slot(SHAPE, "score"), model.slot(LoraShape(4, 8, ("q_proj",)))]
        for i, slot in enumerate(slots):
            slot.load_fresh(i)
            slot.flat.add_(0.02 * (i + 1))
        first = [model.hidden(slot, batch) for slot in slots]
        assert torch.equal(model.hidden(None, batch), base)
        second = [model.hidden(slot, batch) for slot in slots]
    for a, b in zip(first, second, strict=True):
        assert torch.equal(a, b)
        assert not torch.allclose(a, base)
    assert not torch.allclose(first[0], first[1])


def test_the_base_works_before_any_slot_was_made(model: PeftTrainingModel) -> None:
    """The base model is computed before any slot was made."""
    (batch,) = plan_batches([sample()], [0], "student", 10_000, model.device)
    assert model.hidden(None, batch).shape == (12, 128)


def test_an_update_trains_and_leaves_the_base_weights_alone(model: PeftTrainingModel) -> None:
    """Training leaves every base parameter bit for bit as it was."""
    before = {name: p.clone() for name, p in model.base.named_parameters()}
    run = run_update(model, correction_with_company(), steps=2)
    assert run.update_norm > 0
    after = {name.replace(".base_layer", ""): p for name, p in model.base.named_parameters() if ".lora_" not in name}
    assert all(torch.equal(after[name], p) for name, p in before.items())


def test_the_zero_adapter_is_zero(model: PeftTrainingModel) -> None:
    """The zero adapter has tensors on all modules, under PEFT's names."""
    zero = model.zero_adapter(LORA_TARGET_MODULES)
    assert len(zero.tensors) == 2 * 7 * 4
    assert not any(t.any() for t in zero.tensors.values())
    assert "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight" in zero.tensors


@pytest.mark.parametrize("name", CONFIGS)
def test_every_architecture_is_computed_as_hugging_face_computes_it(name: str, tmp_path: Path) -> None:
    """Windows, soft-capping, scaled embeddings and partial rotation: the log-probabilities are the reference's."""
    folder = save_tiny_architecture(tmp_path, name)
    prompt, response = token_ids(40, 1), token_ids(20, 2)
    reference = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32).eval()
    model = PeftTrainingModel(load_base(folder), name)
    (batch,) = plan_batches([Sample("correction", prompt, prompt, response)], [0], "student", 10_000, model.device)
    with torch.no_grad():
        ours = model.logits(model.hidden(None, batch)).log_softmax(-1)
        theirs = reference(torch.tensor([prompt + response])).logits[0, len(prompt) - 1 : -1].log_softmax(-1)
    assert (ours - theirs).abs().max() < 1e-4
    assert theirs.exp().max() > 0.05  # far from uniform, so that a difference would show


@pytest.mark.parametrize("name", CONFIGS)
def test_packed_sequences_have_the_numbers_and_gradients_of_padded_ones(name: str, tmp_path: Path) -> None:
    """Side by side, with a common beginning, each sequence is computed as by itself; a short window forbids it."""
    model = PeftTrainingModel(load_base(save_tiny_architecture(tmp_path, name)), name)
    slot = model.slot(SHAPE)
    slot.load_fresh(1)
    with torch.no_grad():
        slot.flat.add_(0.02)
    start, found = token_ids(6, 9), []
    for size in (4, 30):  # within every window, and beyond some
        prompts = [start + token_ids(size + i, i) for i in range(3)]
        samples = [Sample("correction", p, p, token_ids(5 + i, i + 50)) for i, p in enumerate(prompts)]
        for budget in (10_000, 1):
            slot.grad.zero_()
            batches = plan_batches(samples, range(3), "student", budget, model.device)
            hidden = torch.cat([model.hidden(slot, batch) for batch in batches])
            (hidden * torch.linspace(-1, 1, hidden.numel()).view_as(hidden)).sum().backward()
            found.append((hidden.detach(), slot.grad.clone()))
            assert model._can_pack(batches[0]) == (name != "Gemma 2" and (size == 4 or model._window > 40))
    for together, alone in (found[:2], found[2:]):
        assert torch.allclose(together[0], alone[0], atol=1e-4)
        assert torch.allclose(together[1], alone[1], atol=1e-3 * float(alone[1].abs().max()))


def test_a_gradient_goes_through_the_response_positions_alone(tmp_path: Path) -> None:
    """As in one whole forward in which nothing that a prompt's tokens make of themselves has a gradient."""
    model = PeftTrainingModel(load_base(save_tiny_architecture(tmp_path, "Llama")), "Llama")
    slot = model.slot(SHAPE)
    slot.load_fresh(1)
    with torch.no_grad():
        slot.flat.add_(0.02)
    prompt = token_ids(9, 1)
    batch = plan_batches([Sample("correction", prompt, prompt, token_ids(6, 2))], [0], "student", 99, model.device)[0]
    model.hidden(slot, batch).square().sum().backward()
    found = slot.grad.clone()
    slot.grad.zero_()

    def hold(_module: object, _given: object, out: Tensor) -> Tensor:
        return torch.cat([out[:, :8].detach(), out[:, 8:]], dim=1)

    layers = model.base.base_model.layers
    held = [layer.register_forward_hook(hold) for layer in layers]
    held += [layer.self_attn.get_submodule(name).register_forward_hook(hold) for layer in layers for name in SIDES]
    states = model.base.base_model(batch.input_ids_BL, use_cache=False).last_hidden_state[0, batch.rows_N]
    for hook in held:
        hook.remove()
    states.square().sum().backward()
    assert found.abs().sum() > 0
    assert torch.allclose(found, slot.grad, atol=1e-4 * float(found.abs().max()))


@pytest.mark.parametrize("name", CONFIGS)
def test_every_architecture_is_trained_on_all_its_linear_layers(name: str, tmp_path: Path) -> None:
    """A lesson lowers the divergence, and no linear layer is left out, also where one holds several."""
    model = PeftTrainingModel(load_base(save_tiny_architecture(tmp_path, name)), name)
    run = run_update(model, correction_with_company(), steps=4)
    assert run.measured.divergence_after < run.measured.divergence_before
    per_layer = 4 if name == "Phi-3" else 7
    changed = [key for key, value in run.slot.export().tensors.items() if ".lora_B." in key and value.any()]
    assert len(changed) == per_layer * 4
    zero = model.zero_adapter(LORA_TARGET_MODULES)
    assert set(zero.tensors) == set(run.slot.parameters)


def test_a_part_of_a_fused_layer_gets_the_whole_layer(tmp_path: Path) -> None:
    """Phi-3 has query, key and value in one: an adapter wanted on one of them sits on that layer, by its name."""
    model = PeftTrainingModel(load_base(save_tiny_architecture(tmp_path, "Phi-3")), "phi")
    slot = model.slot(LoraShape(4, 8, ("down_proj", "q_proj")))
    assert slot.config["target_modules"] == ["down_proj", "qkv_proj"]
    assert model.slot(LoraShape.of(slot.config)) is slot


def test_a_layer_that_the_model_lacks_is_refused(model: PeftTrainingModel) -> None:
    """An adapter is never made on fewer layers than it was asked for."""
    with pytest.raises(ValueError, match="no linear layers named qkv_proj"):
        model.slot(LoraShape(4, 8, ("qkv_proj", "o_proj")))


def test_what_is_peculiar_to_an_architecture_shows_in_the_numbers(tmp_path: Path) -> None:
    """The comparison above would notice a forward pass that forgot Gemma 2's soft-capping, or its windows."""
    folder = save_tiny_architecture(tmp_path, "Gemma 2")
    ids = torch.tensor([token_ids(60, 1)])
    with torch.no_grad():
        right = load_base(folder)(ids).logits.log_softmax(-1)
        for forgotten in (
            {"attn_logit_softcapping": None},
            {"final_logit_softcapping": None},
            {"sliding_window": 1000},
        ):
            other = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager", **forgotten).eval()
            assert (other(ids).logits.log_softmax(-1) - right).abs().mean() > 1e-2
