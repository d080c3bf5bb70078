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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bot.agent.sandbox import Sandbox, account
from bot.agent.session import AgentSession, AgentWords, Step
from bot.agent.state import Proposal
from bot.agent.toolbox import Toolbox
from bot.agent.tools import Call
from bot.errors import SessionTooLong
from engine.pocket.workshop.tasks import Task
from engine.pocket.workshop.ways import Direction
from evals.agent.mind import MeasuredMind
from evals.agent.verdict import Transcript, is_done, may_run, side
from evals.client import Client

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
    was_asked: bool = False  # how far the correction reaches: "from now on"


@dataclass(frozen=True)
class LongTurn:
    """One turn of a long session."""

    is_done: bool
    is_refused: bool = False  # because the conversation does not fit, whatever is left out


class PersonAtWork:
    """A person with the agent in a folder of their own."""

    def __init__(self, session: AgentSession, mind: MeasuredMind) -> None:
        self.session = session
        self._mind = mind
        self._steps: Told = []

    @property
    def lesson(self) -> str:
        """Return the status of the last lesson."""
        return str(self._mind.lessons[-1]["status"])

    async def give(self, task: Task, is_wrong: Callable[[Told], bool] = lambda _: False) -> Proposal | None:
        """Give a task, with its files in the folder, and allow its calls to the end.

        Return the first call that is wrong, which goes on waiting, if there is one.
        """
        await asyncio.to_thread(_lay_out, self.session.folder, task.folder.texts)
        self._steps = []
        return await self._carry_on(task, await self.session.ask(task.text), is_wrong)

    async def deny(self, task: Task, words: str) -> Denial:
        """Deny the call that waits, and let the agent try again to the end."""
        started_s = time.monotonic()
        await self.session.deny(words)
        lesson_s = time.monotonic() - started_s
        step = await self.session.go_on()
        retry_s = time.monotonic() - started_s
        await self._carry_on(task, step)
        was_asked = bool(self._mind.lessons[-1]["was_asked"])
        return Denial(self.lesson, lesson_s, retry_s, await self.transcript(), was_asked)

    async def transcript(self) -> Transcript:
        """Return what was done of the last task."""
        return Transcript(tuple(self._steps), await asyncio.to_thread(_texts, self.session.folder))

    async def _carry_on(
        self, task: Task, step: Step, is_wrong: Callable[[Told], bool] = lambda _: False
    ) -> Proposal | None:
        while len(self._steps) < MAX_STEPS:
            if isinstance(step, AgentWords):
                self._steps.append(step.text)
                if not step.text.endswith("?") or YES in self._steps:
                    return None
                self._steps.append(YES)
                step = await self.session.ask(YES)
            elif is_wrong([*self._steps, step.call]):
                return step
            elif not may_run(task, step.call):
                return None
            else:
                self._steps.append(step.call)
                await self.session.run()
                step = await self.session.go_on()
        return None


@asynccontextmanager
async def at_work(client: Client, user: str) -> AsyncIterator[PersonAtWork]:
    """Provide a person at work in a new folder."""
    with tempfile.TemporaryDirectory(prefix="heed-agent-") as folder:
        mind = MeasuredMind(client, user)
        yield PersonAtWork(AgentSession(mind, Toolbox(Sandbox(Path(folder), TOOLS_AS))), mind)


async def work(client: Client, user: str, task: Task) -> Transcript:
    """Let the agent do a task; what the person would deny ends it."""
    async with at_work(client, user) as person:
        await person.give(task)
        return await person.transcript()


async def work_on(client: Client, user: str, tasks: Sequence[Task]) -> list[LongTurn]:
    """Let the agent do one task after the other in one session. Return what became of each."""
    turns = []
    async with at_work(client, user) as person:
        for task in tasks:
            try:
                await person.give(task)
            except SessionTooLong:
                turns.append(LongTurn(is_done=False, is_refused=True))
            else:
                turns.append(LongTurn(is_done(task, await person.transcript())))
    return turns


async def correct(client: Client, user: str, task: Task, direction: Direction, words: str) -> Denial:
    """Let the agent do a task up to the first call that is not as wished, deny that, and let it try again."""
    async with at_work(client, user) as person:
        wrong = await person.give(task, _against(direction))
        return Denial(OBEYED) if wrong is None else await person.deny(task, words)


async def edit(client: Client, user: str, task: Task) -> Denial:
    """Let the agent do a task up to the first line it writes, and write that without blanks around the sign."""
    async with at_work(client, user) as person:
        wrong = await person.give(task, _against(("is_tight", True)))
        if wrong is None:
            return Denial(OBEYED)
        started_s = time.monotonic()
        await person.session.edit(json.dumps(_tight(wrong.call.arguments)))
        return Denial(person.lesson, time.monotonic() - started_s)


def _against(direction: Direction) -> Callable[[Told], bool]:
    way, wanted = direction
    return lambda steps: side(way, tuple(steps)) is (not wanted)


def _tight(arguments: dict[str, Any]) -> dict[str, Any]:
    changed = {name: arguments[name].replace(" = ", "=") for name in ("new", "content") if name in arguments}
    return arguments | changed


def _lay_out(folder: Path, texts: dict[str, str]) -> None:
    """Put files into a folder, in place of what is there."""
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    if TOOLS_AS:
        owner = account(TOOLS_AS)
        for path in (folder, *folder.rglob("*")):
            os.chown(path, owner.uid or 0, owner.gid or 0)


def _texts(folder: Path) -> dict[str, str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_text(encoding="utf-8") for path in files}
