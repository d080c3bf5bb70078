"""bot.http.openai.score: the likelihood of an answer."""

from typing import Any

import pytest

from tests.bot.conftest import Heed

PATH = "/v1/score"
BEES = {"messages": [{"role": "user", "content": "bees"}]}


async def test_an_answer_is_scored_token_by_token(heed: Heed) -> None:
    """The model's own answer is likely, the sum is that of the tokens, and nothing is stored."""
    status, likely = await heed.post(PATH, {**BEES, "completion": "You asked about bees."})
    assert status == 200, likely
    assert "".join(likely["tokens"]) == "You asked about bees."
    assert len(likely["logprobs"]) == len(likely["tokens"]) == likely["completion_tokens"]
    assert likely["logprob_sum"] == pytest.approx(sum(likely["logprobs"]))
    assert likely["prompt_tokens"] > 0
    _, odd = await heed.post(PATH, {**BEES, "completion": "Zebras never sleep."})
    assert odd["logprob_sum"] < likely["logprob_sum"]
    assert (await heed.get("/v1/users/local/export"))[1]["completions"] == []


async def test_notes_are_read_unless_left_out(heed: Heed) -> None:
    """Notes are in the prompt of a score unless they are turned off."""
    await heed.post("/v1/users/local/commands", {"text": "/note too long"})
    long_answer = "It is a fine subject with many sides, and I could go on for quite a while."
    _, noted = await heed.post(PATH, {**BEES, "completion": long_answer})
    _, plain = await heed.post(PATH, {**BEES, "completion": long_answer, "heed": {"notes": "off"}})
    assert noted["logprob_sum"] < plain["logprob_sum"]


async def test_an_empty_answer_has_no_tokens(heed: Heed) -> None:
    """An empty answer has no tokens and the sum zero."""
    _, nothing = await heed.post(PATH, {**BEES, "completion": ""})
    assert (nothing["tokens"], nothing["logprob_sum"]) == ([], 0)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"completion": None}, "completion"),
        ({"completion": "x" * 16_001}, "completion"),
        ({"completion": "a\x00"}, "completion"),
        ({"messages": []}, "messages"),
    ],
)
async def test_a_wrong_field_is_named(heed: Heed, fields: dict[str, Any], param: str) -> None:
    """A wrong field is 400 and named."""
    status, answer = await heed.post(PATH, {**BEES, "completion": "x", **fields})
    assert (status, answer["error"]["param"]) == (400, param)
