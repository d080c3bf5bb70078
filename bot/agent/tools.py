"""The tools of an agent: what each is called, does and takes, as the model is told; and the reading of a call.

Pure. Invariant: a call that reaches a tool has every argument, of the right kind.
"""

import json
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from pydantic_core import PydanticCustomError

from bot.errors import CallUnreadable
from engine.requests import Tool

UNKNOWN = "There is no tool {}. There are: {}."
NOT_JSON = "The arguments are no JSON object: {}. Write them again."
WRONG = "{}: {}. Write the call again."


class Arguments(BaseModel):
    """The arguments of a call; a tool's own class has the words that the model reads of it."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    tool: ClassVar[str]


class ReadFile(Arguments):
    """Read a text file. Lines come with their numbers."""

    tool = "read"
    path: str = Field(description="the file, from the top of the workspace")
    offset: int = Field(default=1, ge=1, description="the first line that is shown")
    limit: int = Field(default=400, ge=1, description="lines at most")


class WriteFile(Arguments):
    """Write a whole file, in place of what is there."""

    tool = "write"
    path: str = Field(description="the file, from the top of the workspace")
    content: str = Field(description="its whole text")


class EditFile(Arguments):
    """Replace a passage of a file that stands there once."""

    tool = "edit"
    path: str = Field(description="the file, from the top of the workspace")
    old: str = Field(description="the passage as it stands, blanks included")
    new: str = Field(description="what comes in its place")
    all: bool = Field(default=False, description="replace it wherever it stands")


class EditLines(Arguments):
    """Replace lines of a file by their numbers; one past the last line adds lines."""

    tool = "edit_lines"
    path: str = Field(description="the file, from the top of the workspace")
    start: int = Field(ge=1, description="the first line, counted from 1")
    end: int = Field(ge=0, description="the last line, itself replaced, too")
    content: str = Field(description="the new lines")


class FindFiles(Arguments):
    """Find files by their names, the newest first."""

    tool = "glob"
    pattern: str = Field(description="such as **/*.py")


class FindLines(Arguments):
    """Find lines by a regular expression."""

    tool = "grep"
    pattern: str = Field(description="a regular expression")
    path: str = Field(default="", description="a file or folder to look in, empty for all")


class RunCommand(Arguments):
    """Run a command in the workspace, without a network, for 30 seconds at most."""

    tool = "bash"
    command: str = Field(min_length=1, description="the command line")

    @field_validator("command")
    @classmethod
    def _check_command(cls, command: str) -> str:
        if "\0" in command:
            raise PydanticCustomError("no_command", "A command cannot contain the character NUL")
        return command


KINDS: dict[str, type[Arguments]] = {
    kind.tool: kind for kind in (ReadFile, WriteFile, EditFile, EditLines, FindFiles, FindLines, RunCommand)
}  # fmt: skip
LOOKING = frozenset({"read", "glob", "grep"})  # change nothing
CHANGING = frozenset({"write", "edit", "edit_lines"})


@dataclass(frozen=True)
class Call:
    """One call of a tool, read and found whole."""

    tool: str
    arguments: dict[str, Any]


def definitions() -> list[Tool]:
    """Return the tools in OpenAI's form."""
    return [
        {
            "type": "function",
            "function": {
                "name": name,
                "description": (kind.__doc__ or "").strip(),
                "parameters": _schema(kind),
            },
        }
        for name, kind in KINDS.items()
    ]


def read_call(name: str, arguments: str) -> Call:
    """Return a call as a model wrote it. Raises CallUnreadable with what is wrong."""
    kind = KINDS.get(name)
    if kind is None:
        raise CallUnreadable(UNKNOWN.format(name[:50] or "without a name", ", ".join(KINDS)))
    try:
        given = json.loads(arguments)
    except (ValueError, RecursionError) as error:
        raise CallUnreadable(NOT_JSON.format(str(error)[:100])) from None
    try:
        return Call(name, kind.model_validate(given).model_dump())
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or name
        raise CallUnreadable(WRONG.format(where, first["msg"])) from None


def _schema(kind: type[Arguments]) -> dict[str, Any]:
    schema = kind.model_json_schema()
    fields = {name: {k: v for k, v in field.items() if k != "title"} for name, field in schema["properties"].items()}
    return {"type": "object", "properties": fields, "required": schema.get("required", [])}
