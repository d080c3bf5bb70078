"""The calls of CLaaS's eval runner, in its order and with the bodies it sends, over its own HTTP library."""

import math
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest_asyncio

from tests.bot.conftest import Heed

Json = dict[str, Any]

LORA = "eval/concise"
MODEL = "eval-concise"  # as the runner names it to vLLM
SYSTEM = {"role": "system", "content": "You are a helpful assistant."}
TRAINING = {  # every default, as the runner's models write them out
    "learning_rate": 3e-5, "alpha": 0.5, "is_clip": 5.0, "max_grad_norm": 1.0, "kl_reg_weight": 0.0,
    "teacher_top_k": 100, "steps_per_batch": 4, "feedback_repetitions": 1, "teacher_mode": "self",
}  # fmt: skip
ORCHESTRATION = {"sleep_before": False, "wake_after": False, "wake_on_failure": True, "sleep_level": 1}


@pytest_asyncio.fixture
async def client(heed: Heed) -> AsyncIterator[httpx.AsyncClient]:
    """Return the runner's HTTP client, with an adapter made."""
    async with httpx.AsyncClient(base_url=str(heed.client.make_url("/"))) as client:
        made = await sent(client, "/v1/lora/init", {"lora_id": LORA, "base_model": "heed-base"})
        assert made["lora_id"] == LORA
        yield client


async def sent(client: httpx.AsyncClient, path: str, body: Json) -> Json:
    """Return the answer to a call; anything but success ends the runner."""
    response = await client.post(path, json=body)
    response.raise_for_status()
    found: Json = response.json()
    return found


async def answer(client: httpx.AsyncClient, prompt: str, **fields: Any) -> Json:
    """Return the choice that the runner reads."""
    body = {
        "model": MODEL, "messages": [SYSTEM, {"role": "user", "content": prompt}], "temperature": 0,
        "max_tokens": 2048, "top_p": None, "stream": False, "stop": None, "logprobs": False, "top_logprobs": 1,
    }  # fmt: skip
    choice: Json = (await sent(client, "/v1/chat/completions", body | fields))["choices"][0]
    return choice


async def taught(client: httpx.AsyncClient, feedback: str, size: int = 1) -> Json:
    """Return the answer to a batch of feedback on fresh answers."""
    samples = []
    for number in range(size):
        prompt = f"bees {number}"
        said = (await answer(client, prompt, temperature=0.7))["message"]["content"]
        samples.append({"lora_id": LORA, "prompt": prompt, "response": said, "feedback": feedback,
                        "rollout_logprobs": None, "training": TRAINING})  # fmt: skip
    return await sent(client, "/v1/feedback", {"requests": samples, "orchestration": ORCHESTRATION})


async def test_a_step_of_the_runner(heed: Heed, client: httpx.AsyncClient) -> None:
    """A batch is taught with heed's calibrated settings, and the answer validates as the runner's own model does."""
    before = (await answer(client, "owls"))["message"]["content"]
    result = await taught(client, "too long", size=4)
    assert (result["status"], result["batch_size"], result["lora_id"]) == ("ok", 4, LORA)
    assert isinstance(result["feedback_log_path"], str)
    assert all(isinstance(value, int) for value in result["timing_ms"].values())
    assert {type(value) for value in result["vllm"].values()} == {bool}
    metadata = result["distill_result"]["metadata"]
    assert math.isfinite(metadata["distill_loss"])
    assert metadata["training"] == {}
    assert len((await answer(client, "owls"))["message"]["content"]) < len(before)


async def test_its_likelihoods(client: httpx.AsyncClient) -> None:
    """The margin of a pair is the difference of two sums of log-probabilities."""
    said = (await answer(client, "bees"))["message"]["content"]
    sums = []
    for completion in (said, "Otherwise entirely."):
        body = {"model": MODEL, "messages": [{"role": "user", "content": "bees"}], "completion": completion}
        found = await sent(client, "/v1/score", body)
        assert len(found["logprobs"]) == len(found["tokens"]) == found["completion_tokens"]
        sums.append(found["logprob_sum"])
    assert sums[0] > sums[1]


async def test_its_probe_for_collapse(client: httpx.AsyncClient) -> None:
    """The entropy over the likeliest twenty tokens can be taken, and samples at a temperature are texts."""
    choice = await answer(client, "the ocean", logprobs=True, top_logprobs=20)
    entropies = []
    for token in choice["logprobs"]["content"]:
        likely = [math.exp(top["logprob"]) for top in token["top_logprobs"]]
        entropies.append(-sum(p / sum(likely) * math.log(p / sum(likely)) for p in likely))
    assert sum(entropies) > 0
    samples = [(await answer(client, "the ocean", temperature=0.7))["message"]["content"] for _ in range(3)]
    assert all(samples)


async def test_its_chat_calls_name_no_model(client: httpx.AsyncClient) -> None:
    """An empty model is heed, and top_logprobs without logprobs is taken."""
    choice = await answer(client, "bees", model="")
    assert (choice["logprobs"], choice["finish_reason"]) == (None, "stop")


async def test_its_lists_and_health(client: httpx.AsyncClient) -> None:
    """The adapter is listed by its prefix and among the models, and heed is healthy."""
    assert (await client.get("/v1/lora", params={"prefix": "eval/"})).json() == {"loras": [LORA]}
    assert LORA in [model["id"] for model in (await client.get("/v1/models")).json()["data"]]
    assert (await client.get("/v1/health")).json()["status"] == "healthy"
    assert (await client.get("/v1/dashboard")).status_code == 302
