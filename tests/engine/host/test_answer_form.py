"""engine.host.answer_form: the grammar that an answer is held to."""

import json
from typing import Any

import pytest

from engine.host.answer_form import AnswerForm
from engine.host.tool_calls import HERMES
from engine.requests import GenerateRequest, Sampling
from tests.engine.host.test_tool_calls import TOOL
from tests.tiny_model import tiny_tokenizer

SCHEMA = {"type": "object", "properties": {"a": {"type": "boolean"}}}
STRICT: dict[str, Any] = {**TOOL, "function": {**TOOL["function"], "strict": True}}  # type: ignore[dict-item]


def form_of(tools: list[Any], call_format: str = HERMES, **sampling: Any) -> AnswerForm:
    """Return the form of an answer."""
    return AnswerForm.of(call_format, tiny_tokenizer(), GenerateRequest("ana", [], Sampling(**sampling), tools=tools))


@pytest.mark.parametrize(("schema", "expected"), [(None, False), (SCHEMA, True)])
def test_without_tools_a_schema_binds(schema: Any, expected: bool) -> None:
    """A schema is a grammar that allows no row of blanks; nothing reads calls."""
    form = form_of([], json_schema=schema)
    assert (form.is_bound, "max_whitespace_cnt" in form.structural_tag, form.calls) == (expected, expected, None)


def test_a_schema_that_xgrammar_does_not_know_is_left_to_vllm() -> None:
    """vLLM chooses another of its backends for it."""
    form = form_of([], json_schema={"type": "array", "uniqueItems": True})
    assert (form.is_bound, form.structural_tag) == (True, "")


def test_a_model_whose_calls_are_not_read_is_free() -> None:
    """Its calls come back as text."""
    form = form_of([TOOL], "")
    assert (form.is_bound, form.calls) == (False, None)


def test_a_free_choice_is_free() -> None:
    """A tool that is not strict is offered without a grammar, and its calls are read."""
    form = form_of([TOOL])
    assert (form.is_bound, form.structural_tag, form.keeps_special) == (False, "", True)
    assert form.calls is not None


@pytest.mark.parametrize("choice", ["required", "weather"])
def test_a_forced_call_is_a_grammar(choice: str) -> None:
    """The grammar begins with the call of the tool."""
    form = form_of([TOOL], tool_choice=choice)
    assert form.is_bound
    assert "weather" in json.dumps(json.loads(form.structural_tag)["format"]["tags"])


def test_a_strict_tool_or_a_schema_is_one_grammar() -> None:
    """With both the answer is a call or fits the schema, as on vLLM's own server."""
    form = form_of([STRICT], json_schema=SCHEMA)
    assert form.structural_tag.count("max_whitespace_cnt") >= 2
    assert "boolean" in form.structural_tag
    assert "weather" in form.structural_tag
