"""A person at work with the agent: gives a task, allows what is harmless, denies what is not as they want it.

Invariant: no call runs that the person would have denied: any command but the check, and a change of a file that the
task is not about.
"""

import asyncio
import json
import os
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bot.agent.sandbox import Sandbox, account
from bot.agent.session import AgentSession, AgentWords, Step
from bot.agent.state import Proposal
from bot.agent.toolbox import Toolbox
from bot.agent.tools import Call
from engine.pocket.workshop.tasks import Task
from engine.pocket.workshop.ways import Direction
from evals.agent.mind import MeasuredMind
from evals.agent.verdict import Transcript, is_done, may_run, side
from evals.client import Client, Notes

MAX_STEPS = 14
YES = "yes"
TOOLS_AS = "nobody" if os.geteuid() == 0 else ""  # no tool runs as root
OBEYED = "obeyed"


Told = list[Call | str]


@dataclass(frozen=True)
class Denial:
    """A correction of a call, and what came of it."""

    status: str  # of the lesson; OBEYED if there was nothing to correct
    lesson_s: float = 0.0
    retry_s: float = 0.0  # from the correction to the whole of the call that was tried next
    retry: Transcript | None = None


@dataclass
class TaskAtWork:
    """One task while the agent does it."""

    client: Client
    user: str
    task: Task
    notes: Notes = "off"
    training: dict[str, Any] | None = None
    steps: Told = field(default_factory=list)

    @asynccontextmanager
    async def begun(self) -> AsyncIterator[None]:
        """Give the task, in a new folder with its files."""
        with tempfile.TemporaryDirectory(prefix="heed-agent-") as name:
            folder = Path(name)
            await asyncio.to_thread(_lay_out, folder, self.task.folder.texts)
            self._mind = MeasuredMind(self.client, self.user, self.notes, self.training)
            self.session = AgentSession(self._mind, Toolbox(Sandbox(folder, TOOLS_AS)))
            self._next: Step = await self.session.ask(self.task.text)
            yield

    async def turn_to(self, task: Task) -> None:
        """Give the next task in the same session, with its files in place of the others."""
        folder = self.session.folder
        await asyncio.to_thread(_clear, folder)
        await asyncio.to_thread(_lay_out, folder, task.folder.texts)
        self.task, self.steps = task, []
        self._next = await self.session.ask(task.text)

    @property
    def lesson(self) -> str:
        """Return the status of the last lesson."""
        return str(self._mind.lessons[-1]["status"])

    async def carry_on(self, is_wrong: Callable[[Told], bool] = lambda _: False) -> Proposal | None:
        """Allow calls to the end, or up to one that is wrong, which is returned; it goes on waiting."""
        while len(self.steps) < MAX_STEPS:
            if isinstance(self._next, AgentWords):
                self.steps.append(self._next.text)
                if not self._next.text.endswith("?") or YES in self.steps:
                    return None
                self.steps.append(YES)
                self._next = await self.session.ask(YES)
            elif is_wrong([*self.steps, self._next.call]):
                return self._next
            elif not may_run(self.task, self._next.call):
                return None
            else:
                self.steps.append(self._next.call)
                await self.session.run()
                self._next = await self.session.go_on()
        return None

    async def deny(self, words: str) -> Denial:
        """Deny the call that waits, and let the agent try again to the end."""
        started_s = time.monotonic()
        await self.session.deny(words)
        lesson_s = time.monotonic() - started_s
        self._next = await self.session.go_on()
        retry_s = time.monotonic() - started_s
        await self.carry_on()
        return Denial(self.lesson, lesson_s, retry_s, await self.transcript())

    async def transcript(self) -> Transcript:
        """Return what was done so far."""
        return Transcript(tuple(self.steps), await asyncio.to_thread(_texts, self.session.folder))


async def work(client: Client, user: str, task: Task, notes: Notes = "off") -> Transcript:
    """Let the agent do a task; what the person would deny ends it."""
    at_work = TaskAtWork(client, user, task, notes)
    async with at_work.begun():
        await at_work.carry_on()
        return await at_work.transcript()


async def work_on(client: Client, user: str, tasks: Sequence[Task]) -> list[bool]:
    """Let the agent do one task after the other in one session, each in a folder that is laid out for it."""
    done = []
    at_work = TaskAtWork(client, user, tasks[0])
    async with at_work.begun():
        for number, task in enumerate(tasks):
            if number:
                await at_work.turn_to(task)
            await at_work.carry_on()
            done.append(is_done(task, await at_work.transcript()))
    return done


async def correct(
    client: Client, user: str, task: Task, direction: Direction, words: str, training: dict[str, Any] | None = None
) -> Denial:
    """Let the agent do a task up to the first call that is not as wished, deny that, and let it try again."""
    at_work = TaskAtWork(client, user, task, training=training)
    async with at_work.begun():
        wrong = await at_work.carry_on(_against(direction))
        return Denial(OBEYED) if wrong is None else await at_work.deny(words)


async def edit(client: Client, user: str, task: Task, training: dict[str, Any] | None = None) -> Denial:
    """Let the agent do a task up to the first line it writes, and write that without blanks around the sign."""
    at_work = TaskAtWork(client, user, task, training=training)
    async with at_work.begun():
        wrong = await at_work.carry_on(_against(("is_tight", True)))
        if wrong is None:
            return Denial(OBEYED)
        started_s = time.monotonic()
        await at_work.session.edit(json.dumps(_tight(wrong.call.arguments)))
        return Denial(at_work.lesson, time.monotonic() - started_s)


def _against(direction: Direction) -> Callable[[Told], bool]:
    way, wanted = direction
    return lambda steps: side(way, tuple(steps)) is (not wanted)


def _tight(arguments: dict[str, Any]) -> dict[str, Any]:
    changed = {name: arguments[name].replace(" = ", "=") for name in ("new", "content") if name in arguments}
    return arguments | changed


def _lay_out(folder: Path, texts: dict[str, str]) -> None:
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    if TOOLS_AS:
        owner = account(TOOLS_AS)
        for path in (folder, *folder.rglob("*")):
            os.chown(path, owner.uid or 0, owner.gid or 0)


def _clear(folder: Path) -> None:
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def _texts(folder: Path) -> dict[str, str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_text(encoding="utf-8") for path in files}
