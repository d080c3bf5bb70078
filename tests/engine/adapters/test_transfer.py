"""engine.adapters.transfer: adapters as files, with the real vLLM, the pocket model and PEFT."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load, save

from engine.adapter_ref import CONFIG_FILE, TENSORS_FILE
from engine.adapters import zip_format
from engine.adapters.training_batch import BATCH_FILE
from engine.adapters.zip_format import FORMAT, MANIFEST_FILE, AdapterPackage
from engine.config import VersionConfig
from engine.errors import AdapterLoadError, AdapterRefused, BatchNotKept
from storage.errors import VersionNotFound, VersionStateError
from storage.kinds import FeedbackStatus, VersionState
from storage.learning import updates
from tests import adapter_zips
from tests.engine.live import Live

pytestmark = [pytest.mark.engine, pytest.mark.asyncio(loop_scope="session")]

QUESTION = "Tell me about the puma"


def repacked(content: bytes, base_model: str | None = None, **tensors_or_config: Any) -> bytes:
    """A zip file with other tensors or another configuration, whose manifest vouches for them."""
    files = adapter_zips.contents(content)
    known = json.loads(files[MANIFEST_FILE])
    changed = {
        TENSORS_FILE: tensors_or_config.get("tensors", files[TENSORS_FILE]),
        CONFIG_FILE: json.dumps(json.loads(files[CONFIG_FILE]) | tensors_or_config.get("config", {})).encode(),
    }
    return adapter_zips.vouched(changed, format=FORMAT, base_model=base_model or known["base_model"])


def peft_answer(base: Path, folder: Path, prompt: list[int], count: int) -> list[int]:
    """Return the greedy token ids of PEFT and Hugging Face with an unzipped adapter."""
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    model = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32), folder).eval()
    token_ids = list(prompt)
    with torch.no_grad():
        for _ in range(count):
            token_ids.append(int(model(input_ids=torch.tensor([token_ids])).logits[0, -1].argmax()))
    return token_ids[len(prompt) :]


async def test_what_a_version_was_trained_on_goes_out_as_jsonl(live: Live) -> None:
    """The correction first, with the words that taught it in the teacher's view and not in the student's."""
    user_id, outcome = await live.lesson("use lowercase")
    files = adapter_zips.contents(await live.engine.export_batch(user_id, outcome.adapter_version))
    manifest = json.loads(files[MANIFEST_FILE])
    lines = [json.loads(line) for line in files[BATCH_FILE].splitlines()]
    assert (manifest["num_samples"], manifest["update"]) == (len(lines), outcome.update_id)
    assert manifest["base_model"] == live.parts.context.active.base_model
    (first,) = [line for line in lines if line["kind"] == "correction"]
    assert first["feedback"] == "use lowercase"
    assert ("use lowercase" in first["teacher_prompt"], "use lowercase" in first["prompt"]) == (True, False)
    assert "koala" in first["response"]
    decode = live.host.tokenizer.decode
    assert all(decode(line["response_ids"]) == line["response"] for line in lines)


async def test_a_batch_that_was_not_kept_is_named(live: Live) -> None:
    """An imported version was trained elsewhere; another person's version does not exist."""
    user_id, _ = await live.pupil("use lowercase")
    other = await live.person()
    package = await live.engine.check_adapter(await live.engine.export_adapter(user_id, 1))
    await live.engine.import_adapter(other, package)
    with pytest.raises(BatchNotKept, match="v1"):
        await live.engine.export_batch(other, 1)
    with pytest.raises(VersionNotFound):
        await live.engine.export_batch(other, 2)


async def test_peft_loads_what_heed_exports(live: Live, pocket: Path, tmp_path: Path) -> None:
    """The unzipped folder answers in PEFT as the version does in heed, token for token, and not as the base does."""
    user_id, outcome = await live.pupil("use lowercase")
    content = await live.engine.export_adapter(user_id, outcome.adapter_version)
    files = adapter_zips.contents(content)
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    ours = await live.result(user_id, QUESTION, notes="off")
    base = await live.result(user_id, QUESTION, notes="off", adapter="base")
    theirs = peft_answer(pocket, tmp_path, ours.prompt_token_ids, len(ours.completion_token_ids))
    assert theirs == ours.completion_token_ids
    assert ours.completion_token_ids != base.completion_token_ids
    assert str(live.data_dir).encode() not in b"".join(files.values())
    assert str(pocket.parent).encode() not in b"".join(files.values())


async def test_an_adapter_answers_somebody_else_after_its_import(live: Live) -> None:
    """Token for token as it did at home; notes stand in the prompt again; an undo brings back what was before."""
    teacher, outcome = await live.pupil("use lowercase")
    content = await live.engine.export_adapter(teacher, outcome.adapter_version)
    user_id, _ = await live.pupil("no emoji please")
    await live.engine.settled()
    number = await live.engine.import_adapter(user_id, await live.engine.check_adapter(content))
    there, here = [await live.result(who, QUESTION, notes="off") for who in (teacher, user_id)]
    assert (number, here.adapter_version) == (2, 2)
    assert here.completion_token_ids == there.completion_token_ids
    row = await live.version(user_id, 2)
    assert (row.parent, row.state, row.base_model) == (1, VersionState.ACCEPTED, live.parts.context.active.base_model)
    run = await live.database.read(lambda s: updates.get(s, user_id, row.update_id or ""))
    assert (run.kind, run.status, run.version) == ("import", "accepted", 2)
    taught_by = await live.feedback(row.feedback_id or "")
    assert (taught_by.kind, taught_by.status) == ("import", FeedbackStatus.LEARNED)
    assert (await live.engine.undo(user_id)).version == 1
    assert [n.text for n in await live.notes(user_id)] == ["no emoji please"]
    assert (await live.feedback(taught_by.id)).status == FeedbackStatus.UNDONE


async def test_learning_goes_on_from_an_import(live: Live) -> None:
    """The next lesson begins with it as its parent."""
    teacher, outcome = await live.pupil("use lowercase")
    user_id = await live.person()
    package = await live.engine.check_adapter(await live.engine.export_adapter(teacher, outcome.adapter_version))
    assert await live.engine.import_adapter(user_id, package) == 1
    learned = await live.teach(await live.ask(user_id, QUESTION), "no emoji please")
    assert (learned.status, learned.adapter_version) == ("learned", 2)
    assert (await live.version(user_id, 2)).parent == 1


async def test_what_does_not_fit_changes_nothing(live: Live) -> None:
    """Another base model, rank, module, width, or values no training makes: refused before a row is written."""
    user_id, outcome = await live.pupil()
    good = await live.engine.export_adapter(user_id, outcome.adapter_version)
    tensors = load(adapter_zips.contents(good)[TENSORS_FILE])
    first = next(name for name in tensors if ".lora_A." in name)
    higher = {n: np.zeros((64, t.shape[1]) if ".lora_A." in n else (t.shape[0], 64), "f4") for n, t in tensors.items()}
    wrong = {
        "another base model": repacked(good, base_model="0123456789abcdef"),
        "rank 64, above": repacked(good, tensors=save(higher), config={"r": 64}),
        "not of rank 8": repacked(good, config={"r": 8}),
        "lm_head are not trained": repacked(good, config={"target_modules": ["q_proj", "lm_head"]}),
        "not those of its modules": repacked(good, config={"target_modules": ["q_proj"]}),
        "the model has no": repacked(good, tensors=save({f"x.{n}": t for n, t in tensors.items()})),
        "which does not fit the model": repacked(good, tensors=save(tensors | {first: np.zeros((16, 3), "f4")})),
        "which no training produces": repacked(good, tensors=save({n: t + 1e6 for n, t in tensors.items()})),
        "not a number": repacked(good, tensors=save(tensors | {first: tensors[first] * np.float32("nan")})),
    }
    for words, content in wrong.items():
        with pytest.raises(AdapterRefused, match=words):
            await live.engine.check_adapter(content)
    assert [p.name for p in live.folder(user_id).iterdir()] == ["1"]
    assert (await live.user(user_id)).last_version == 1
    assert (await live.result(user_id, QUESTION)).adapter_version == 1


async def test_only_what_can_be_served_goes_out(live: Live) -> None:
    """The base model, unknown versions and other people's versions are refused."""
    user_id, _ = await live.pupil()
    for who, number in ((user_id, 0), (user_id, 9), (await live.person(), 1)):
        with pytest.raises(VersionNotFound):
            await live.engine.export_adapter(who, number)


async def test_an_import_that_cannot_be_served_is_given_up(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """If vLLM refuses it after all, the log says so, no file stays and the version before answers."""
    user_id, _ = await live.pupil()
    package = await live.engine.check_adapter(await live.engine.export_adapter(user_id, 1))
    broken = AdapterPackage(package.config | {"r": 4096}, package.tensors, package.base_model, package.origin)
    monkeypatch.setattr(live.parts.transfer, "check", None)
    with pytest.raises(AdapterLoadError):
        await live.engine.import_adapter(user_id, broken)
    assert (await live.version(user_id, 2)).state == VersionState.REJECTED
    assert not live.folder(user_id, 2).exists()
    (run, *_) = await live.updates(user_id, 1)
    assert (run.kind, run.status) == ("import", "failed")
    with pytest.raises(VersionStateError):
        await live.engine.rollback(user_id, 2)
    assert (await live.result(user_id, QUESTION)).adapter_version == 1


async def test_the_size_of_an_import_is_bounded(live: Live) -> None:
    """By the setting, whatever the zip file says."""
    limit = live.engine.config.versions.max_import_bytes
    assert limit == VersionConfig().max_import_bytes
    with pytest.raises(AdapterRefused):
        await live.engine.check_adapter(adapter_zips.bomb())
    assert limit > zip_format.MAX_TEXT_BYTES


async def test_a_lesson_that_made_answers_worse_is_taken_back_by_the_engine(live: Live) -> None:
    """Version and note go together, once; what it was taught before holds on in weights or prompt."""
    user_id, _ = await live.pupil("no emoji please")
    second = await live.teach(await live.ask(user_id, QUESTION), "use lowercase")
    complaint = await live.say(await live.ask(user_id, QUESTION), "it was better before", kind="reaction")
    undone = await live.engine.take_back(complaint, second.adapter_version, "worse")
    assert undone is not None
    assert (undone.version, undone.note, undone.must_rebuild) == (1, "use lowercase", False)
    assert await live.engine.take_back(complaint, second.adapter_version, "worse") is None
    assert [n.text for n in await live.notes(user_id)] == ["no emoji please"]
    assert (await live.result(user_id, QUESTION)).adapter_version == 1
