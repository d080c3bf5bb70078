"""bot.http.openai.models: the list of models, and the adapter that a model's name means."""

from typing import Any

import pytest

from tests.bot.conftest import Heed, StartHeed, text_of

BEES = {"messages": [{"role": "user", "content": "bees"}]}


async def taught(heed: Heed, user: str = "user/my-lora") -> str:
    """Teach a person something. Return the new answer."""
    answer = await heed.ask("bees", user=user)
    await heed.correct(answer["id"], "too long", user=user)
    return text_of(await heed.ask("bees", user=user))


@pytest.mark.parametrize("model", ["user/my-lora", "user/my-lora-latest", "user-my-lora-init", "user-my-lora"])
async def test_an_adapters_name_is_a_model(heed: Heed, model: str) -> None:
    """Its person's adapter answers, by CLaaS's names and by vLLM's; the answer is that person's turn."""
    expected = await taught(heed)
    answer = await heed.ask("bees", model=model)
    assert (text_of(answer), answer["model"]) == (expected, model)
    assert answer["heed"]["adapter_version"] == 1
    assert (await heed.correct(answer["id"], "no emoji please", user="user/my-lora"))["status"] == "learned"


async def test_scores_and_plain_completions_take_it_too(heed: Heed) -> None:
    """Scores and plain completions use the named adapter, too."""
    expected = await taught(heed)
    _, plain = await heed.post("/v1/completions", {"prompt": "bees", "model": "user/my-lora"})
    assert plain["choices"][0]["text"] == expected
    status, scored = await heed.post("/v1/score", {**BEES, "completion": expected, "model": "user/my-lora"})
    assert status == 200, scored


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"model": "gpt-4"}, (404, "model")),
        ({"model": "user/other"}, (404, "model")),
        ({"model": "../my-lora"}, (404, "model")),
        ({"model": "user/my-lora", "user": "ben"}, (400, "user")),
    ],
)
async def test_an_unknown_model_is_refused(heed: Heed, fields: dict[str, Any], expected: tuple[int, str]) -> None:
    """An unknown model is not found; an adapter's name together with another user is refused."""
    await taught(heed)
    for path, more in (("/v1/chat/completions", {}), ("/v1/score", {"completion": "x"})):
        status, answer = await heed.post(path, {**BEES, **more, **fields})
        assert (status, answer["error"]["param"]) == expected


async def test_models_are_listed_with_the_adapters(heed: Heed) -> None:
    """Adapters are listed as models and found one by one."""
    await taught(heed)
    _, models = await heed.get("/v1/models")
    assert [model["id"] for model in models["data"]] == ["heed", "heed-base", "user/my-lora"]
    for name in ("heed", "user/my-lora"):
        assert (await heed.get(f"/v1/models/{name}"))[1]["id"] == name
    status, answer = await heed.get("/v1/models/gpt-4")
    assert (status, answer["error"]["param"]) == (404, "model")


async def test_with_keys_only_heeds_own_names_are_models(start_heed: StartHeed) -> None:
    """With keys the key decides the adapter, and adapters' names are no models."""
    heed = await start_heed(http={"api_keys": {"ana": "a" * 20}})
    headers = {"Authorization": f"Bearer {'a' * 20}"}
    await heed.post("/v1/lora/init", {"lora_id": "user/my-lora"}, headers=headers)
    for model in ("user/my-lora", "ana", "ana/user/my-lora"):
        assert (await heed.post("/v1/chat/completions", {**BEES, "model": model}, headers=headers))[0] == 404
    assert len((await heed.get("/v1/models", headers=headers))[1]["data"]) == 2
