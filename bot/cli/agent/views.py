"""What shows a session of an agent: to a person in a terminal, or to a program as events.

Invariant: what a model or a file says is shown as it is, never as markup.
"""

import json
from typing import Protocol

from rich.console import Console
from rich.text import Text

from bot.agent.inside.result import ToolResult
from bot.agent.session import Proposal
from bot.agent.visible import visible

DIFF = {"+": "green", "-": "red", "@": "cyan"}
STYLES = {"words": "", "lesson": "bold green", "question": "cyan", "error": "red"}


class AgentView(Protocol):
    """What shows a session: a terminal, or a program that reads events."""

    def tell(self, event: str, text: str) -> None:
        """Show something: words, a lesson, progress, a question, an error."""

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

    def propose(self, proposal: Proposal) -> None:
        """Print a call: its diff in colour, or its words."""
        self._console.print(Text(f"{proposal.call.tool} {proposal.call.arguments.get('path', '')}".rstrip(), "bold"))
        for line in proposal.preview.output.splitlines():
            self._console.print(Text(line, style=DIFF.get(line[:1], "")), soft_wrap=True)
        if proposal.preview.feedback:
            self.tell("error", proposal.preview.feedback)

    def show(self, result: ToolResult) -> None:
        """Print an output, and what to do if it is none of a success."""
        self._console.print(Text(result.output, style="dim"), soft_wrap=True)
        if not result.success:
            self.tell("error", result.feedback)


class JsonView:
    """Shows a session to a program: an object a line."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def tell(self, event: str, text: str) -> None:
        """Print an event with a text."""
        self._print({"event": event, "text": text})

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
