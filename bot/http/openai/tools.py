"""Tools in a chat call: what the model may ask for, and which choices among them heed can honour.

Pure. The chat template shows tools to the model; whether it asks for one, and how, is the model's own: what it writes
comes back as text. So nothing can be forced, and a choice that would is refused.
"""

import json

from bot.core.gateway import check_text
from bot.errors import InvalidField
from bot.http.protocol import bodies
from engine.requests import Tool

HONOURED = (None, "auto", "none")


def tools_of(body: bodies.ChatBody, limit_chars: int) -> list[Tool]:
    """The tools that the model is shown: all, or none where the choice is none. Raises InvalidField."""
    if body.tool_choice not in HONOURED:
        raise InvalidField("heed cannot make the model call a tool: tool_choice is auto or none", "tool_choice")
    try:
        tools = [tool.model_dump(exclude_unset=True) for tool in body.tools or []]
        written = json.dumps(tools, ensure_ascii=False, allow_nan=False)
    except (ValueError, RecursionError):
        raise InvalidField("a tool holds what JSON has no word for, or too many levels of it", "tools") from None
    check_text(written.replace("\\u0000", "\x00"), limit_chars, "tools")
    return [] if body.tool_choice == "none" else tools
