"""The program that runs the tools in a sandbox: how it is handed in, asked, and read.

Invariant: neither heed's folder nor its interpreter is visible there: it is one zip file, and any Python starts it.
"""

import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from bot.agent import inside
from bot.agent.guard import Guard
from bot.agent.sandbox import WORK, Finished, Sandbox
from bot.errors import SandboxUnavailable

PYTHONS = ("/usr/bin/python3", "/usr/local/bin/python3")  # that a sandbox may have: any will do
SHOWN_AT = "/heed.zip"  # where it sees the program
NO_PYTHON = "there is no /usr/bin/python3: apt install python3"
ANSWER_CHARS = 2_000_000  # that are kept of an answer: a preview of MOST_PREVIEW_CHARS, each an escape of 12 characters
_START = f"from pathlib import Path\nfrom bot.agent.inside.main import main\nmain(Path({WORK!r}))\n"


async def ask(
    sandbox: Sandbox,
    tool: str,
    arguments: Mapping[str, Any],
    guard: Guard,
    *,
    is_preview: bool = False,
    shown: str | None = None,
) -> Finished:
    """Return what the program has answered about a call. Raises SandboxUnavailable."""
    asked = {"tool": tool, "arguments": arguments, "is_preview": is_preview, "shown": shown}
    roomy = sandbox.within(replace(sandbox.bounds, output_chars=ANSWER_CHARS))
    command = [python(), "-I", "-W", "ignore", SHOWN_AT]  # a warning would stand in the answer
    return await roomy.run(command, json.dumps(asked).encode(), {SHOWN_AT: program()}, guard)


@cache
def program() -> bytes:
    """Return the program, as a zip file that Python starts."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("__main__.py", _START)
        for package in ("bot", "bot/agent"):
            archive.writestr(f"{package}/__init__.py", "")
        for source in files(inside).iterdir():
            if source.name.endswith(".py"):
                archive.writestr(f"bot/agent/inside/{source.name}", source.read_bytes())
    return packed.getvalue()


@cache
def python() -> str:
    """Return the interpreter that a sandbox sees. Raises SandboxUnavailable."""
    found = next((path for path in PYTHONS if Path(path).exists()), None)
    if found is None:
        raise SandboxUnavailable(NO_PYTHON)
    return found
