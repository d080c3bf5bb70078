"""engine.host.tool_calls: calls in an answer's text, read by vLLM's own parsers."""

import json
from typing import Any

import pytest

from engine.host.answer_form import AnswerForm
from engine.host.tool_calls import HERMES, LLAMA, QWEN_XML, ToolCallReader, call_format
from engine.requests import GenerateRequest, Sampling, ToolCallPiece
from tests.tiny_model import CHAT_TEMPLATE, HERMES_TEMPLATE, TOOLS_TEMPLATE, tiny_tokenizer

TOOL = {
    "type": "function",
    "function": {"name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}},
}
ROME, OSLO = '{"name": "weather", "arguments": {"city": "Rome"}}', '{"name": "weather", "arguments": {"city": "Oslo"}}'
QWEN = "<tool_call>\n<function=weather>\n<parameter=city>\nRome\n</parameter>\n</function>\n</tool_call>"


def tokenizer_of(template: str, *tokens: str) -> Any:
    """Return a tokenizer with a chat template and further special tokens."""
    tokenizer = tiny_tokenizer()
    tokenizer.chat_template = template
    tokenizer.add_special_tokens({"additional_special_tokens": list(tokens)})
    return tokenizer


def reader(form: str, tokenizer: Any, **sampling: Any) -> ToolCallReader:
    """Return a reader of one answer."""
    request = GenerateRequest("ana", [], Sampling(**sampling), tools=[TOOL])
    calls = AnswerForm.of(form, tokenizer, request).calls
    assert calls is not None
    return calls


def read(calls: ToolCallReader, tokenizer: Any, text: str, size: int) -> tuple[str, list[ToolCallPiece]]:
    """Return what is said outside of calls, and all pieces of calls, of a text that comes so many tokens at a time."""
    said, pieces = "", list[ToolCallPiece]()
    ids = tokenizer.encode(text)
    parts = [ids[at : at + size] for at in range(0, len(ids), size)]
    for place, part in enumerate(parts):
        words, more = calls.take(tokenizer.decode(part), part, is_last=place == len(parts) - 1)
        said, pieces = said + words, pieces + more
    return said, pieces


def called(calls: ToolCallReader) -> list[tuple[str, Any]]:
    """Return the name and the arguments of each call."""
    return [(call["function"]["name"], json.loads(call["function"]["arguments"])) for call in calls.whole]


@pytest.mark.parametrize(
    ("template", "tokens", "expected"),
    [
        (CHAT_TEMPLATE, (), ""),
        (TOOLS_TEMPLATE, (), ""),
        (HERMES_TEMPLATE, (), HERMES),
        (HERMES_TEMPLATE + "<function=", (), QWEN_XML),
        (TOOLS_TEMPLATE + '"parameters"', ("<|python_tag|>",), LLAMA),
        (TOOLS_TEMPLATE + '"parameters"', (), ""),
    ],
)
def test_the_template_tells_the_form(template: str, tokens: tuple[str, ...], expected: str) -> None:
    """A form is known by what the template writes; Llama's by its tag, too."""
    assert call_format(tokenizer_of(template, *tokens)) == expected


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize(
    ("form", "text"),
    [
        (HERMES, f"Sure.\n<tool_call>\n{ROME}\n</tool_call>\n<tool_call>\n{OSLO}\n</tool_call>"),
        (QWEN_XML, f"Sure.\n{QWEN}\n{QWEN.replace('Rome', 'Oslo')}"),
    ],
)
def test_calls_are_the_same_in_pieces_of_any_size(form: str, text: str, size: int) -> None:
    """Both calls are found, the words before them are said, and the pieces join to the whole calls."""
    tokenizer = tokenizer_of(HERMES_TEMPLATE, "<tool_call>", "</tool_call>")
    calls = reader(form, tokenizer)
    said, pieces = read(calls, tokenizer, text, size)
    assert said.strip() == "Sure."
    assert called(calls) == [("weather", {"city": "Rome"}), ("weather", {"city": "Oslo"})]
    for place, call in enumerate(calls.whole):
        own = [piece for piece in pieces if piece["index"] == place]
        assert (own[0]["id"], own[0]["function"]["name"]) == (call["id"], "weather")
        assert "".join(piece["function"]["arguments"] for piece in own) == call["function"]["arguments"]


def test_llamas_calls_are_read() -> None:
    """Llama writes a call as an object alone, with parameters."""
    tokenizer = tokenizer_of(TOOLS_TEMPLATE, "<|python_tag|>")
    calls = reader(LLAMA, tokenizer)
    said, _ = read(calls, tokenizer, '{"name": "weather", "parameters": {"city": "Rome"}}', 5)
    assert (said, called(calls)) == ("", [("weather", {"city": "Rome"})])


@pytest.mark.parametrize("text", ["No call.", "An end like <tool", "<tool_call>{broken", "<tool_call>{}</tool_call>"])
@pytest.mark.parametrize("size", [1, 1000])
def test_what_is_no_call_is_text(text: str, size: int) -> None:
    """Nothing of an answer is lost."""
    tokenizer = tokenizer_of(HERMES_TEMPLATE)
    calls = reader(HERMES, tokenizer)
    assert read(calls, tokenizer, text, size) == (text, [])


def test_one_call_alone_where_one_was_asked_for() -> None:
    """Without parallel calls the first counts."""
    tokenizer = tokenizer_of(HERMES_TEMPLATE)
    calls = reader(HERMES, tokenizer, parallel_tool_calls=False)
    read(calls, tokenizer, f"<tool_call>{ROME}</tool_call><tool_call>{OSLO}</tool_call>", 9)
    assert called(calls) == [("weather", {"city": "Rome"})]
