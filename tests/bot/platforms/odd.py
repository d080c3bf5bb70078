"""What people and machines send that no bot wants, what the log must not have after it, and every command."""

import pytest

ODD_TEXTS = {  # name: the text, and whether it is taken
    "1 MB": ("x" * 1_000_000, False),
    "lines": ("so\n" * 100_000, False),
    "surrogate": ("half \ud800", False),
    "NUL": ("nul \x00", False),
    "bidi": ("\u202eseeb\u2066 \u200f", True),
}
COMMANDS = {  # name: an argument it takes; in an order in which each finds something to do
    "start": "", "help": "", "feedback": "too long", "note": "call me Ana", "notes": "", "retry": "", "undo": "",
    "history": "5", "reset": "", "persona": "a pirate", "learning": "", "metrics": "", "privacy": "", "export": "",
    "stats": "", "users": "", "allow": "7", "block": "8", "pair": "", "pause": "", "resume": "", "rollback": "{me} 0",
    "adapters": "", "updates": "", "forget": "",
}  # fmt: skip
WRONG = ("could not be handled", "set aside", "cannot be", "could not be read", "makes no sense")


def failures(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What the log has about something that went wrong in heed."""
    messages = {record.getMessage(): record.exc_info for record in caplog.records}
    return [text for text, trace in messages.items() if trace or any(words in text for words in WRONG)]
