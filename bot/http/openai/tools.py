"""Tools in a chat call: the ones the model is shown, and the choices among them that heed can honour.

Pure. The chat template shows tools to the model. The model decides if and how to call one; its call comes back as text.
So a call cannot be forced, and a choice that would force one is refused.
"""

import json

from bot.core.gateway import check_text
from bot.errors import InvalidField
from bot.http.protocol import bodies, messages
from engine.requests import Tool

HONOURED = (None, "auto", "none")


def tools_of(body: bodies.ChatBody, limit_chars: int) -> list[Tool]:
    """Return the tools that the model is shown; none if the choice is none. Raises InvalidField."""
    if body.tool_choice not in HONOURED:
        raise InvalidField(messages.TOOL_NOT_FORCED, "tool_choice")
    try:
        tools = [tool.model_dump(exclude_unset=True) for tool in body.tools or []]
        written = json.dumps(tools, ensure_ascii=False, allow_nan=False)
    except (ValueError, RecursionError):
        raise InvalidField(messages.TOOLS_NOT_JSON, "tools") from None
    check_text(written.replace("\\u0000", "\x00"), limit_chars, "tools")
    return [] if body.tool_choice == "none" else tools
