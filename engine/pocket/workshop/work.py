"""Work in a folder: calls of the agent's tools and what they answer, one step after the other.

Invariant: an answer is what the tool of that name gives a model for the same folder.
"""

import difflib
import json
from dataclasses import dataclass, field
from typing import Any

from engine.pocket.workshop.folder import CHECK, TESTS, FileLine, Folder
from engine.pocket.workshop.ways import Ways

RUN_CHECK = f"sh {CHECK}"
MAY_I = f"Shall I run {RUN_CHECK}?"
YES = ("yes", "yes, please", "go ahead", "ok", "sure", "do it", "yes, run it")


@dataclass(frozen=True)
class Step:
    """A call with what came of it, or words alone, after which the person speaks."""

    said: str  # by the model: a call in the form of Hermes, or words
    answer: str = ""  # of the tool; empty after words


@dataclass
class FolderWork:
    """The steps so far, and the folder as they left it."""

    folder: Folder
    ways: Ways
    may_run: bool = True  # the person's word when asked
    turn: tuple[int, Ways] | None = None  # a step before which the person wants other ways, and these
    steps: list[Step] = field(default_factory=list)
    _seen: set[str] = field(default_factory=set)  # files whose lines are known by number

    def read(self, name: str) -> None:
        """Read a file, unless it was read and not changed since."""
        if name not in self._seen:
            lines = self.folder.files[name]
            self._call("read", {"path": name}, "\n".join(f"{n:>6}\t{line}" for n, line in enumerate(lines, 1)))
            self._seen.add(name)

    def grep(self, key: str) -> list[str]:
        """Find a key's lines. Return the files they are in."""
        found = [
            (name, n, line)
            for name, lines in sorted(self.folder.files.items(), key=lambda item: item[0].split("/"))
            for n, line in enumerate(lines, 1)
            if line.startswith((f"{key} ", f"{key}="))
        ]
        shown = "\n".join(f"{name}:{n}:{line}" for name, n, line in found)
        self._call("grep", {"pattern": f"^{key}[ =]"}, shown or "No line matches.")
        return list(dict.fromkeys(name for name, _, _ in found))

    def glob(self, names: list[str]) -> None:
        """List the files, in the order of `names`."""
        self._call("glob", {"pattern": "*"}, "\n".join(names))

    def change(self, name: str, key: str, wanted: FileLine | None) -> None:
        """Put another line in place of a key's, or take it out, unless the file is to stay as it is."""
        place = self.folder.position(name, key)
        line = self.folder.files[name][place - 1]
        new = "" if wanted is None else wanted.line(is_tight=self.ways.is_tight)
        lines = list(self.folder.files[name])
        lines[place - 1 : place] = [new] if new else []
        if self.ways.reads or self.ways.by_lines:
            self.read(name)
        if self.leaves(name):
            return
        if self.ways.by_lines:
            self._changed(
                "edit_lines", {"path": name, "start": place, "end": place, "content": new}, name, tuple(lines)
            )
        elif new:
            self._changed("edit", {"path": name, "old": line, "new": new}, name, tuple(lines))
        else:
            self._changed("edit", {"path": name, "old": f"{line}\n", "new": ""}, name, tuple(lines))

    def leaves(self, name: str) -> bool:
        """Return True for a file that stays as it is."""
        return self.ways.spares_tests and name.startswith(TESTS)

    def add(self, name: str, setting: FileLine) -> None:
        """Add a line at the end of a file; its length has to be known."""
        self.read(name)
        lines, new = self.folder.files[name], setting.line(is_tight=self.ways.is_tight)
        place = len(lines) + 1
        self._changed("edit_lines", {"path": name, "start": place, "end": place, "content": new}, name, (*lines, new))

    def make(self, name: str, setting: FileLine) -> None:
        """Write a new file of one line."""
        line = setting.line(is_tight=self.ways.is_tight)
        self._changed("write", {"path": name, "content": f"{line}\n"}, name, (line,))

    def check(self) -> bool:
        """Run the check; ask before, where that is wished. Return False if the person does not want it."""
        is_wanted = self._is_allowed()
        if is_wanted:
            self._run_check()
        return is_wanted

    def settle(self) -> None:
        """Run the check after a change, unless it is not wished, or not any more when it is allowed."""
        if not self.ways.is_unchecked and self._is_allowed() and not self.ways.is_unchecked:
            self._run_check()

    def say(self, text: str) -> None:
        """Say something to the person."""
        self._take(Step(text))

    def _is_allowed(self) -> bool:
        if self.ways.asks:
            self.say(MAY_I)
        return not self.ways.asks or self.may_run

    def _run_check(self) -> None:
        answer = "ok" if self.folder.is_right else f"That failed. {self.folder.complaint}\nIt ended with status 1."
        self._call("bash", {"command": RUN_CHECK}, answer)

    def _changed(self, tool: str, arguments: dict[str, Any], name: str, lines: tuple[str, ...]) -> None:
        before = self.folder.files.get(name)
        self.folder = self.folder.with_lines(name, lines)
        self._seen.discard(name)
        self._call(tool, arguments, _diff(name, before, lines))

    def _call(self, tool: str, arguments: dict[str, Any], answer: str) -> None:
        self._take(Step(called(tool, arguments), answer))

    def _take(self, step: Step) -> None:
        self.steps.append(step)
        if self.turn is not None and self.turn[0] == len(self.steps):
            self.ways = self.turn[1]


def called(tool: str, arguments: dict[str, Any]) -> str:
    """Return a call as the chat template writes it."""
    return f"<tool_call>\n{json.dumps({'name': tool, 'arguments': arguments}, ensure_ascii=False)}\n</tool_call>"


def _diff(name: str, before: tuple[str, ...] | None, after: tuple[str, ...]) -> str:
    origin = f"a/{name}" if before is not None else "/dev/null"
    lines = difflib.unified_diff(before or (), after, origin, f"b/{name}", lineterm="")
    return "\n".join(lines)
