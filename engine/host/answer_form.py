"""The form that an answer has to have: calls of tools and JSON by a schema, in the grammars of vLLM's own server.

Invariant: JSON has at most one blank in a row, for small models would write blanks to the end of their answer. vLLM is
imported inside the functions.
"""

import json
from dataclasses import dataclass
from typing import Any

from engine.host.tool_calls import ToolCallReader, parser_of
from engine.requests import GenerateRequest, Sampling

JSON = "json_schema"  # xgrammar's name for a part of a grammar


@dataclass(frozen=True)
class AnswerForm:
    """The form of one answer."""

    is_bound: bool = False  # to a grammar
    structural_tag: str = ""
    keeps_special: bool = False  # the marks of calls may be special tokens
    calls: ToolCallReader | None = None

    @classmethod
    def of(cls, call_format: str, tokenizer: Any, request: GenerateRequest) -> "AnswerForm":
        """Return the form of an answer by a model that writes its calls in `call_format`, empty for none.

        Blocking where there is a form; the first time for seconds.
        """
        schema = request.sampling.json_schema
        if not request.tools or not call_format:
            return cls(schema is not None, "" if schema is None else _schema_tag(schema))
        asked = _as_vllms(request)
        parser = parser_of(call_format, tokenizer, asked)
        tag = _structural_tag(parser, asked)
        if schema is not None and not tag:
            tag = _schema_tag(schema)
        return cls(bool(tag) or schema is not None, tag, keeps_special=True, calls=ToolCallReader(parser, asked))


def _as_vllms(request: GenerateRequest) -> Any:
    """Return the request as vLLM's own server would get it, without its conversation."""
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest

    sampling = request.sampling
    schema = {"name": "answer", "schema": sampling.json_schema, "strict": True}
    return ChatCompletionRequest.model_validate(
        {
            "messages": [],
            "tools": request.tools,
            "tool_choice": _choice(sampling),
            "parallel_tool_calls": sampling.parallel_tool_calls,
            **({"response_format": {"type": "json_schema", "json_schema": schema}} if sampling.json_schema else {}),
        }
    )


def _choice(sampling: Sampling) -> Any:
    if sampling.tool_choice in ("auto", "required"):
        return sampling.tool_choice
    return {"type": "function", "function": {"name": sampling.tool_choice}}


def _structural_tag(parser: Any, request: Any) -> str:
    """Return the grammar of the calls that vLLM's server would use, as JSON; empty if the model is free."""
    outputs = parser.adjust_request(request.model_copy()).structured_outputs
    if outputs is None or outputs.structural_tag is None:
        return ""
    return json.dumps(_with_few_blanks(json.loads(outputs.structural_tag)))


def _schema_tag(schema: dict[str, Any]) -> str:
    """Return a schema as a grammar, empty if it has what xgrammar does not know: vLLM has others for these."""
    from vllm.v1.structured_output.backend_xgrammar import has_xgrammar_unsupported_json_features

    if has_xgrammar_unsupported_json_features(schema):
        return ""
    return json.dumps(_with_few_blanks({"type": "structural_tag", "format": {"type": JSON, "json_schema": schema}}))


def _with_few_blanks(node: Any) -> Any:
    """Return a grammar in which no JSON has more than one blank in a row."""
    if isinstance(node, list):
        return [_with_few_blanks(entry) for entry in node]
    if not isinstance(node, dict):
        return node
    if node.get("type") == JSON and "json_schema" in node:
        return node | {"max_whitespace_cnt": 1}
    return {name: _with_few_blanks(value) for name, value in node.items()}
