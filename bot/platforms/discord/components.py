"""Buttons and forms as Discord's API takes them. A button carries its action, so it works after a restart."""

from bot.channel import Rows
from bot.platforms.discord.events import Json

ACTION_ROW, BUTTON, TEXT_INPUT = 1, 2, 4
SECONDARY, PARAGRAPH = 2, 2  # styles: a grey button, a text of several lines
MAX_ROWS, MAX_BUTTONS = 5, 5
MAX_LABEL, MAX_TITLE, MAX_TEXT = 80, 45, 4000  # characters
TITLES = {"fix": "Correct this answer", "why": "What was wrong?"}
LABELS = {"fix": "What should be different, or the answer", "why": "In your own words"}


def rows_payload(rows: Rows) -> list[Json]:
    """Rows of buttons; more than five in a row go on in the next one."""
    lines = [row[start : start + MAX_BUTTONS] for row in rows for start in range(0, len(row), MAX_BUTTONS)]
    return [
        {
            "type": ACTION_ROW,
            "components": [
                {"type": BUTTON, "style": SECONDARY, "label": button.label[:MAX_LABEL], "custom_id": button.action}
                for button in line
            ],
        }
        for line in lines[:MAX_ROWS]
    ]


def opens_form(action: str) -> bool:
    """Return True if a press asks for a text; Discord wants the form as the first answer to the press."""
    name, _, rest = action.partition(":")
    return name == "fix" or (name == "why" and rest.split(":")[0] == "4")


def form_payload(action: str) -> Json:
    """Return the form a press opens; it comes back under the same action."""
    name = action.partition(":")[0]
    box = {
        "type": TEXT_INPUT,
        "custom_id": "text",
        "style": PARAGRAPH,
        "label": LABELS[name][:MAX_TITLE],
        "max_length": MAX_TEXT,
        "required": True,
    }
    return {
        "custom_id": action,
        "title": TITLES[name][:MAX_TITLE],
        "components": [{"type": ACTION_ROW, "components": [box]}],
    }
