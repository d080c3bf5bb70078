"""bot.http.claas.responses: the answers to CLaaS's calls."""

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from bot.http.claas import responses
from tests.bot.conftest import Heed

ITEM = {"lora_id": "ana", "prompt": "bees", "response": "Bees hum.", "feedback": "too long"}


async def test_answers_have_their_shape(heed: Heed) -> None:
    """The answers of all calls have their declared shapes."""

    def check(shape: Any, answered: tuple[int, Any]) -> None:
        status, answer = answered
        assert status == 200, answer
        TypeAdapter(shape).validate_python(answer)

    check(responses.Lora, await heed.post("/v1/lora/init", {"lora_id": "ana"}))
    check(responses.BatchTaught, await heed.post("/v1/feedback", {"requests": [ITEM]}))
    check(responses.Loras, await heed.get("/v1/lora"))
    response = await heed.client.delete("/v1/lora", params={"lora_id": "ana"})
    check(responses.LoraDeleted, (response.status, await response.json()))


def test_what_is_not_measured_is_null() -> None:
    """Figures that heed does not measure are null."""
    figures = dict.fromkeys(responses.BatchMetrics.__annotations__) | {
        "tokens_processed": 3,
        "batch_size": 1,
        "steps_per_batch_applied": 10,
        "adapter_version": 1,
    }
    TypeAdapter(responses.BatchMetrics).validate_python(figures)
    with pytest.raises(ValidationError, match="grad_norm"):
        TypeAdapter(responses.BatchMetrics).validate_python(figures | {"grad_norm": 0.5})
