"""engine.learning.candidates: from samples to a version that is active, or to nothing."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio

from engine.adapter_ref import CONFIG_FILE, TENSORS_FILE, ZERO_ADAPTER
from engine.adapters.store import REJECTED_FOLDER, VERDICT_FILE
from engine.config import LearnConfig, VersionConfig
from engine.errors import TrainerError
from engine.host.trainer_client import Trained
from engine.learning.candidates import Candidates
from engine.sample import Sample
from storage.errors import VersionPruned
from storage.kinds import VersionState
from storage.learning import updates, versions
from storage.tables import UpdateRun
from tests.engine.live import Live
from tests.storage.stored import directory_sha256

pytestmark = [pytest.mark.engine, pytest.mark.asyncio(loop_scope="session")]

LEARN = LearnConfig(steps=4)


@pytest_asyncio.fixture(loop_scope="session")
async def candidates(live: Live) -> Candidates:
    """The running engine's, once the engine itself trains nothing any more: one update is open at a time."""
    await live.alone()
    return live.parts.learner._candidates


async def started(live: Live, user_id: str) -> UpdateRun:
    """Store the row of an update that begins."""
    return await live.database.write(lambda s: updates.start(s, UpdateRun(user_id=user_id)))


async def samples(live: Live, user_id: str) -> list[Sample]:
    """An answer whose teacher is told to leave emoji out."""
    answer = await live.result(user_id, "Tell me about the koala")
    told = [{"role": "system", "content": "no emoji please"}, *answer.messages]
    return [
        Sample(
            "correction",
            answer.prompt_token_ids,
            live.parts.context.prompts.prompt_token_ids(told),
            answer.completion_token_ids,
        )
    ]


async def test_training_measures_what_it_did(live: Live, candidates: Candidates) -> None:
    """Steps, both divergences and the heat of the corrected answer come back; the teacher is nearer than before."""
    user_id = await live.person()
    run = await started(live, user_id)
    trained = await candidates.train(run.id, ZERO_ADAPTER, await samples(live, user_id), LEARN)
    await candidates.close(run.id)
    assert trained.steps == 4
    assert 0 <= trained.divergence_after < trained.divergence_before
    assert trained.is_finite
    assert trained.heat
    assert trained.anchor_divergence is None
    assert trained.figures["unasked"] is not None


async def test_samples_the_trainer_refuses_are_an_error(live: Live, candidates: Candidates) -> None:
    """An update without anything to learn from is not opened, and the next one is."""
    with pytest.raises(TrainerError, match="needs a correction"):
        await candidates.train("empty", ZERO_ADAPTER, [], LEARN)
    await test_training_measures_what_it_did(live, candidates)


async def test_an_accepted_candidate_is_on_disk_and_active(live: Live, candidates: Candidates) -> None:
    """Its files carry the row's hash, it answers the person, and both phases are booked in order."""
    user_id = await live.person()
    run = await started(live, user_id)
    trained = await candidates.train(run.id, ZERO_ADAPTER, await samples(live, user_id), LEARN)
    phases: list[str] = []
    verdict, version = await candidates.activate(run, 0, trained, phases.append)
    assert verdict.is_accepted
    assert phases == ["publish", "activate"]
    row = await live.version(user_id, version.number)
    assert row.state == VersionState.ACCEPTED
    assert row.sha256 == directory_sha256(live.folder(user_id, version.number))
    assert (await live.user(user_id)).active_version == version.number
    assert (await live.result(user_id, "hi")).adapter_version == version.number


async def test_a_refused_candidate_is_out_of_reach(live: Live, candidates: Candidates) -> None:
    """A refused candidate is rejected in storage, has no file to serve, is in no memory, and is kept apart."""
    user_id = await live.person()
    run = await started(live, user_id)
    await candidates.train(run.id, ZERO_ADAPTER, await samples(live, user_id), LEARN)
    worse = Trained(steps=4, divergence_before=0.1, divergence_after=0.2)
    verdict, version = await candidates.activate(run, 0, worse, lambda _phase: None)
    assert not verdict.is_accepted
    assert (await live.version(user_id, version.number)).state == VersionState.REJECTED
    assert not live.folder(user_id).exists()
    assert (await live.user(user_id)).active_version == 0
    kept = await live.host.rpc("heed_register", version.lora_int_id, str(live.folder(user_id, version.number)))
    assert not kept["ok"]
    assert await live.database.read(versions.unfinished) == []
    apart = live.data_dir / REJECTED_FOLDER / user_id / str(version.number)
    assert {f.name for f in apart.iterdir()} == {CONFIG_FILE, TENSORS_FILE, VERDICT_FILE}
    assert json.loads((apart / VERDICT_FILE).read_text())["reason"] == verdict.reason


@pytest.mark.parametrize("stage", ["publish", "write", "add_adapter", "flip"])
async def test_a_lesson_that_breaks_off_leaves_nothing_behind(
    live: Live, candidates: Candidates, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    """Wherever it is cancelled between publishing and the database: no tensors, no files, no open version."""
    parts = {"publish": candidates._trainer, "write": candidates._adapters, "add_adapter": live.host}
    part = parts.get(stage, candidates._active)
    whole = getattr(part, stage)

    async def broken_off(*args: Any) -> None:
        if stage != "flip":
            await whole(*args)
        raise asyncio.CancelledError

    user_id = await live.person()
    run = await started(live, user_id)
    trained = await candidates.train(run.id, ZERO_ADAPTER, await samples(live, user_id), LEARN)
    with monkeypatch.context() as patch:
        patch.setattr(part, stage, broken_off)
        with pytest.raises(asyncio.CancelledError):
            await candidates.activate(run, 0, trained, lambda _phase: None)
    version = await live.version(user_id, 1)
    assert version.state == VersionState.REJECTED
    assert not live.folder(user_id, 1).exists()
    kept = await live.host.rpc("heed_register", version.lora_int_id, str(live.folder(user_id, 1)))
    assert not kept["ok"]
    assert version.lora_int_id not in (await live.host._current()).loaded
    assert (await live.user(user_id)).active_version == 0


async def accepted(live: Live, candidates: Candidates, user_id: str) -> int:
    """One more accepted version, on top of the active one."""
    run = await started(live, user_id)
    trained = await candidates.train(run.id, ZERO_ADAPTER, await samples(live, user_id), LEARN)
    parent = (await live.user(user_id)).active_version
    verdict, version = await candidates.activate(run, parent, trained, lambda _phase: None)
    assert verdict.is_accepted
    return version.number


async def test_older_versions_make_room_unless_a_request_uses_them(
    live: Live, candidates: Candidates, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row first, then vLLM, memory and files; a stream that began with an old version ends with it, on its files."""
    two = replace(live.engine.config, versions=VersionConfig(keep=2))
    monkeypatch.setattr(candidates, "_config", two)
    user_id = await live.person()
    assert await accepted(live, candidates, user_id) == 1
    async with live.midway(user_id, "Tell me about the koala") as stream:
        assert [await accepted(live, candidates, user_id) for _ in range(3)] == [2, 3, 4]
        await live.pruned()
        assert (await live.version(user_id, 1)).state == VersionState.ACCEPTED
        assert (await live.version(user_id, 2)).state == VersionState.PRUNED
        assert live.folder(user_id, 1).exists()
        results = [delta.result async for delta in stream]
    assert results[-1] is not None
    assert results[-1].adapter_version == 1
    assert await accepted(live, candidates, user_id) == 5
    await live.pruned()
    assert sorted(path.name for path in live.folder(user_id).iterdir()) == ["4", "5"]
    gone = await live.version(user_id, 1)
    assert gone.state == VersionState.PRUNED
    assert not (await live.host.rpc("heed_register", gone.lora_int_id, str(live.folder(user_id, 1))))["ok"]
    with pytest.raises(VersionPruned):
        await live.engine.rollback(user_id, 1)
    assert (await live.result(user_id, "hi")).adapter_version == 5
    assert await live.engine.rollback(user_id, 4) == 4
