"""Calls of tools in a conversation, as chat templates take them: arguments as objects, or in words.

A template that knows nothing of calls gets them in the form of Hermes as the answer's text, so that nothing is lost.
A conversation that is learned from carries the tools of its answer in its last message, which no shortening drops.
"""

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from engine.prompts.turn_rules import TEMPLATE_ERRORS
from engine.requests import TOOLS, ChatMessage, Tool

_TOOL = {"type": "function", "function": {"name": "qwertz", "description": "", "parameters": {"type": "object"}}}


def shows_tools(tokenizer: Any) -> bool:
    """Return True if a tokenizer's chat template puts tools into the prompt."""
    asked = [{"role": "user", "content": "asdf"}]
    try:
        text = tokenizer.apply_chat_template(asked, tools=[_TOOL], tokenize=False)
    except TEMPLATE_ERRORS:
        return False
    return _TOOL["function"]["name"] in text  # type: ignore[index]


def carrying(messages: Sequence[ChatMessage], tools: Sequence[Tool]) -> list[ChatMessage]:
    """Return a conversation whose answer has these tools in its prompt."""
    if not (messages and tools):
        return list(messages)
    return [*messages[:-1], messages[-1] | {TOOLS: list(tools)}]


def carried(messages: Sequence[ChatMessage]) -> list[Tool]:
    """Return the tools that a conversation carries."""
    return next((list(message[TOOLS]) for message in messages if TOOLS in message), [])


def templated(messages: Sequence[ChatMessage], tokenizer: Any, defused: Callable[[str], str]) -> list[ChatMessage]:
    """Return messages for the chat template, every text of them made harmless by `defused`."""
    knows_calls = "tool_calls" in str(getattr(tokenizer, "chat_template", "") or "")
    turns = []
    for message in messages:
        calls = [_call(call, defused) for call in message.get("tool_calls", ())]
        turn = message | {"content": defused(message["content"])}
        for key in ("tool_calls", TOOLS):
            turn.pop(key, None)
        if calls and knows_calls:
            turn["tool_calls"] = calls
        elif calls:
            turn["content"] = "\n".join(filter(None, [turn["content"], *map(_in_words, calls)]))
        turns.append(turn)
    return turns


def _call(call: dict[str, Any], defused: Callable[[str], str]) -> dict[str, Any]:
    function = call["function"]
    arguments: Any = defused(function["arguments"])
    with suppress(ValueError, RecursionError):  # a model wrote them, and may read them as they are
        arguments = json.loads(arguments)
    return call | {"function": {"name": function["name"], "arguments": arguments}}


def _in_words(call: dict[str, Any]) -> str:
    function = call["function"]
    called = json.dumps({"name": function["name"], "arguments": function["arguments"]}, ensure_ascii=False)
    return f"<tool_call>\n{called}\n</tool_call>"
