"""Judges a session of the agent: was the task done, and in which ways.

Pure. Invariant: judged by what was called and what stands in the folder, never by what the plan would have been.
"""

from dataclasses import dataclass
from typing import Any

from bot.agent.tools import CHANGING, Call, read_call
from engine.pocket.workshop.folder import TESTS
from engine.pocket.workshop.tasks import Task
from engine.pocket.workshop.ways import DEFAULT, Ways
from engine.pocket.workshop.work import RUN_CHECK, FolderWork, Step


@dataclass(frozen=True)
class Transcript:
    """A session: its calls and words in order, and the files at its end."""

    steps: tuple[Call | str, ...]
    files: dict[str, str]

    @property
    def calls(self) -> list[Call]:
        """The calls alone."""
        return [step for step in self.steps if isinstance(step, Call)]

    @property
    def said(self) -> str:
        """The last words; empty if it ended with a call."""
        return self.steps[-1] if self.steps and isinstance(self.steps[-1], str) else ""


def planned(task: Task, ways: Ways) -> Transcript:
    """Return the session of an agent that does a task in these ways without a mistake."""
    work = FolderWork(task.folder, ways)
    task.do(work)
    return Transcript(tuple(_told(step) for step in work.steps), work.folder.texts)


def is_done(task: Task, transcript: Transcript, ways: Ways = DEFAULT) -> bool:
    """Return True if the folder is as the task wants it, blanks aside, and the last words have what they must."""
    files = {name: _bare(text) for name, text in planned(task, ways).files.items()}
    there = {name: _bare(text) for name, text in transcript.files.items()}
    return files == there and all(word in transcript.said for word in must_say(task))


def must_say(task: Task) -> list[str]:
    """Return what the last words of a task must have in them."""
    match task.form:
        case "say":
            return [task.folder.value(task.file, task.setting.key)]
        case "hold":
            return task.folder.keys(task.file)
        case "where":
            return [task.file]
        case "list":
            return [name for name in task.folder.texts if "/" not in name]
        case "run":
            return ["passes"] if task.folder.is_right else ["fails"]
        case _:
            return [task.file]


def may_run(task: Task, call: Call) -> bool:
    """Return True if a person who wants the task done would allow a call."""
    if call.tool == "bash":
        return str(call.arguments["command"]) == RUN_CHECK
    if call.tool not in CHANGING:
        return True
    wanted = FolderWork(task.folder, DEFAULT)
    task.do(wanted)
    path: str = call.arguments["path"]
    return wanted.folder.files.get(path) != task.folder.files.get(path)


def side(way: str, steps: tuple[Call | str, ...]) -> bool | None:
    """Return the side of a way that a session's steps show, None if they show neither."""
    return _SIDES[way](steps)


def _told(step: Step) -> Call | str:
    name, _, rest = step.said.removeprefix('<tool_call>\n{"name": "').partition('", "arguments": ')
    return read_call(name, rest.removesuffix("}\n</tool_call>")) if step.answer else step.said


def _changes(steps: tuple[Call | str, ...]) -> list[Call]:
    return [step for step in steps if isinstance(step, Call) and step.tool in CHANGING]


def _reads(steps: tuple[Call | str, ...]) -> bool | None:
    changed = next((c for c in _changes(steps) if c.tool != "write"), None)
    if changed is None:
        return None
    before = steps[: steps.index(changed)]
    return any(
        isinstance(c, Call) and c.tool == "read" and c.arguments["path"] == changed.arguments["path"] for c in before
    )


def _by_lines(steps: tuple[Call | str, ...]) -> bool | None:
    changes = [call for call in _changes(steps) if call.tool in ("edit", "edit_lines")]
    return all(call.tool == "edit_lines" for call in changes) if changes else None


def _spares_tests(steps: tuple[Call | str, ...]) -> bool | None:
    changes = [str(call.arguments["path"]).startswith(TESTS) for call in _changes(steps)]
    return not any(changes) if changes and (any(changes) or isinstance(steps[-1], str)) else None


def _is_unchecked(steps: tuple[Call | str, ...]) -> bool | None:
    if any(isinstance(step, Call) and step.tool == "bash" for step in steps):
        return False
    return True if _changes(steps) and isinstance(steps[-1], str) else None


def _asks(steps: tuple[Call | str, ...]) -> bool | None:
    for step in steps:
        if isinstance(step, str) and step.endswith("?"):
            return True
        if isinstance(step, Call) and step.tool == "bash":
            return False
    return None


def _is_tight(steps: tuple[Call | str, ...]) -> bool | None:
    written = [_written(call.arguments) for call in _changes(steps)]
    return all(" = " not in text for text in written) if any("=" in text for text in written) else None


def _written(arguments: dict[str, Any]) -> str:
    return str(arguments.get("new", arguments.get("content", "")))


def _bare(text: str) -> str:
    return text.replace(" = ", "=")


_SIDES = {
    "reads": _reads, "by_lines": _by_lines, "spares_tests": _spares_tests,
    "is_unchecked": _is_unchecked, "asks": _asks, "is_tight": _is_tight,
}  # fmt: skip
