"""bot.http.openai.tools: tools in a chat call."""

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.bot.conftest import Heed

Json = dict[str, Any]

CHAT = "/v1/chat/completions"
BEES = [{"role": "user", "content": "bees"}]
WEATHER = {
    "type": "function",
    "function": {"name": "get_weather", "description": "Weather now", "parameters": {"type": "object"}, "strict": True},
}


FORCED = {"type": "function", "function": {"name": "get_weather"}}
CALL = {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Rome"}'}}


@pytest.mark.parametrize(
    ("choice", "expected", "wanted"),
    [
        (None, [WEATHER], "auto"),
        ("auto", [WEATHER], "auto"),
        ("none", [], "none"),
        ("required", [WEATHER], "required"),
        (FORCED, [WEATHER], "get_weather"),
    ],
)
async def test_tools_reach_the_engine(heed: Heed, choice: Any, expected: list[Any], wanted: str) -> None:
    """Tools reach the engine unchanged, unless tool_choice is none, and so does the choice."""
    await heed.ask("bees", tools=[WEATHER], tool_choice=choice, parallel_tool_calls=False)
    request = heed.engine.requests[-1]
    assert (request.tools, request.sampling.tool_choice) == (expected, wanted)
    assert request.sampling.parallel_tool_calls is False


async def test_calls_come_in_openais_form(heed: Heed) -> None:
    """An answer has its calls beside its words, with the finish reason for them, whole and streamed."""
    heed.engine.calls = [CALL]
    (choice,) = (await heed.ask("bees", tools=[WEATHER]))["choices"]
    assert (choice["message"]["tool_calls"], choice["finish_reason"]) == ([CALL], "tool_calls")
    response = await heed.client.post(CHAT, json={"messages": BEES, "tools": [WEATHER], "stream": True})
    text = await response.text()
    assert json.dumps({"tool_calls": [{"index": 0, **CALL}]})[1:-1] in text
    assert '"finish_reason": "tool_calls"' in text


async def test_the_whole_round_trip_is_taken(heed: Heed) -> None:
    """An answer that is calls alone, with content null or none, and its tool's result go back to the model."""
    for said in ({"content": None}, {}, {"content": ""}):
        asked = {"role": "assistant", "tool_calls": [CALL], **said}
        result = {"role": "tool", "tool_call_id": "call_1", "content": "rain"}
        await heed.ask("", messages=[*BEES, asked, result], tools=[WEATHER])
        assert heed.engine.requests[-1].messages[1:] == [
            {"role": "assistant", "content": "", "tool_calls": [CALL]},
            {"role": "tool", "content": "rain", "tool_call_id": "call_1"},
        ]


@pytest.mark.parametrize(
    ("skills", "choice", "param"),
    [
        ({"shows_tools": False}, "auto", "tools"),
        ({"writes_calls": False}, "required", "tool_choice"),
        ({"writes_calls": False}, FORCED, "tool_choice"),
    ],
)
async def test_what_the_model_cannot_do_is_refused(heed: Heed, skills: Json, choice: Any, param: str) -> None:
    """A model whose template shows no tools gets none, and one whose calls are not read is not made to call."""
    heed.engine.skills = replace(heed.engine.skills, **skills)
    status, answer = await heed.post(CHAT, {"messages": BEES, "tools": [WEATHER], "tool_choice": choice})
    assert (status, answer["error"]["param"]) == (400, param)
    assert answer["error"]["code"] == "unsupported_parameter"
    await heed.ask("bees", tools=[WEATHER], tool_choice="none")


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
    assert heed.engine.requests[-1].messages[-1] == {"role": "tool", "content": "rain", "tool_call_id": "1"}


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"tool_choice": "required", "tools": []}, "tool_choice"),
        ({"tool_choice": {"type": "function", "function": {"name": "get_time"}}}, "tool_choice"),
        ({"messages": [{"role": "assistant", "content": None}]}, "messages.0"),
        ({"messages": [{"role": "assistant", "tool_calls": [{"id": "1"}]}]}, "messages.0.tool_calls.0"),
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
    assert status == 400, answer
    assert answer["error"]["param"].startswith(param)
    assert heed.engine.requests == []
