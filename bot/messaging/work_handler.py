"""An agent's work in a private chat: its questions as cards with buttons, the person's yes, no and words.

Invariants: a card's buttons are about the call it shows and about no other that waits by then, also after a restart;
what the person says in reply to a card is about that call; an update that is handled again asks nothing twice.
"""

import json
import time
from collections.abc import Awaitable
from dataclasses import replace
from functools import partial

from bot.agent.live_session import AgentTurn, LiveSession
from bot.agent.service import AgentService
from bot.agent.workspace_notes import Effect
from bot.channel import Post
from bot.core.core import Core
from bot.errors import BotError, SandboxUnavailable, SessionTooLong
from bot.messaging import work_texts
from bot.messaging.markdown import literal
from bot.messaging.outbox import OutboxSender
from bot.messaging.request import ChatRequest
from engine.errors import EngineError
from storage.conversations.message_roles import Role
from storage.database import Session

ANSWERED_FOR_S = 86_400.0  # how long a question can be answered: then it is a no without a word
TOO_LONG = "This has grown too long for the model. /work begins anew."


class WorkHandler:
    """Everything about work in chats."""

    def __init__(self, core: Core, outbox: OutboxSender, agents: AgentService) -> None:
        self._core = core
        self._outbox = outbox
        self._agents = agents

    async def at(self, request: ChatRequest) -> LiveSession | None:
        """Return the work that the person does in this chat, None if it is an ordinary conversation."""
        return await self._agents.at(request.user_id, place_of(request)) if request.place.is_private else None

    async def command(self, request: ChatRequest, argument: str) -> None:
        """Begin work in a folder, end it, or say how it stands. Raises AgentNotAllowed."""
        word = argument.strip() if request.place.is_private else work_texts.NOWHERE
        if word != work_texts.OFF:  # who may not any more can still end it
            self._agents.require_allowed(request.author)
        match word:
            case work_texts.NOWHERE:
                await self._say(request, literal(work_texts.IN_PRIVATE), request.token)
            case "":
                await self._stand(request)
            case work_texts.OFF:
                await self._agents.leave(request.user_id, place_of(request))
                await self._say(request, literal(work_texts.LEFT), request.token)
            case said if said.split(" ", 1)[0] in (work_texts.TELL, work_texts.HERE):
                await self._remember(request, *said.partition(" ")[::2])
            case named:
                said = await self._begun(request, "" if named == work_texts.SCRATCH else named)
                await self._say(request, literal(said), request.token)

    async def stop(self, request: ChatRequest) -> None:
        """Break off what is done in this chat."""
        live = await self.at(request)
        is_stopped = live is not None and await live.stop()
        said = work_texts.STOPPED if is_stopped else work_texts.NOTHING_TO_STOP
        await self._say(request, said, request.token)

    async def hear(self, request: ChatRequest, live: LiveSession, text: str) -> None:
        """Say a message to the agent. Raises AgentNotAllowed."""
        self._agents.require_allowed(request.author)
        await self._do(request, live, live.ask(text, request.idempotency_key))

    async def press(self, request: ChatRequest, word: str, about: str) -> None:
        """Do what a button of a card says, if its call still waits."""
        live = await self._of_card(request, about)
        if live is not None and word == work_texts.WORDS:
            await self._ask_for_words(request, about)
        elif live is not None and await self._may_teach(request, is_lesson=word in work_texts.LESSONS):
            await self._do(request, live, decided(live, word))
            await self._outbox.take_buttons(request.place, request.message_id)

    async def reply(self, request: ChatRequest, text: str, about: str) -> None:
        """Take words about a card: other arguments if they are such, else what was wrong with the call."""
        live = await self._of_card(request, about)
        if live is not None and await self._may_teach(request, is_lesson=True):
            await self._do(request, live, said_of(live, text.strip()))

    async def _may_teach(self, request: ChatRequest, *, is_lesson: bool) -> bool:
        """Count a lesson, or say why there is none now; an update that is handled again was counted when it came."""
        if not is_lesson or request.item.attempts:
            return True
        notice = await self._core.access.spend(request.author, "updates")
        if notice:
            await self._say(request, literal(notice))
        return not notice

    async def _ask_for_words(self, request: ChatRequest, about: str) -> None:
        said = request.post(work_texts.WHAT_WAS_WRONG)
        asked = replace(said, reply_to=request.message_id, wants_reply=True, asked=request.author)
        key = request.key("words")
        await self._outbox.say(asked, request.user_id, key, done=request.undone, role=Role.WORK, about=about)

    async def _of_card(self, request: ChatRequest, about: str) -> LiveSession | None:
        """Return the work in this chat if a card is its open question, or say why nothing can be decided any more."""
        self._agents.require_allowed(request.author)
        live = await self.at(request)
        if live is None or f"{live.work_id} {mark_of(live)}" != about:
            await self._not_waiting(request, live)
            return None
        waiting = live.session.state.waiting
        if waiting is not None and time.time() - waiting.asked_s > ANSWERED_FOR_S:
            await live.deny()
            await self._say(request, work_texts.TOO_OLD)
            return None
        return live

    async def _not_waiting(self, request: ChatRequest, live: LiveSession | None) -> None:
        """Say that a call does not wait; what was decided before heed ended is told as it stands by now."""
        if live is None or not request.item.attempts:
            await self._say(request, work_texts.NOT_WAITING)
        else:
            await self._do(request, live, live.as_it_stands())

    async def _remember(self, request: ChatRequest, word: str, note: str) -> None:
        """Tell the lessons of this work something, or note it for the folder. Raises SessionBusy, InvalidField."""
        live = await self.at(request)
        if live is None:
            said = work_texts.NO_WORK
        elif word == work_texts.HERE:
            await self._agents.hear_of(request.user_id, live.workspace, note, partial(self._say_with, request))
            return
        elif note.strip():
            await live.tell(note)
            said = work_texts.TOLD
        else:
            said = work_texts.TELL_WHAT
        await self._say(request, literal(said), request.token)

    async def _begun(self, request: ChatRequest, workspace: str) -> str:
        """Begin work, and return what to say of it. Raises AgentNotAllowed."""
        try:
            row = await self._agents.begin(request.user_id, workspace, place_of(request))
        except SandboxUnavailable as error:
            return str(error)
        _, live = await self._agents.find(request.user_id, row.id)
        return work_texts.begun(workspace, await live.session.repository.state())

    async def _stand(self, request: ChatRequest) -> None:
        live = await self.at(request)
        if live is not None:
            said = work_texts.begun(live.workspace, await live.session.repository.state())
            await self._say(request, literal(said), request.token)
            await self._tell(request, live, AgentTurn())
        else:
            folders = [name for name in self._agents.workspaces.names if name]
            await self._say(request, literal(work_texts.not_begun(folders)), request.token)

    async def _do(self, request: ChatRequest, live: LiveSession, work: Awaitable[AgentTurn]) -> None:
        """Have something done, while the chat goes on, and tell what came of it."""
        request.done.let_go()
        try:
            turn = await work
        except SessionTooLong:
            turn = AgentTurn(TOO_LONG)
        except (BotError, EngineError) as error:
            turn = AgentTurn(literal(str(error)))
        await self._tell(request, live, turn)

    async def _tell(self, request: ChatRequest, live: LiveSession, turn: AgentTurn) -> None:
        """Say what ran, what was learned, what the agent says, and what it asks."""
        done = [work_texts.result(call, found) for call, found in turn.results]
        done += [work_texts.lesson(turn.lesson)] if turn.lesson else []
        asked = self._question(request, live)
        if request.item.attempts and live.session.is_last_broken_off:
            done = [work_texts.BROKEN_OFF]
        for what, text in (("done", "\n".join(done)), ("words", turn.words)):
            if text:
                await self._outbox.say(Post(request.place, text), request.user_id, request.key(f"work-{what}"))
        if asked is not None:
            about = f"{live.work_id} {mark_of(live)}"
            key = request.key("work-asked")
            await self._outbox.say(asked, request.user_id, key, role=Role.WORK, about=about)
        await self._end(request)

    @staticmethod
    def _question(request: ChatRequest, live: LiveSession) -> Post | None:
        """Return what the person is asked about a call that waits, or has failed; None if neither is there."""
        waiting = live.session.state.waiting
        if waiting is not None:
            text, files, rows = work_texts.card(waiting)
            return Post(request.place, text, rows, files=files)
        is_failed = live.status == "failed"
        return replace(request.post(work_texts.FAILED), rows=work_texts.FAILED_ROWS) if is_failed else None

    async def _say(self, request: ChatRequest, text: str, token: str = "") -> None:
        said = replace(request.post("", token=token), text=text)
        await self._outbox.say(said, request.user_id, request.key("work"), done=request.undone)

    async def _say_with(self, request: ChatRequest, text: str, effect: Effect) -> None:
        """Say something and let it take effect in one transaction: an update that is handled again does neither."""

        def done(s: Session) -> None:
            effect(s)
            request.done(s)

        said = request.post(text, token=request.token)
        await self._outbox.say(said, request.user_id, request.key("work"), done=done)

    async def _end(self, request: ChatRequest) -> None:
        if request.undone is not None:
            await self._core.database.write(request.done)


def place_of(request: ChatRequest) -> str:
    """Return a chat's name as work knows it."""
    return f"{request.place.platform}/{request.place.external_id}"


def mark_of(live: LiveSession) -> str:
    """Return what tells the question that is open from every other: for a call that failed, its answer's id."""
    waiting, failed = live.session.state.waiting, live.session.state.failed
    if failed is not None and live.status == "failed":
        return failed.id
    return waiting.mark if waiting else live.status


def decided(live: LiveSession, word: str) -> Awaitable[AgentTurn]:
    """Begin what a button says."""
    if live.status == "failed":
        return live.go_on(work_texts.CANNOT_WORK if word == work_texts.CANNOT else "")
    if word in ("yes", "always"):
        return live.approve(from_now_on=word == "always")
    return live.deny(work_texts.REASONS[word][1] if word in work_texts.REASONS else "")


def said_of(live: LiveSession, text: str) -> Awaitable[AgentTurn]:
    """Begin what words about a card say."""
    try:
        arguments = json.loads(text)
    except ValueError:
        arguments = None
    if live.status == "failed":
        return live.go_on(text)
    return live.edit(arguments) if isinstance(arguments, dict) else live.deny(text)
