"""engine.training.model: the forward that a model gets, and exports that PEFT reads."""

import gc
import json
import logging
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from transformers import AutoConfig

from engine.adapters.store import AdapterStore
from engine.training import model
from engine.training.lean_model import LeanModel
from engine.training.llama_model import LlamaModel
from engine.training.model import load_base, load_tokenizer, load_training_model
from engine.training.peft_model import PeftTrainingModel
from storage.tables import AdapterVersion
from tests.engine.updates_of import correction_with_company, run_update, token_ids
from tests.tiny_architectures import save_tiny_architecture


def test_a_small_qwen3_gets_the_lean_forward(tiny_model: Path) -> None:
    """The pocket model gets the lean forward."""
    assert isinstance(load_training_model(tiny_model, "tiny"), LeanModel)


def test_a_large_one_gets_the_forward_of_its_family(tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Merged copies of large weights cost more than they save; in bfloat16 they would lose the adapter."""
    assert isinstance(load_training_model(tiny_model, "tiny", torch.bfloat16), LlamaModel)
    monkeypatch.setattr(model, "LEAN_PARAMETERS", 1000)
    assert isinstance(load_training_model(tiny_model, "tiny"), LlamaModel)


def test_a_worker_can_tell_before_anything_is_loaded(tiny_model: Path) -> None:
    """By the configuration, the type of numbers and how many there are: the forward that is loaded later."""
    config = AutoConfig.from_pretrained(tiny_model)
    assert model.is_lean(config, torch.float32, model.LEAN_PARAMETERS)
    assert not model.is_lean(config, torch.float32, model.LEAN_PARAMETERS + 1)
    assert not model.is_lean(config, torch.bfloat16, 1000)


def test_a_fused_model_needs_its_file_no_longer(tiny_model: Path, tmp_path: Path) -> None:
    """Weights of the file's own type would be views of it, and keep all of it in memory."""
    base = load_base(tiny_model).to(torch.bfloat16)
    base.save_pretrained(tmp_path)
    mapped = load_base(tmp_path, torch.bfloat16)
    assert str(tmp_path) in Path("/proc/self/maps").read_text()
    del mapped
    loaded = load_training_model(tmp_path, "tiny", torch.bfloat16)
    assert isinstance(loaded, LlamaModel)
    gc.collect()
    assert str(tmp_path) not in Path("/proc/self/maps").read_text()


@pytest.mark.parametrize("name", ["Llama", "Gemma 2"])
def test_an_embedding_that_is_there_is_read_in_place_of_a_copy(tmp_path: Path, name: str) -> None:
    """Of a model served beside it, also where the matrix has rows behind the vocabulary's; the answers are the same."""
    folder = save_tiny_architecture(tmp_path, name)
    served = nn.functional.pad(load_base(folder).get_input_embeddings().weight, (0, 0, 0, 3))
    ids_BL = torch.arange(12).view(2, 6)
    own, sharing = (load_training_model(folder, name, embedding=matrix) for matrix in (None, served))
    states, expected = (model.layer_states(ids_BL, [1]) for model in (sharing, own))
    assert torch.equal(states[0], expected[0])
    kept = served.clone()
    served.zero_()
    assert not torch.equal(sharing.layer_states(ids_BL, [1])[0], expected[0])
    kept[1] += 1.0
    other = load_training_model(folder, name, embedding=kept)
    assert torch.equal(other.layer_states(ids_BL, [1])[0], expected[0])


def test_every_other_gets_hugging_face_and_peft(tmp_path: Path) -> None:
    """Also in float32 and however small it is."""
    assert isinstance(load_training_model(save_tiny_architecture(tmp_path, "Gemma 2"), "tiny"), PeftTrainingModel)


def test_a_long_text_is_read_without_a_warning(tiny_model: Path, tmp_path: Path) -> None:
    """What is too long for the model is said to the person, by the parts that know the model's context."""
    for name in ("tokenizer.json", "tokenizer_config.json", "config.json"):
        shutil.copy(tiny_model / name, tmp_path)
    told = json.loads((tmp_path / "tokenizer_config.json").read_text()) | {"model_max_length": 16}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(told))
    tokenizer = load_tokenizer(tmp_path)
    warnings: list[str] = []
    transformers_logger = logging.getLogger("transformers.tokenization_utils_base")
    transformers_logger.addFilter(lambda record: not warnings.append(record.getMessage()))
    assert len(tokenizer("bees " * 100)["input_ids"]) >= 100
    assert warnings == []


def test_the_loaded_base_is_frozen_float32(tiny_model: Path) -> None:
    """A model of another architecture gets PEFT on a CPU, too."""
    base = load_base(tiny_model)
    assert all(p.dtype == torch.float32 and not p.requires_grad for p in base.parameters())


@pytest.mark.parametrize("kind", [LeanModel, LlamaModel, PeftTrainingModel])
async def test_peft_loads_a_published_directory_as_it_is(tiny_model: Path, tmp_path: Path, kind: Any) -> None:
    """PeftModel.from_pretrained on the store's directory gives the trainer's own logits."""
    from peft import PeftModel

    model = kind(load_base(tiny_model), str(tiny_model))
    slot = run_update(model, correction_with_company()).slot
    files = slot.export().files()
    version = AdapterVersion(lora_int_id=1, user_id="ana", number=1, path="adapters/ana/1")
    store = AdapterStore(tmp_path, database=None)  # type: ignore[arg-type]
    await store.write(version, files["adapter_model.safetensors"], files["adapter_config.json"].decode())

    ids = torch.tensor([token_ids(30, 7)])
    loaded = PeftModel.from_pretrained(load_base(tiny_model), store.ref(version).path)
    with torch.no_grad():
        theirs = loaded(input_ids=ids).logits[0]
        ours = model.logits(model.hidden(slot, _all_rows(ids)))
        base = load_base(tiny_model)(input_ids=ids).logits[0]
    assert torch.allclose(ours, theirs, atol=2e-3)
    assert not torch.allclose(theirs, base, atol=0.1)


def _all_rows(ids: Any) -> Any:
    from engine.training.batching import Batch

    positions = torch.arange(ids.shape[1])
    return Batch([0], ids, positions, ids[0], torch.zeros_like(positions))
