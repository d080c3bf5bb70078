"""engine.prompts.tool_messages: calls of tools in a conversation, as chat templates take them."""

import pytest

from engine.prompts import tool_messages
from engine.prompts.builder import PromptBuilder
from engine.prompts.hindsight import with_notes
from engine.requests import ChatMessage
from tests.tiny_model import CHAT_TEMPLATE, HERMES_TEMPLATE, TOOLS_TEMPLATE, tiny_tokenizer

CALL = {"id": "1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Rome"}'}}
TURNS: list[ChatMessage] = [
    {"role": "user", "content": "weather?"},
    {"role": "assistant", "content": "", "tool_calls": [CALL]},
    {"role": "tool", "content": "rain", "tool_call_id": "1"},
]


def prompt(template: str, turns: list[ChatMessage]) -> str:
    """Return a conversation as the model reads it."""
    tokenizer = tiny_tokenizer()
    tokenizer.chat_template = template
    return str(tokenizer.decode(PromptBuilder(tokenizer, 1024).prompt_token_ids(turns)))


@pytest.mark.parametrize(
    ("template", "expected"), [(CHAT_TEMPLATE, False), (TOOLS_TEMPLATE, True), (HERMES_TEMPLATE, True), (None, False)]
)
def test_a_template_shows_tools_or_not(template: str | None, expected: bool) -> None:
    """It is told by a tool that is shown to it."""
    tokenizer = tiny_tokenizer()
    tokenizer.chat_template = template
    assert tool_messages.shows_tools(tokenizer) is expected


def test_a_conversation_carries_the_tools_of_its_answer() -> None:
    """In its last message; they are in the prompt, whichever way it is built, and the template sees no such message."""
    tokenizer = tiny_tokenizer()
    tokenizer.chat_template = TOOLS_TEMPLATE
    tool = {"type": "function", "function": {"name": "weather", "description": "", "parameters": {"type": "object"}}}
    prompts = PromptBuilder(tokenizer, 1024)
    turns = [{"role": "user", "content": "hi"}]
    carrying = tool_messages.carrying(turns, [tool])
    assert tool_messages.carried(carrying) == [tool]
    assert tool_messages.carrying(turns, []) == turns
    assert tool_messages.carried(turns) == tool_messages.carrying([], [tool]) == []
    wanted = prompts.prompt_token_ids(turns, tools=[tool])
    noted = with_notes(carrying, ["be brief"])
    assert prompts.prompt_token_ids(carrying) == wanted != prompts.prompt_token_ids(turns)
    assert prompts.training_prompts([carrying, noted], 8)[0] == wanted
    assert "weather" in tokenizer.decode(prompts.training_prompts([carrying, noted], 8)[1])


@pytest.mark.parametrize("template", [HERMES_TEMPLATE, CHAT_TEMPLATE], ids=["knows calls", "does not"])
def test_a_call_is_in_the_prompt(template: str) -> None:
    """Name and arguments are there once, as an object and not as a text in quotes, also if no template knows calls."""
    assert '<tool_call>\n{"name": "weather", "arguments": {"city": "Rome"}}\n</tool_call>' in prompt(template, TURNS)


def test_words_stand_before_a_call() -> None:
    """An answer may have both."""
    said = [TURNS[0], TURNS[1] | {"content": "I look."}, TURNS[2]]
    assert "I look.\n<tool_call>" in prompt(CHAT_TEMPLATE, said)


@pytest.mark.parametrize("arguments", ["{broken", "[" * 100_000])
def test_arguments_that_are_no_json_stay_a_text(arguments: str) -> None:
    """A model may have written them badly; they are read as they are."""
    call = CALL | {"function": {"name": "weather", "arguments": arguments}}
    (turn,) = tool_messages.templated([TURNS[1] | {"tool_calls": [call]}], _knowing(), str)
    assert turn["tool_calls"][0]["function"]["arguments"] == arguments


def test_special_tokens_in_arguments_stay_text() -> None:
    """What a caller writes into arguments ends no turn."""
    call = CALL | {"function": {"name": "weather", "arguments": '{"city": "<|im_end|>"}'}}
    plain = prompt(HERMES_TEMPLATE, TURNS).count("<|im_end|>")
    assert prompt(HERMES_TEMPLATE, [TURNS[0], TURNS[1] | {"tool_calls": [call]}, TURNS[2]]).count("<|im_end|>") == plain


def _knowing() -> object:
    tokenizer = tiny_tokenizer()
    tokenizer.chat_template = HERMES_TEMPLATE
    return tokenizer
