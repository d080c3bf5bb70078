"""The agents of everyone: their sessions in storage, those that are worked on in memory, and who may have one.

Invariants: a session is open once; a person's sessions and their scratch folder go when the person is erased.
"""

import asyncio
import time
from functools import partial

from bot.agent.core_mind import CoreMind
from bot.agent.live_session import LiveSession
from bot.agent.repository import told
from bot.agent.session import AgentSession
from bot.agent.state import SessionState
from bot.agent.workspace_notes import KeepTold, WorkspaceNotes, WorkspaceTold
from bot.agent.workspaces import Workspaces, erase
from bot.core.core import Core
from bot.errors import AgentNotAllowed, NotReady
from bot.events import Author
from storage.conversations import agent_work
from storage.errors import LeaseHeld
from storage.lease_keeper import LeaseKeeper
from storage.tables import AgentWork

SCRATCH_FOLDER = "workspaces"  # below the data directory
NO_CALLS = (
    "The model that runs does not call tools. HEED_MODEL chooses one that does: workshop comes with heed, "
    "Qwen/Qwen3-4B can do much more."
)
NOT_ALLOWED = "The operator has not allowed {} to work with the agent: HEED_AGENT_ALLOW names those who may."
ELSEWHERE = "Another gateway of this heed works on this session, or has ended just now. Try again in ten seconds."
REST_S = 30.0  # without a word, and another gateway may have it
MOST_SESSIONS = 200  # of a person; the oldest that no chat works on go


class AgentService:
    """The sessions of one heed."""

    def __init__(self, core: Core, leases: LeaseKeeper | None = None) -> None:
        """`leases` are those on sessions, where heed is one gateway among several."""
        self._core = core
        self._leases = leases
        self._settings = core.settings.agent
        self._scratch = self._settings.scratch or core.settings.data_dir / SCRATCH_FOLDER
        self.workspaces = Workspaces(self._settings, self._scratch, core.settings.data_dir)
        self._notes = WorkspaceNotes(core.database)
        self._open: dict[str, LiveSession] = {}
        core.gateway.when_forgotten = self._forget

    def require_allowed(self, author: Author) -> None:
        """Raise AgentNotAllowed if the operator has not named this account, or the model cannot call tools."""
        if not self._settings.may(author.platform, author.account):
            raise AgentNotAllowed(NOT_ALLOWED.format(f"{author.platform}:{author.account}"))
        if self._core.engine.is_ready and not self._core.engine.skills.writes_calls:
            raise AgentNotAllowed(NO_CALLS)

    async def begin(self, user_id: str, workspace: str, place: str = "") -> AgentWork:
        """Begin a session, in a chat if `place` names one, in place of what was done there.

        Raises AgentNotAllowed, SandboxUnavailable; then all is as it was.
        """
        toolbox = self.workspaces.toolbox(workspace, user_id)
        await toolbox.sandbox.try_out()
        if place:
            await self.leave(user_id, place)
        state = SessionState.new(told(await toolbox.repository.state()))
        row = AgentWork(user_id=user_id, workspace=workspace, place=place, state=state.stored())
        added, gone = await self._core.database.write(lambda s: agent_work.add_newest(s, row, MOST_SESSIONS))
        for work_id in gone:
            await self._let_go(work_id)
        return added

    async def of_person(self, user_id: str) -> list[AgentWork]:
        """Return a person's sessions, the newest first."""
        return await self._core.database.read(lambda s: agent_work.of_person(s, user_id))

    async def find(self, user_id: str, work_id: str) -> tuple[AgentWork, LiveSession]:
        """Return a person's session, opened if it is not. Raises AgentWorkNotFound, AgentNotAllowed."""
        row = await self._core.database.read(lambda s: agent_work.get(s, user_id, work_id))
        return row, await self._live(row)

    async def hear_of(self, user_id: str, workspace: str, said: str, keep: KeepTold | None = None) -> WorkspaceTold:
        """Do what a person says about the notes of a workspace; their open sessions there know at once.

        `keep` stores the effect together with what is said of it. Raises InvalidField.
        """
        answer = await self._notes.hear(user_id, workspace, said, keep)
        for live in self._open.values():
            if (live.user_id, live.workspace) == (user_id, workspace):
                live.session.here = answer.notes
        return answer

    async def at(self, user_id: str, place: str) -> LiveSession | None:
        """Return the session that a person works on in a chat, None if there is none. Raises AgentNotAllowed."""
        row = await self._core.database.read(lambda s: agent_work.in_chat(s, user_id, place))
        return None if row is None else await self._live(row)

    async def leave(self, user_id: str, place: str) -> None:
        """Let a person's chat be an ordinary one again; what is done there is stopped, the session stays."""
        row = await self._core.database.read(lambda s: agent_work.in_chat(s, user_id, place))
        if row is not None and row.id in self._open:
            await self._open[row.id].stop()
        await self._core.database.write(lambda s: agent_work.leave(s, user_id, place))

    async def remove(self, user_id: str, work_id: str) -> None:
        """Stop what a session does, and remove it. What was learned and written stays. Raises AgentWorkNotFound."""
        await self._core.database.read(lambda s: agent_work.get(s, user_id, work_id))
        if work_id in self._open:
            await self._open[work_id].close()
        await self._core.database.write(lambda s: agent_work.remove(s, user_id, work_id))
        await self._let_go(work_id)

    async def let_rest_go(self) -> None:
        """Close sessions that have rested for a while: another gateway may be asked to go on with them."""
        last_s = time.monotonic() - REST_S
        for live in [live for live in self._open.values() if live.is_resting and live.used_s < last_s]:
            await self._let_go(live.work_id)

    async def close(self) -> None:
        """Stop all that is done: a later heed goes on from what is stored."""
        await asyncio.gather(*(live.close() for live in self._open.values()))
        self._open.clear()

    async def _live(self, row: AgentWork) -> LiveSession:
        row = await self._leased(row)
        if row.id not in self._open:
            here = await self._notes.of(row.user_id, row.workspace)
            if row.id not in self._open:  # by another who looked meanwhile
                self._open[row.id] = self._opened(row, here)
        live = self._open[row.id]
        live.used_s = time.monotonic()
        if self._core.engine.is_ready:
            live.recover()
        return live

    async def _leased(self, row: AgentWork) -> AgentWork:
        """Have the lease on a session, and return it as it is then. Raises NotReady while another gateway has it."""
        if self._leases is None or row.id in self._leases.held:
            return row
        if stale := self._open.pop(row.id, None):
            await stale.close()
        try:
            await self._leases.hold(row.id, row.user_id)
        except LeaseHeld:
            raise NotReady(ELSEWHERE) from None
        return await self._core.database.read(lambda s: agent_work.get(s, row.user_id, row.id))

    def _opened(self, row: AgentWork, here: list[str]) -> LiveSession:
        live: LiveSession
        mind = CoreMind(self._core, row.user_id, lambda text: live.tell_progress(text))
        toolbox = self.workspaces.toolbox(row.workspace, row.user_id)
        session = AgentSession(mind, toolbox, SessionState.of(row.state), partial(self._keep, row.id))
        session.here = here
        live = LiveSession(row.id, row.user_id, row.workspace, session)
        return live

    async def _let_go(self, work_id: str) -> None:
        """Close a session, if it is open; another gateway may have it then."""
        if live := self._open.pop(work_id, None):
            await live.close()
        if self._leases is not None:
            await self._leases.let_go(work_id)

    async def _keep(self, work_id: str, state: SessionState) -> None:
        stored = state.stored()
        await self._core.database.write(lambda s: agent_work.keep(s, work_id, stored))

    async def _forget(self, user_id: str) -> None:
        """Let go of what an erased person had here."""
        gone = [work_id for work_id, live in self._open.items() if live.user_id == user_id]
        for work_id in gone:
            await self._let_go(work_id)
        await asyncio.to_thread(erase, self._scratch / user_id)
