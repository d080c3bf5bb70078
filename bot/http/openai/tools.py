"""Tools in a chat call: the ones the model is shown, and the choice among them.

Pure. The chat template shows tools to the model. Its calls are read by vLLM's parsers where the template tells of a
form that these know, else they come back as text. What the model that runs cannot do is refused by name.
"""

import json

from bot.core.gateway import check_text
from bot.errors import InvalidField, NotSupported
from bot.http.protocol import bodies, messages
from engine.requests import ModelSkills, Tool

FREE = ("auto", "none")


def choice_of(body: bodies.ChatBody) -> str:
    """Return "auto", "required", or the name of the function that has to be called."""
    choice = body.tool_choice or "auto"
    if isinstance(choice, str):
        return choice
    return choice.function.name


def tools_of(body: bodies.ChatBody, skills: ModelSkills, limit_chars: int) -> list[Tool]:
    """Return the tools that the model is shown; none if the choice is none. Raises InvalidField, NotSupported."""
    choice = choice_of(body)
    named = [tool.function.name for tool in body.tools or ()]
    if choice not in (*FREE, "required", *named) or (choice == "required" and not named):
        raise InvalidField(messages.NO_SUCH_TOOL, "tool_choice")
    if named and choice != "none" and not skills.shows_tools:
        raise NotSupported(messages.NO_TOOLS, "tools")
    if choice not in FREE and not skills.writes_calls:
        raise NotSupported(messages.TOOL_NOT_FORCED, "tool_choice")
    try:
        tools = [tool.model_dump(exclude_unset=True) for tool in body.tools or []]
        written = json.dumps(tools, ensure_ascii=False, allow_nan=False)
    except (ValueError, RecursionError):
        raise InvalidField(messages.TOOLS_NOT_JSON, "tools") from None
    check_text(written.replace("\\u0000", "\x00"), limit_chars, "tools")
    return [] if body.tool_choice == "none" else tools
