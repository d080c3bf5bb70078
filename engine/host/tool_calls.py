"""Calls of tools in the text of an answer, read by vLLM's own parsers while it is written.

The chat template tells which form a model writes (`call_format`). Invariant: nothing of an answer is lost: what turns
out to be no call is text. vLLM is imported inside the functions.
"""

import uuid
from typing import Any

from engine.requests import ToolCallPiece

QWEN_XML, HERMES, LLAMA = "qwen3_xml", "hermes", "llama3_json"  # vLLM's names of the parsers
_PYTHON_TAG = "<|python_tag|>"


def call_format(tokenizer: Any) -> str:
    """Return the name of vLLM's parser for the calls that a model writes, empty if its template tells of none."""
    template = str(getattr(tokenizer, "chat_template", "") or "")
    if "<tool_call>" in template:
        return QWEN_XML if "<function=" in template else HERMES
    is_llama = _PYTHON_TAG in tokenizer.get_vocab() and '"parameters"' in template
    return LLAMA if is_llama else ""


def parser_of(name: str, tokenizer: Any, request: Any) -> Any:
    """Return a new parser of vLLM's for one answer to one of vLLM's chat requests. Blocking the first time: seconds."""
    from vllm.parser.parser_manager import ParserManager

    kind: Any = ParserManager.get_parser(name, enable_auto_tools=True)
    return kind(tokenizer, request.tools)


class ToolCallReader:
    """The calls in one answer, piece by piece."""

    def __init__(self, parser: Any, request: Any) -> None:
        self._parser = parser
        self._request = request
        self._text = self._said = ""
        self._calls: list[ToolCallPiece] = []

    @property
    def whole(self) -> list[ToolCallPiece]:
        """The calls so far, each joined from its pieces."""
        return self._calls

    def take(self, text: str, token_ids: list[int], *, is_last: bool) -> tuple[str, list[ToolCallPiece]]:
        """Return the text outside of calls, and the pieces of calls, that another piece of the answer brings."""
        self._text += text
        delta = self._parser.parse_delta(text, token_ids, self._request, [], finished=is_last)
        said = (delta.content or "") if delta is not None else ""
        given = list(delta.tool_calls or ()) if delta is not None else []
        pieces = [piece for call in given if (piece := self._piece(call)) is not None]
        self._said += said
        if is_last and not self._calls and self._text.startswith(self._said):
            rest = self._text.removeprefix(self._said)  # held back as the beginning of a call
            self._said, said = self._text, said + rest
        return said, pieces

    def _piece(self, call: Any) -> ToolCallPiece | None:
        """Take in a piece of a call. Return it in OpenAI's form, or None for a second call where one was asked for."""
        if call.index and self._request.parallel_tool_calls is False:
            return None
        function = call.function
        name, arguments = (function.name, function.arguments or "") if function is not None else (None, "")
        if call.index >= len(self._calls):
            made = {"id": call.id or f"call_{uuid.uuid4().hex}", "type": "function"}
            self._calls.append({**made, "function": {"name": name or "", "arguments": arguments}})
            return {"index": call.index, **made, "function": {"name": name or "", "arguments": arguments}}
        self._calls[call.index]["function"]["arguments"] += arguments
        return {"index": call.index, "function": {"arguments": arguments}}
