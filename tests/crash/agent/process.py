"""heed's agents over a model that follows a script, made to be killed, in lives that `tests.crash.forks` begins.

People sit at a socket in the data directory: a line of JSON for each thing that they do, a line back for how their
newest session stands after it. Crash points besides those from outside: right before and right after the commit with
that number; at point `call` some commands do not end by themselves. Modes besides `durable` are the negative controls:
`careless` keeps nothing before a call runs or is taught, `untied` lets what a tool has begun outlive heed.
"""

import asyncio
import json
import signal
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from bot.agent import sandbox
from bot.agent.live_session import LiveSession
from bot.agent.service import AgentService
from bot.agent.state import SessionState
from bot.events import Author
from engine.config import EngineConfig
from engine.requests import ChatMessage, GenerateRequest, GenerateResult, LearnOutcome, ToolCallPiece
from storage import settings
from storage.database import Database, Session
from storage.kinds import FeedbackStatus
from storage.learning import feedback, updates, versions
from storage.tables import Feedback, UpdateRun, User
from tests.bot.agent.minds import piece
from tests.bot.agent.rig import AgentRig, agents_of
from tests.bot.fake_engine import FakeEngine
from tests.crash.agent.commands import command, num_calls
from tests.crash.armed import arm
from tests.crash.forks import fork_lives
from tests.patience import until

SOCKET = "agent.sock"  # in the data directory
WORKSPACE = "work"  # beside it
NUMBER = "tests.number"  # the setting that holds the newest command's
LESSON_S = 0.05  # so that a kill can come while one lasts


class ProposingEngine(FakeEngine):
    """Calls bash as often as it was asked to; no command comes twice. A lesson is one commit, taught once."""

    def __init__(self, config: EngineConfig, database: Database, *, may_hang: bool) -> None:
        super().__init__(config, database)
        self.learn_delay_s = LESSON_S
        self._may_hang = may_hang

    async def _answer(self, request: GenerateRequest) -> GenerateResult:
        result = await super()._answer(request)
        return replace(result, tool_calls=await self._proposed(request.messages))

    async def _proposed(self, messages: list[ChatMessage]) -> list[ToolCallPiece]:
        asked = max(place for place, message in enumerate(messages) if message["role"] == "user")
        num_made = sum(message["role"] == "tool" for message in messages[asked:])
        if num_made >= num_calls(messages[asked]["content"]):
            return []
        number = await self._database.write(_next_number)
        return [piece("bash", json.dumps({"command": command(number, may_hang=self._may_hang)}), number)]

    async def _lessons(self, user: User, number: int) -> list[str]:
        return []

    async def _learn(self, row: Feedback, user: User, text: str) -> LearnOutcome:
        def taught(s: Any) -> int:
            parent = s.get(User, user.id).active_version
            if feedback.get(s, row.id).status != FeedbackStatus.PENDING:
                return int(parent)
            run = updates.start(s, UpdateRun(user_id=user.id, feedback_id=row.id, parent_version=parent))
            version = versions.allocate(s, user.id, parent, "fake", row.id, run.id)
            versions.accept(s, user.id, version.number, "0" * 64, 1)
            updates.finish(s, run.id, status="accepted", version=version.number)
            feedback.set_status(s, row.id, FeedbackStatus.LEARNED)
            return version.number

        return LearnOutcome(row.id, "learned", await self._database.write(taught))


def _next_number(s: Session) -> int:
    number = int(settings.get(s, NUMBER) or 0) + 1
    settings.put(s, NUMBER, number)
    return number


class Desk:
    """The end of the socket at which heed sits."""

    def __init__(self, rig: AgentRig) -> None:
        self._rig = rig
        self._writers: set[asyncio.StreamWriter] = set()

    def leave(self) -> None:
        """Tell people nothing any more."""
        for writer in self._writers:
            writer.transport.abort()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Do what a person asks for, one thing after the other; an error is told, too."""
        self._writers.add(writer)
        while line := await reader.readline():
            try:
                told = await self._done(**json.loads(line))
            except Exception as error:  # noqa: BLE001  the other end raises it
                told = {"error": repr(error)}
            writer.write(json.dumps(told).encode() + b"\n")
            await writer.drain()

    async def _done(self, account: str, act: str, text: str = "") -> dict[str, Any]:
        user_id, agents = await self._rig.person(Author("http", account, account)), self._rig.agents
        if act == "begin":
            await agents.begin(user_id, WORKSPACE)
        rows = await agents.of_person(user_id)
        if not rows:
            return {"id": ""}
        _, live = await agents.find(user_id, rows[0].id)
        await until(lambda: live.status != "working")  # what the heed before was killed in is ended first
        if act == "edit":
            await live.edit({"command": text})
        elif act in ("ask", "deny", "go_on"):
            await getattr(live, act)(text)
        elif act == "approve":
            await live.approve()
        return view(live)


def view(live: LiveSession) -> dict[str, Any]:
    """Return a session as its person sees it."""
    state, waiting = live.session.state, live.session.state.waiting
    last = state.messages[-1]
    return {
        "id": live.work_id,
        "waiting": waiting and {"answer_id": waiting.answer.id, "command": waiting.call.arguments["command"]},
        "failed": state.failed and state.failed.id,
        "prompts": [message["content"] for message in state.messages if message["role"] == "user"],
        "has_said": last["role"] == "assistant" and "tool_calls" not in last,
    }


async def serve(data_dir: Path, *, may_hang: bool) -> None:
    """Serve people until heed is asked to end."""
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    make_engine = partial(ProposingEngine, may_hang=may_hang)
    async with agents_of(data_dir, data_dir.parent / WORKSPACE, make_engine) as rig:
        desk = Desk(rig)
        listening = await asyncio.start_unix_server(desk.serve, data_dir / SOCKET)
        await rig.core.lessons.start()
        await stopping.wait()
        listening.close()
        desk.leave()


def live(data_dir: str, mode: str, point: str, number: int) -> None:
    """One life."""
    arm(point, number)
    if mode == "careless":
        AgentService._keep = _kept_afterwards  # type: ignore[method-assign]
    elif mode == "untied":
        wrapped = sandbox.wrapped
        sandbox.tied = lambda command, life: list(command)
        sandbox.wrapped = lambda *args: [word for word in wrapped(*args) if word != "--die-with-parent"]
    asyncio.run(serve(Path(data_dir), may_hang=point == "call"))


_keep = AgentService._keep


async def _kept_afterwards(self: AgentService, work_id: str, state: SessionState) -> None:
    if state.running is None and state.teaching is None:
        await _keep(self, work_id, state)


if __name__ == "__main__":
    fork_lives(live)
