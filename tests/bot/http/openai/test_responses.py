"""bot.http.openai.responses: the answers to OpenAI's calls."""

from typing import Any

import pytest
from pydantic import TypeAdapter

from bot.http.openai import responses
from tests.bot.conftest import Heed

ASK = {"messages": [{"role": "user", "content": "bees"}], "prompt": "bees", "n": 2}


@pytest.mark.parametrize(
    ("path", "shape", "logprobs"),
    [
        ("/v1/chat/completions", responses.ChatCompletion, {"logprobs": True, "top_logprobs": 2}),
        ("/v1/completions", responses.TextCompletion, {"logprobs": 2}),
    ],
)
async def test_answers_have_their_shape(heed: Heed, path: str, shape: Any, logprobs: dict[str, Any]) -> None:
    """Answers have their declared shapes, with and without log-probabilities."""
    for more in ({}, logprobs):
        status, answer = await heed.post(path, ASK | more)
        assert status == 200
        TypeAdapter(shape).validate_python(answer)
