"""bot.agent.tools: what a model is told of tools, and how a call is read."""

import json

import pytest

from bot.agent.tools import CHANGING, KINDS, LOOKING, Call, definitions, read_call
from bot.errors import CallUnreadable


def test_every_tool_is_told_in_openais_form() -> None:
    """With a description, and one for each argument."""
    found = {tool["function"]["name"]: tool["function"] for tool in definitions()}
    assert found.keys() == KINDS.keys() == LOOKING | CHANGING | {"bash"}
    for name, function in found.items():
        parameters = function["parameters"]
        assert function["description"].endswith("."), name
        assert parameters["type"] == "object", name
        assert all(field["description"] for field in parameters["properties"].values()), name
        assert set(parameters["required"]) <= parameters["properties"].keys(), name
    assert found["edit"]["parameters"]["required"] == ["path", "old", "new"]


def test_a_call_is_read_with_what_it_leaves_out() -> None:
    """Defaults are filled in."""
    assert read_call("read", '{"path": "a.txt"}') == Call("read", {"path": "a.txt", "offset": 1, "limit": 400})


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("rm", "{}", "There is no tool rm. There are: read, write, edit, edit_lines, glob, grep, bash."),
        ("", "{}", "There is no tool without a name."),
        ("read", '{"path": ', "The arguments are no JSON object"),
        ("read", "[" * 100_000, "The arguments are no JSON object"),
        ("read", "[]", "read: Input should be"),
        ("read", "null", "read: Input should be"),
        ("read", "{}", "path: Field required"),
        ("read", '{"path": 5}', "path: Input should be a valid string"),
        ("read", '{"path": "a", "offset": 0}', "offset: Input should be greater than or equal to 1"),
        ("read", '{"path": "a", "mode": "w"}', "mode: Extra inputs are not permitted"),
        ("bash", '{"command": ""}', "command: String should have at least 1 character"),
        ("bash", '{"command": "ls\\u0000"}', "command: A command cannot contain the character NUL"),
    ],
)
def test_the_model_is_told_what_is_wrong(name: str, arguments: str, said: str) -> None:
    """In a sentence, and nothing is run."""
    with pytest.raises(CallUnreadable) as refused:
        read_call(name, arguments)
    assert said in str(refused.value)
    assert len(str(refused.value)) < 400


def test_what_is_told_is_json() -> None:
    """A chat template writes it into the prompt."""
    assert json.loads(json.dumps(definitions())) == definitions()
