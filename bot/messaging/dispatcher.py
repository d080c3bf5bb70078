"""The dispatcher: what each event of a chat platform means, and which part handles it.

One way for all of it: read, ask `Access.authorise`, greet whom heed has not met, then a turn, a lesson, a command or a
press. Invariants: nothing of a stranger is processed; only the person who asked may press, correct or react; what an
update causes carries the update's key, and the last of it the done mark, so that handling it again changes nothing;
a person's mistake is answered, a failure of heed's is raised and tried again.
"""

import re
from collections.abc import Mapping
from dataclasses import replace

from bot.access.accounts import Decision, What
from bot.access.consent import Notice
from bot.agent.service import AgentService
from bot.channel import Channel, File, Post
from bot.commands import person, texts
from bot.core.core import Core
from bot.core.feedback import ASK_REASON, FeedbackRecord
from bot.core.feedback import record as feedback_of
from bot.errors import NotFound, NotReady, Overloaded, RequestError
from bot.events import (
    ButtonPressed,
    ChatMigrated,
    Command,
    CommandReceived,
    FormSubmitted,
    Message,
    MessageEdited,
    MessageReceived,
    Place,
    ReactionChanged,
)
from bot.messaging.feedback_handler import ASK_FIX, CHIP_REASONS, FeedbackHandler, acknowledge
from bot.messaging.inbox import Done
from bot.messaging.markdown import table
from bot.messaging.outbox import OutboxSender
from bot.messaging.request import ANSWER_ROWS, NOT_YOURS, ChatRequest
from bot.messaging.work_handler import WorkHandler
from storage.conversations import chats
from storage.conversations.message_roles import Role
from storage.database import Session
from storage.errors import RowNotFound
from storage.kinds import ConsentChoice, Scope
from storage.tables import Completion, Inbox, Pairing

KINDS: dict[type, What] = {
    MessageReceived: "message",
    MessageEdited: "message",
    CommandReceived: "command",
    ButtonPressed: "press",
    ReactionChanged: "reaction",
    FormSubmitted: "form",
}
BY_COMMAND = re.compile(r"\A/feedback\s+", re.IGNORECASE)
NO_ANSWER_HERE = "There is no answer of mine here that you could mean."
LET_IN = "You are in. Say hello, or ask me something."
KEPT = "Nothing was erased."
WORDS_ONLY = "I can read words only: write what you want to ask or say."

Person = MessageReceived | CommandReceived | MessageEdited | ReactionChanged | ButtonPressed | FormSubmitted


class Dispatcher:
    """Handles one update at a time of each chat."""

    def __init__(self, core: Core, outbox: OutboxSender, channels: Mapping[str, Channel], agents: AgentService) -> None:
        self._core = core
        self._outbox = outbox
        self._channels = channels
        self._feedback = FeedbackHandler(core, outbox)
        self._work = WorkHandler(core, outbox, agents)

    async def handle(self, item: Inbox, done: Done) -> None:
        """Do what an update asks for. `done` joins the transaction of its last effect, if it has one."""
        channel = self._channels[item.platform]
        record = next(iter(channel.read(item.payload)), None)  # an update says one thing at most
        if isinstance(record, ChatMigrated):
            await self._move(record, done)
        elif record is not None and await self._concerns_heed(record):
            request = ChatRequest(
                channel, item, done, record.author, record.place, record.message_id, getattr(record, "token", ""),
                is_new_message=isinstance(record, MessageReceived | CommandReceived),
            )  # fmt: skip
            await self._receive(request, record)

    async def _receive(self, request: ChatRequest, record: Person) -> None:
        decision = await self._core.access.authorise(request.author, request.place, KINDS[type(record)])
        if not decision.is_allowed:
            return await self._turn_away(request, record, decision)
        if (
            isinstance(record, ButtonPressed | FormSubmitted | ReactionChanged)
            and not (await self._core.gateway.known(request.author)).id
        ):
            return await acknowledge(request, NOT_YOURS)  # nothing here is theirs, and they stay unknown
        user_id = await self._core.gateway.person(request.author, is_learning=False)
        request = replace(request, user_id=user_id, is_admin=decision.is_admin)
        try:
            await self._greet(request, record)
            await self._dispatch(request, record)
        except (NotReady, Overloaded):
            raise
        except (RequestError, RowNotFound) as error:
            text = str(error) if isinstance(error, RequestError) else NO_ANSWER_HERE
            said = request.post(text, token=request.token, is_private=True)
            await self._outbox.say(said, user_id, request.key("error"), done=request.undone)

    async def _concerns_heed(self, record: Person) -> bool:
        """Return false for what others say to each other, and for changed messages that taught nothing."""
        if isinstance(record, MessageReceived):
            return record.is_addressed
        if not isinstance(record, MessageEdited):
            return True
        known = await self._core.gateway.known(record.author)
        role = await self._feedback.role_of(known.id, record.place, record.message_id)
        return role is not None and role.role == Role.FEEDBACK

    async def _dispatch(self, request: ChatRequest, record: Person) -> None:
        match record:
            case MessageReceived():
                await self._hear(request, record)
            case MessageEdited():
                await self._hear_again(request, record)
            case CommandReceived():
                await self._obey(request, record)
            case ReactionChanged():
                await self._outbox.settled(request.place)
                await self._feedback.react(request, record.added, record.removed)
            case ButtonPressed():
                await self._press(request, record.action)
            case FormSubmitted():
                await self._fill(request, record.text)

    async def _turn_away(self, request: ChatRequest, record: Person, decision: Decision) -> None:
        if isinstance(record, ButtonPressed | FormSubmitted):
            await acknowledge(request, decision.notice)
        elif decision.notice:
            said = request.post(decision.notice, token=request.token, is_private=True)
            await self._outbox.say(said, None, request.key("notice"), done=request.done)
        else:
            await acknowledge(request)

    async def _greet(self, request: ChatRequest, record: Person) -> None:
        is_start = isinstance(record, CommandReceived) and record.name == "start"
        if is_start or not isinstance(record, MessageReceived | CommandReceived):
            return
        if await self._core.consent.needs_greeting(request.user_id):
            greeting = self._core.consent.greeting(request.place.platform)
            said = self._for_the_asker(request, greeting)
            await self._outbox.say(said, request.user_id, request.key("greeting"), role=Role.QUESTION)
            await self._core.consent.record(request.user_id, ConsentChoice.ASKED, request.place)

    @staticmethod
    def _for_the_asker(request: ChatRequest, notice: Notice) -> Post:
        """Return a notice about a person's own choices: where others read along it is shown to the asker alone.

        That takes an interaction to answer; without one the notice answers the person's message.
        """
        if request.place.is_private or not request.token:
            return request.post(notice.text, notice.rows)
        return request.post(notice.text, notice.rows, token=request.token, is_private=True)

    async def _hear(self, request: ChatRequest, said: MessageReceived) -> None:
        """Handle a message: words about an answer it replies to, or the next turn."""
        if not said.text.strip():
            key = f"album-{said.album}" if said.album else request.key("error")
            await self._outbox.say(request.post(WORDS_ONLY), request.user_id, key, done=request.done)
            return
        if said.reply_to:
            await self._outbox.settled(request.place)
        subject = await self._feedback.subject_of(request, said.reply_to)
        if subject is not None:
            await self._feedback.correct(request, subject, said.text)
        elif about := await self._call_asked_by(request, said.reply_to):
            await self._work.reply(request, said.text, about)
        elif (work := await self._work.at(request)) is not None:
            await self._work.hear(request, work, said.text)
        else:
            turn = await self._core.gateway.turn(Message(request.author, request.place, said.text))
            await self._outbox.answer(turn, request.item, request.done, request.post("", ANSWER_ROWS))

    async def _hear_again(self, request: ChatRequest, edited: MessageEdited) -> None:
        """Handle an edited message: a correction in other words is a newer correction."""
        role = await self._feedback.role_of(request.user_id, request.place, edited.message_id)
        words = BY_COMMAND.sub("", edited.text)
        if role is not None and not await self._feedback.has_heard(request, role.about, words):
            await self._feedback.correct(request, role.about, words)

    async def _fill(self, request: ChatRequest, text: str) -> None:
        subject = await self._feedback.subject_of(request, request.message_id)
        about = "" if subject else await self._call_asked_by(request, request.message_id)
        await acknowledge(request, "" if subject or about else NOT_YOURS)
        if subject is not None:
            await self._feedback.correct(request, subject, text, is_message=False)
        elif about:
            await self._work.reply(request, text, about)

    async def _call_asked_by(self, request: ChatRequest, message_id: str | None) -> str:
        """Return the call of an agent that a message asks about, empty if it asks about none."""
        role = await self._feedback.role_of(request.user_id, request.place, message_id) if message_id else None
        return role.about if role is not None and role.role == Role.WORK else ""

    # ------------------------------------------------------------------------------------------------- commands

    async def _obey(self, request: ChatRequest, said: CommandReceived) -> None:
        if said.reply_to:
            await self._outbox.settled(request.place)
        match said.name:
            case "feedback" if said.argument.strip():
                record = feedback_of(Command("feedback", said.argument, (await self._meant(request, said.reply_to)).id))
                await self._teach_by_command(request, record, is_message=not said.token)
            case "note" if said.argument.strip():
                await self._feedback.note(request, said.argument, token=said.token)
            case "justthis" | "fromnowon":
                scope = Scope.ANSWER if said.name == "justthis" else Scope.ALWAYS
                await self._feedback.choose_newest(request, scope)
            case "retry":
                await self._again(request, await self._meant(request, said.reply_to), token=said.token)
            case "undo":
                await self._feedback.undo(request, token=said.token)
            case "work":
                await self._work.command(request, said.argument)
            case "stop":
                await self._work.stop(request)
            case _:
                about = await self._feedback.answer_shown_by(request, said.reply_to)
                command = Command(said.name, said.argument, about.id if about else None)
                await self._run(request, command, token=said.token)

    async def _teach_by_command(self, request: ChatRequest, record: FeedbackRecord, *, is_message: bool) -> None:
        if is_message and record.completion_id:
            await self._feedback.note_feedback(request, record.completion_id)
        await self._feedback.teach(request, record, token=request.token)

    async def _run(self, request: ChatRequest, command: Command, *, token: str = "") -> None:
        """Run a command of the table: what it did may be done again without harm."""
        if command.name == "notes" and command.argument:
            command = replace(command, note_id=await self._feedback.note_meant(request, command.argument))
        said = await person.run(
            self._core, request.user_id, request.place, command, request.author, is_interaction=bool(token)
        )
        files = tuple(File(name, content) for name, content in said.files)
        post = request.post(said.text, said.buttons, files=files, token=token, is_private=said.is_private)
        await self._say_if_known(request, replace(post, text=table(said.text)) if said.is_table else post)

    async def _say_if_known(self, request: ChatRequest, post: Post) -> None:
        """Say what a command has to say, also to a person whom the command has just erased."""
        is_known = (await self._core.gateway.known(request.author)).id == request.user_id
        await self._outbox.say(
            post,
            request.user_id if is_known else None,
            request.key("said"),
            done=request.undone if is_known else None,
            role=Role.QUESTION if post.rows and is_known else "",
        )

    async def _meant(self, request: ChatRequest, reply_to: str | None) -> Completion:
        """Return the answer a command is about: the one it replies to, or the newest. Raises NotFound."""
        shown = await self._feedback.answer_shown_by(request, reply_to)
        if shown is not None:
            return shown
        chat = await self._core.gateway.chat(request.user_id, request.place)
        turns = await self._core.gateway.turns(chat.id)
        if not turns:
            raise NotFound(texts.NO_ANSWER_YET, "completion_id")
        return turns[-1]

    async def _again(self, request: ChatRequest, answer: Completion, *, token: str = "") -> None:
        if notice := await self._core.access.spend(request.author, "messages"):
            said = request.post(notice, token=token)
            await self._outbox.say(said, request.user_id, request.key("notice"), done=request.done)
            return
        gateway = self._core.gateway
        turn = gateway.again(answer, gateway.varied(answer))
        await self._outbox.answer(turn, request.item, request.done, request.post("", ANSWER_ROWS, token=token))

    # ------------------------------------------------------------------------------------------------- presses

    async def _press(self, request: ChatRequest, action: str) -> None:
        await self._outbox.settled(request.place)
        answer = await self._feedback.answer_shown_by(request, request.message_id)
        role = None if answer else await self._feedback.role_of(request.user_id, request.place, request.message_id)
        name, _, word = action.partition(":")
        if answer is not None:
            await self._press_answer(request, name, answer)
        elif role is None:
            await acknowledge(request, NOT_YOURS)
        elif name == "why" and role.role == Role.REASON:
            await self._press_reason(request, word, role.about)
        elif name == "undo" and role.role == Role.LESSON:
            await acknowledge(request)
            await self._feedback.undo(request, of_version=role.about)
        elif name == "scope" and role.role == Role.LESSON:
            await acknowledge(request)
            chosen, _, feedback_id = word.partition(":")
            await self._feedback.choose(request, feedback_id, Scope.ANSWER if chosen == Scope.ANSWER else Scope.ALWAYS)
        elif name == "work" and role.role == Role.WORK:
            await acknowledge(request)
            await self._work.press(request, word, role.about)
        elif name == "cancel" and role.role == Role.LEARNING:
            await acknowledge(request)
            await self._feedback.cancel(request, role.about)
        elif role.role == Role.QUESTION:
            await self._press_question(request, name, word)
        else:
            await acknowledge(request)

    async def _press_answer(self, request: ChatRequest, name: str, answer: Completion) -> None:
        await acknowledge(request, "Noted, thank you." if name == "up" else "")
        match name:
            case "up":
                await self._feedback.approve(request, answer.id)
            case "down":
                await self._feedback.disapprove(request, answer.id)
            case "fix":
                await self._feedback.ask_for_words(request, answer.id, ASK_FIX)
            case "again":
                await self._again(request, answer)

    async def _press_reason(self, request: ChatRequest, word: str, completion_id: str) -> None:
        await acknowledge(request)
        if word.isascii() and word.isdigit() and int(word) < len(CHIP_REASONS):
            await self._feedback.give_reason(request, completion_id, int(word))
        else:
            await self._feedback.ask_for_words(request, completion_id, ASK_REASON)

    async def _press_question(self, request: ChatRequest, name: str, word: str) -> None:
        await acknowledge(request)
        if name == "learn":
            notice = await self._core.consent.choose(request.user_id, word, request.place)
            await self._say_if_known(request, self._for_the_asker(request, notice))
        elif name == "forget" and word == "yes":
            await self._run(request, Command("forget", "everything"), token=request.token)
        elif name == "forget":
            await self._say_if_known(request, request.post(KEPT, token=request.token, is_private=True))

    # ------------------------------------------------------------------------------------------------- others

    async def _move(self, migrated: ChatMigrated, done: Done) -> None:
        old, new = migrated.place, migrated.to

        def move(s: Session) -> None:
            chats.move(s, old.platform, old.external_id, new.external_id)
            done(s)

        await self._core.database.write(move)

    async def let_in(self, pairing: Pairing) -> None:
        """Tell a person that their code was taken."""
        channel = self._channels.get(pairing.platform)
        if channel is not None and channel.hears(""):
            place = Place(pairing.platform, pairing.place)
            await self._outbox.say(Post(place, LET_IN), None, f"paired-{pairing.code}-{pairing.created_at:.0f}")
