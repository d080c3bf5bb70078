"""The views of an agent's session: for a person in a terminal, and for a program that reads events.

Invariant: what a model or a file says is shown as it is, never as markup.
"""

import json
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from rich.console import Console
from rich.text import Text

from bot.agent.inside.result import ToolResult
from bot.agent.inside.visible import visible
from bot.agent.session import CallLesson
from bot.agent.state import Proposal
from bot.cli.terminal import heat_map

DIFF = {"+": "green", "-": "red", "@": "cyan"}
STYLES = {"words": "", "lesson": "bold green", "question": "cyan", "error": "red"}


class AgentView(Protocol):
    """A place where a session is shown: a terminal, or a program that reads events."""

    def tell(self, event: str, text: str) -> None:
        """Show something: words, progress, a question, an error."""

    def working(self) -> AbstractContextManager[object]:
        """Show for the length of a block that something is under way."""

    def teach(self, lesson: CallLesson) -> None:
        """Show what became of a correction."""

    def propose(self, proposal: Proposal) -> None:
        """Show a call that waits, and what it would change."""

    def show(self, result: ToolResult) -> None:
        """Show what a tool has answered."""


class TerminalView:
    """Shows a session to a person."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def tell(self, event: str, text: str) -> None:
        """Print a text in the colour of its kind."""
        self._console.print(Text(visible(text), style=STYLES.get(event, "dim")))

    def working(self) -> AbstractContextManager[object]:
        """Turn a wheel where the terminal has one."""
        return self._console.status("…")

    def teach(self, lesson: CallLesson) -> None:
        """Print the call in the colours of what was learned about each token, and the line."""
        if lesson.heat:
            self._console.print(heat_map([[visible(token), weight] for token, weight in lesson.heat]))
        self.tell("lesson", lesson.line)

    def propose(self, proposal: Proposal) -> None:
        """Print a call: its diff in colour, or its words."""
        call = proposal.call
        self._console.print(Text(visible(f"{call.tool} {call.arguments.get('path', '')}".rstrip()), "bold"))
        for line in proposal.preview.output.splitlines():
            self._console.print(Text(line, style=DIFF.get(line[:1], "")), soft_wrap=True)
        if proposal.preview.feedback:
            self.tell("error", proposal.preview.feedback)

    def show(self, result: ToolResult) -> None:
        """Print an output, and what to do if it is none of a success, or what to mind."""
        self._console.print(Text(result.output, style="dim"), soft_wrap=True)
        if result.feedback:
            self.tell("hint" if result.success else "error", result.feedback)


class JsonView:
    """Shows a session to a program: an object a line."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def tell(self, event: str, text: str) -> None:
        """Print an event with a text."""
        self._print({"event": event, "text": text})

    def working(self) -> AbstractContextManager[object]:
        """Say nothing: the next event comes when it is there."""
        return nullcontext()

    def teach(self, lesson: CallLesson) -> None:
        """Print what became of a correction as an event."""
        self._print({"event": "lesson", "text": lesson.line, "heat": lesson.heat})

    def propose(self, proposal: Proposal) -> None:
        """Print a call as an event."""
        call, preview = proposal.call, proposal.preview
        self._print({"event": "call", "tool": call.tool, "arguments": call.arguments, "preview": preview.output})

    def show(self, result: ToolResult) -> None:
        """Print a result as an event."""
        self._print({"event": "result", **result.__dict__})

    def _print(self, event: dict[str, object]) -> None:
        self._console.file.write(json.dumps(event, ensure_ascii=False) + "\n")
        self._console.file.flush()
