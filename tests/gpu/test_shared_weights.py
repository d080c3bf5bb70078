"""On a GPU the training model lies on vLLM's own tensors, and both compute the same."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from engine.adapter_ref import AdapterRef
from engine.config import EngineConfig, HostConfig, LearnConfig
from engine.host.vllm_host import ZERO_ADAPTER, VllmHost
from engine.requests import Sampling
from tests.tiny_model import save_tiny_model

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.gpu, pytest.mark.engine]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def host(cuda: None, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[VllmHost]:
    """A tiny model on the GPU, started once."""
    folder = save_tiny_model(tmp_path_factory.mktemp("tiny"), hidden_size=256)
    settings = HostConfig(kv_cache_bytes=64 << 20)
    running = VllmHost(EngineConfig(str(folder), Path(tmp_path_factory.mktemp("data")), host=settings))
    await running.start(print)
    yield running
    await running.stop()


async def sampled(host: VllmHost, adapter: AdapterRef = ZERO_ADAPTER) -> dict[str, Any]:
    """An answer of the base model or an adapter, as a sample whose student and teacher see the same."""
    prompt, ids, logprobs = list(range(10, 40)), [], []
    async for chunk in host.generate(prompt, Sampling(max_tokens=40), adapter, "gpu"):
        ids += chunk.token_ids
        logprobs += chunk.logprobs
    return {
        "kind": "correction",
        "student_ids": prompt,
        "teacher_ids": prompt,
        "response_ids": ids,
        "behaviour_logprobs": logprobs,
    }


async def distance(host: VllmHost, sample: dict[str, Any], version: dict[str, Any] | None) -> float:
    """Mean absolute difference of vLLM's and the trainer's log-probabilities of a sample's tokens, in nats."""
    (score,) = (await host.rpc("heed_score", [sample], version))["scores"]
    pairs = zip(score["student_logprobs"], sample["behaviour_logprobs"], strict=True)
    gaps = [abs(ours - theirs) for ours, theirs in pairs]
    return float(sum(gaps)) / len(gaps)


async def taught(host: VllmHost, sample: dict[str, Any], version: int) -> dict[str, Any]:
    """Teach what the teacher of a sample sees, publish it and return the last record of the update."""
    spec = {"update_id": "u", "parent": None, "samples": [sample], "learn": LearnConfig().to_dict()}
    assert (await host.rpc("heed_open_update", spec))["ok"]
    while not (record := await host.rpc("heed_advance", "u", 50.0))["done"]:
        assert record["ok"], record
    assert (await host.rpc("heed_publish", "u", version, "ana@1"))["finite"]
    return record


async def test_the_training_forward_agrees_with_vllm(host: VllmHost) -> None:
    """Mean absolute difference of the log-probabilities of the same tokens: at most 0.02 nats."""
    assert await distance(host, await sampled(host), None) <= 0.02


async def test_an_update_trains_and_is_served(host: VllmHost) -> None:
    """From samples to a published adapter that vLLM takes from memory, and computes as the trainer does."""
    sample = await sampled(host)
    sample["teacher_ids"] = [*range(60, 80), *sample["student_ids"]]
    record = await taught(host, sample, 7)
    assert record["divergence_after"] < record["divergence_before"]
    answer = await sampled(host, AdapterRef("ana", 1, 7, "nowhere"))
    assert answer["response_ids"] != sample["response_ids"]
    assert await distance(host, answer, {"lora_int_id": 7, "path": "nowhere"}) <= 0.02


async def test_lessons_of_one_shape_are_replayed_and_learn_the_same(host: VllmHost) -> None:
    """The first is computed launch by launch, later ones as graphs; answers in between are vLLM's own graphs."""
    records = []
    for version in (8, 9, 10):
        sample = await sampled(host)
        sample["teacher_ids"] = [*range(60, 80), *sample["student_ids"]]
        records.append(await taught(host, sample, version))
    first, *others = [record["divergence_after"] for record in records]
    assert others == pytest.approx([first] * 2, rel=0.1)


async def test_no_second_process_holds_the_model(host: VllmHost) -> None:
    """On a GPU the worker is EngineCore: one process on the device."""
    assert host._running is not None
    assert len(host._running.children) == 1
