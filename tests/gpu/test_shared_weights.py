"""On a GPU the training model lies on vLLM's own tensors, and both compute the same."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

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


async def sampled(host: VllmHost) -> dict[str, Any]:
    """An answer of the base model, as a sample whose student and teacher see the same."""
    prompt, ids, logprobs = list(range(10, 40)), [], []
    async for chunk in host.generate(prompt, Sampling(max_tokens=40), ZERO_ADAPTER, "gpu"):
        ids += chunk.token_ids
        logprobs += chunk.logprobs
    return {
        "kind": "correction",
        "student_ids": prompt,
        "teacher_ids": prompt,
        "response_ids": ids,
        "behaviour_logprobs": logprobs,
    }


async def test_the_training_forward_agrees_with_vllm(host: VllmHost) -> None:
    """Mean absolute difference of the log-probabilities of the same tokens: at most 0.02 nats."""
    sample = await sampled(host)
    (score,) = (await host.rpc("heed_score", [sample], None))["scores"]
    pairs = zip(score["student_logprobs"], sample["behaviour_logprobs"], strict=True)
    gaps = [abs(ours - theirs) for ours, theirs in pairs]
    assert sum(gaps) / len(gaps) <= 0.02


async def test_an_update_trains_and_is_served(host: VllmHost) -> None:
    """From samples to a published adapter that vLLM takes from memory."""
    sample = await sampled(host)
    sample["teacher_ids"] = [*range(60, 80), *sample["student_ids"]]
    spec = {"update_id": "u", "parent": None, "samples": [sample], "learn": LearnConfig().to_dict()}
    assert (await host.rpc("heed_open_update", spec))["ok"]
    while not (record := await host.rpc("heed_advance", "u", 50.0))["done"]:
        assert record["ok"], record
    assert record["divergence_after"] < record["divergence_before"]
    published = await host.rpc("heed_publish", "u", 7, "ana@1")
    assert published["finite"]


async def test_no_second_process_holds_the_model(host: VllmHost) -> None:
    """On a GPU the worker is EngineCore: one process on the device."""
    assert host._running is not None
    assert len(host._running.children) == 1
