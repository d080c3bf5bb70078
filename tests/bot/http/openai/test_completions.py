"""bot.http.openai.completions: OpenAI's older call. The real client is in test_openai_client."""

from typing import Any

import pytest

from bot.http.openai.completions import as_lists
from tests.bot.conftest import Heed

PATH = "/v1/completions"


async def test_its_answer_takes_feedback(heed: Heed) -> None:
    """The answer is a turn like any other and can be corrected."""
    status, answer = await heed.post(PATH, {"prompt": "bees"})
    assert status == 200, answer
    assert (await heed.correct(answer["id"], "too long"))["status"] == "learned"
    _, shorter = await heed.post(PATH, {"prompt": "bees"})
    assert len(shorter["choices"][0]["text"]) < len(answer["choices"][0]["text"])
    assert shorter["heed"]["adapter_version"] == 1


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"prompt": ""}, "prompt"),
        ({"prompt": " \n"}, "prompt"),
        ({"prompt": []}, "prompt"),
        ({"prompt": ["a", "b"]}, "prompt"),
        ({"prompt": [1, 2]}, "prompt"),
        ({"prompt": "x" * 16_001}, "prompt"),
        ({"prompt": "a\x00b"}, "prompt"),
        ({}, "prompt"),
        ({"prompt": "x", "echo": True}, "echo"),
        ({"prompt": "x", "suffix": "y"}, "suffix"),
        ({"prompt": "x", "logprobs": 21}, "logprobs"),
        ({"prompt": "x", "best_of": 2}, "best_of"),
        ({"prompt": "x", "n": 0}, "n"),
    ],
)
async def test_a_wrong_field_is_named(heed: Heed, fields: dict[str, Any], param: str) -> None:
    """A wrong field is 400, and nothing reaches the engine."""
    status, answer = await heed.post(PATH, fields)
    assert (status, answer["error"]["param"].partition(".")[0]) == (400, param)
    assert heed.engine.requests == []


def test_entries_as_lists() -> None:
    """Each kind of value has a list of its own."""
    top = [{"token": "token_id:7", "logprob": -0.5, "bytes": None}]
    entries = [{"token": "token_id:3", "logprob": -0.1, "bytes": None, "top_logprobs": top}]
    assert as_lists(entries) == {
        "tokens": ["token_id:3"],
        "token_logprobs": [-0.1],
        "top_logprobs": [{"token_id:7": -0.5}],
    }
