"""bot.http.openai.tools: tools in a chat call."""

from typing import Any

import pytest

from tests.bot.conftest import Heed

CHAT = "/v1/chat/completions"
WEATHER = {
    "type": "function",
    "function": {"name": "get_weather", "description": "Weather now", "parameters": {"type": "object"}, "strict": True},
}


@pytest.mark.parametrize(("choice", "expected"), [(None, [WEATHER]), ("auto", [WEATHER]), ("none", [])])
async def test_tools_reach_the_engine(heed: Heed, choice: Any, expected: list[Any]) -> None:
    """Tools reach the engine unchanged, unless tool_choice is none."""
    await heed.ask("bees", tools=[WEATHER], tool_choice=choice)
    assert heed.engine.requests[-1].tools == expected


async def test_an_answer_is_given_again_with_its_tools(heed: Heed) -> None:
    """A regenerated or corrected answer uses the same tools."""
    answer = await heed.ask("bees", tools=[WEATHER])
    await heed.ask("", heed={"regenerate": answer["id"]}, messages=[])
    assert heed.engine.requests[-1].tools == [WEATHER]
    assert (await heed.correct(answer["id"], "too long", retry=True))["retry"]
    assert heed.engine.requests[-1].tools == [WEATHER]


async def test_what_a_tool_gave_back_is_read(heed: Heed) -> None:
    """A conversation may end with a tool's result."""
    messages = [
        {"role": "user", "content": "weather?"},
        {"role": "assistant", "content": "get_weather()"},
        {"role": "tool", "content": "rain", "tool_call_id": "1"},
    ]
    await heed.ask("", messages=messages)
    assert heed.engine.requests[-1].messages[-1] == {"role": "tool", "content": "rain"}


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tool_choice": {"type": "function", "function": {"name": "get_weather"}}}, "tool_choice"),
        ({"tool_choice": 3}, "tool_choice"),
        ({"tools": [{"type": "retrieval"}]}, "tools.0"),
        ({"tools": [{"type": "function", "function": {"name": "a b"}}]}, "tools.0.function.name"),
        ({"tools": [{"type": "function", "function": {"name": "a", "description": "x" * 16_001}}]}, "tools"),
        ({"tools": [{"type": "function", "function": {"name": "a", "description": "\x00"}}]}, "tools"),
        ({"tools": [{"type": "function", "function": {"name": "a", "parameters": {"x": float("nan")}}}]}, "tools"),
        ({"messages": [{"role": "tool", "content": "rain"}]}, "messages"),
    ],
)
async def test_what_cannot_be_done_is_refused_by_name(heed: Heed, fields: dict[str, Any], param: str) -> None:
    """A choice or tool that heed cannot honour is refused before the engine is called."""
    status, answer = await heed.post(
        CHAT, {"messages": [{"role": "user", "content": "x"}], "tools": [WEATHER], **fields}
    )
    assert status == 422, answer
    assert answer["error"]["param"].startswith(param)
    assert heed.engine.requests == []
