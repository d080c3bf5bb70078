"""Feedback on chat platforms: corrections, reasons, approvals, notes and undo.

Invariants: feedback is committed under its update's key before anything is said, so it counts once however often the
update is handled; only the asker's words about answers given to them count; the notice of what was learned comes
before the new answer; a lesson that takes its time does not keep its chat waiting; an undo takes back one lesson, also
if heed was killed while doing it.
"""

import logging
from dataclasses import replace

from bot.channel import Button, ChannelError, Rows
from bot.commands import texts
from bot.core import feedback as mapping
from bot.core import scope_choice
from bot.core.core import Core
from bot.core.feedback import NEGATIVE, POSITIVE, FeedbackRecord
from bot.core.lessons import LessonResult
from bot.core.scope_choice import NOT_THE_NEWEST
from bot.core.standing_notes import standing_notes
from bot.events import Command, Place, Reaction, Reply
from bot.messaging import lesson_line
from bot.messaging.lesson_line import LessonLine
from bot.messaging.markdown import literal
from bot.messaging.outbox import OutboxSender
from bot.messaging.outbox_item import OutboxItem, chat_of
from bot.messaging.request import ANSWER_ROWS, ChatRequest
from engine.errors import NothingToUndo
from storage.conversations import chats, completions, inbox, message_roles
from storage.conversations.message_roles import Role
from storage.database import Session
from storage.errors import CompletionNotFound
from storage.kinds import FeedbackStatus, Scope
from storage.learning import feedback, versions
from storage.tables import Completion, MessageRole

logger = logging.getLogger(__name__)

CHIPS = ("too long", "wrong", "tone", "format", "other …")
CHIP_REASONS = ("too long", "it is wrong", "the tone is not right", "the format is not right")
CHIP_ROWS: Rows = (
    tuple(Button(label, f"why:{number}") for number, label in enumerate(CHIPS[:3])),
    tuple(Button(label, f"why:{number}") for number, label in enumerate(CHIPS[3:], 3)),
)
UNDO_ROWS: Rows = ((Button("undo", "undo"),),)
ALREADY_TAKEN_BACK = "This lesson is already taken back."
RECENT = 100  # pieces of feedback among which the last one on an answer is looked for
ASK_FIX = 'What should be different? Say it in a few words, or "say it like this: ..." and the whole answer.'


class FeedbackHandler:
    """Turns what is said about answers into lessons, and tells what became of them."""

    def __init__(self, core: Core, outbox: OutboxSender) -> None:
        self._core = core
        self._database = core.database
        self._lessons = core.lessons
        self._outbox = outbox

    async def answer_shown_by(self, request: ChatRequest, message_id: str | None) -> Completion | None:
        """Return the answer to this person that a message shows, or None if it shows none, or another person's."""
        if not message_id:
            return None
        try:
            platform, chat, user_id = request.place.platform, request.chat, request.user_id
            return await self._database.read(
                lambda s: completions.by_message(s, platform, chat, message_id, user_id=user_id)
            )
        except CompletionNotFound:
            return None

    async def role_of(self, user_id: str, place: Place, message_id: str) -> MessageRole | None:
        """Return what a message is for, or None if it does not concern this person."""
        return await self._database.read(
            lambda s: message_roles.find(s, user_id, place.platform, chat_of(place), message_id)
        )

    async def subject_of(self, request: ChatRequest, message_id: str | None) -> str | None:
        """Return the id of the answer that words about a message are about: the one it shows, or asks a reason for."""
        shown = await self.answer_shown_by(request, message_id)
        if shown is not None:
            return shown.id
        role = await self.role_of(request.user_id, request.place, message_id) if message_id else None
        return role.about if role is not None and role.role == Role.REASON else None

    async def correct(self, request: ChatRequest, completion_id: str, words: str, *, is_message: bool = True) -> None:
        """Learn words about an answer, say so, and answer again."""
        if is_message:
            await self.note_feedback(request, completion_id)
        await self.teach(request, mapping.record(Reply(completion_id, words)))

    async def has_heard(self, request: ChatRequest, completion_id: str, words: str) -> bool:
        """Return True if an earlier update brought the same words last: platforms tell of edits that change none."""
        text = mapping.record(Reply(completion_id, words)).text
        given = await self._database.read(lambda s: feedback.history(s, request.user_id, RECENT))
        last = next((row for row in given if row.completion_id == completion_id), None)
        return last is not None and last.text == text and last.idempotency_key != request.idempotency_key

    async def note_feedback(self, request: ChatRequest, completion_id: str) -> None:
        """Note that this message is feedback on an answer, so that its later versions are, too."""
        await self._put_role(request, request.message_id, Role.FEEDBACK, completion_id)

    async def give_reason(self, request: ChatRequest, completion_id: str, number: int) -> None:
        """Learn the reason of one of the buttons below the question."""
        await self.teach(request, mapping.record(Reaction(completion_id, "-1", CHIP_REASONS[number])))

    async def teach(self, request: ChatRequest, record: FeedbackRecord, *, token: str = "") -> None:
        """Learn a lesson, say what became of it, and answer again if something has changed."""
        if record.wants_reason:
            await self._hear_complaint(request, record, token=token)
            return
        if refusal := await self._limit_notice(request):
            await self._outbox.say(
                request.post(refusal, token=token), request.user_id, request.key("notice"), done=request.done
            )
            return
        await self._teach(request, record, token=token)

    async def _teach(self, request: ChatRequest, record: FeedbackRecord, *, token: str) -> None:
        lesson = await self._lessons.teach(
            request.user_id, record, idempotency_key=request.idempotency_key, wait_s=lesson_line.AFTER_S
        )
        if lesson.is_put_off:
            if await self._is_put_off(request, lesson, token=token):
                return
            lesson = await self._lessons.ended(lesson)
        notice = await self._notice(request, token)
        if lesson.outcome.status == "queued" and self._lessons.is_under_way(lesson.feedback.id):
            request.done.let_go()
            lesson = await LessonLine(self._outbox, self._lessons, notice).follow(lesson)
        lesson = await self._lessons.ended(lesson)  # it may have ended while the notice was looked for
        await self._tell_all(request, lesson, notice)

    async def _is_put_off(self, request: ChatRequest, lesson: LessonResult, *, token: str) -> bool:
        """Say that a lesson waits, and put its update off. Return False if learning was resumed meanwhile."""
        said = request.post(lesson.outcome.reason, token=token)
        await self._outbox.say(said, request.user_id, request.key("paused"))
        await self._database.write(lambda s: inbox.put_off(s, request.done.seq))
        request.done.is_put_off = self._lessons.is_paused
        return request.done.is_put_off

    async def choose(self, request: ChatRequest, feedback_id: str, scope: Scope) -> None:
        """Keep how far a lesson is to reach, and teach it again if it was taught otherwise."""
        key = request.idempotency_key
        record = await scope_choice.choose(self._core, request.user_id, feedback_id, scope, key)
        if record is not None:
            await self._teach(request, record, token=request.token)
            return
        said = request.post(texts.SCOPE_KEPT, token=request.token)
        await self._outbox.say(said, request.user_id, request.key("scope"), done=request.done)

    async def choose_newest(self, request: ChatRequest, scope: Scope) -> None:
        """Keep how far the newest lesson is to reach."""
        await self.choose(request, (await scope_choice.newest(self._core, request.user_id)).id, scope)

    async def cancel(self, request: ChatRequest, feedback_id: str) -> None:
        """Stop a lesson; the line about it says so."""
        await self._lessons.cancel(request.user_id, feedback_id)

    async def _notice(self, request: ChatRequest, token: str) -> OutboxItem:
        """Return the item that says what became of a lesson, with the line that an earlier attempt has shown."""
        notice = OutboxItem.of_post(request.post("", token=token), request.user_id, request.key("lesson"))
        if request.item.attempts:
            await self._outbox.resume(notice)
        return notice

    async def _tell_all(self, request: ChatRequest, lesson: LessonResult, notice: OutboxItem) -> None:
        turn = await self._lessons.turn_again(lesson)
        if turn is not None and turn.tools:
            turn = None  # an agent's call: its session tries again
        _fill(notice, lesson)
        await self._outbox.conclude(notice, done=request.done if turn is None else None)
        if turn is not None:
            await self._outbox.answer(turn, request.item, request.done, request.post("", ANSWER_ROWS))

    async def _limit_notice(self, request: ChatRequest) -> str:
        """Count a lesson; one that is taken up again after a crash was counted when it came."""
        key = request.idempotency_key
        known = await self._database.read(lambda s: feedback.by_key(s, request.user_id, key))
        return "" if known else await self._core.access.spend(request.author, "updates")

    async def note(self, request: ChatRequest, text: str, *, token: str) -> None:
        """Keep a standing note."""
        record = mapping.record(Command("note", text))
        lesson = await self._lessons.teach(request.user_id, record, idempotency_key=request.idempotency_key)
        said = request.post(texts.noted(lesson.outcome, text.strip()), token=token)
        await self._outbox.say(said, request.user_id, request.key("note"), done=request.done)

    async def note_meant(self, request: ChatRequest, argument: str) -> str:
        """Return the id of the note that "delete 2" names, empty if it names none.

        It is noted before the note is deleted: handled again, the update would find the next note under the number.
        """
        key = request.key("notes")
        begun = await self.role_of(request.user_id, request.place, key)
        if begun is not None:
            return begun.about
        user = await self._core.gateway.user(request.user_id)
        note = (await standing_notes(self._core.engine, self._database, user)).numbered(argument)
        if note is not None:
            await self._put_role(request, key, Role.NOTE, note.id)
        return note.id if note is not None else ""

    async def approve(self, request: ChatRequest, completion_id: str) -> None:
        """Handle a thumb up: the answer becomes gold."""
        record = mapping.record(Reaction(completion_id, "+1"))
        await self._lessons.teach(request.user_id, record, idempotency_key=request.idempotency_key)

    async def disapprove(self, request: ChatRequest, completion_id: str, emoji: str = "-1") -> None:
        """Keep a thumb down, and ask the person for a reason."""
        await self._hear_complaint(request, mapping.record(Reaction(completion_id, emoji)))

    async def _hear_complaint(self, request: ChatRequest, record: FeedbackRecord, *, token: str = "") -> None:
        """Ask what should be different, unless it took the newest lesson back: then say so, and answer again."""
        lesson = await self._lessons.teach(request.user_id, record, idempotency_key=request.idempotency_key)
        if lesson.is_taken_back:
            await self._tell_all(request, lesson, await self._notice(request, token))
            return
        question = request.post(lesson.ask, CHIP_ROWS, token=token)
        about = record.completion_id or ""
        await self._outbox.say(
            question, request.user_id, request.key("reason"), done=request.done, role=Role.REASON, about=about
        )

    async def react(self, request: ChatRequest, added: tuple[str, ...], removed: tuple[str, ...]) -> None:
        """Store reactions to an answer; on other messages, and on another person's answer, they mean nothing."""
        answer = await self.answer_shown_by(request, request.message_id)
        if answer is None:
            return
        request = replace(request, place=await self._place_of(answer, request))
        if any(emoji in POSITIVE for emoji in map(mapping.plain_emoji, removed)) and not added:
            await self._database.write(lambda s: completions.mark_gold(s, request.user_id, answer.id, is_gold=False))
        telling = [emoji for emoji in map(mapping.plain_emoji, added) if emoji in POSITIVE | NEGATIVE]
        if telling and telling[0] in POSITIVE:
            await self.approve(request, answer.id)
        elif telling:
            await self.disapprove(request, answer.id, telling[0])

    async def _place_of(self, answer: Completion, request: ChatRequest) -> Place:
        """Return the place of an answer: a reaction names the chat and not its topic."""
        chat_id = answer.chat_id
        if chat_id is None:
            return request.place
        chat = await self._database.read(lambda s: chats.get(s, request.user_id, chat_id))
        place = replace(request.place, external_id=chat.external_id)
        return place if chat_of(place) == request.chat else request.place  # the group has moved, its messages have not

    async def ask_for_words(self, request: ChatRequest, completion_id: str, prompt: str) -> None:
        """Ask for a text about an answer; its reply is found by the question's message."""
        question = replace(request.post(prompt), reply_to=request.message_id, wants_reply=True, asked=request.author)
        await self._outbox.say(
            question, request.user_id, request.key("words"), done=request.done, role=Role.REASON, about=completion_id
        )

    async def undo(self, request: ChatRequest, *, of_version: str = "", token: str = "") -> None:
        """Take back the newest lesson; from a notice's button only the lesson of that notice."""
        text = await self._undone(request, of_version)
        await self._outbox.say(request.post(text, token=token), request.user_id, request.key("undo"), done=request.done)
        if of_version and text != NOT_THE_NEWEST:
            await self._outbox.take_buttons(request.place, request.message_id)

    async def _undone(self, request: ChatRequest, of_version: str) -> str:
        """Return what to say after an undo. What it takes back is noted before, so that it happens once."""
        active = str((await self._core.gateway.user(request.user_id)).active_version)
        begun = await self.role_of(request.user_id, request.place, request.key("undo"))
        if begun is not None and begun.about != active:
            return f"Undone. {texts.answers_again(int(active))}"
        if of_version and of_version != active:
            is_undone = await self._database.read(lambda s: _is_undone(s, request.user_id, int(of_version)))
            return ALREADY_TAKEN_BACK if is_undone else NOT_THE_NEWEST
        await self._put_role(request, request.key("undo"), Role.UNDO, active)
        try:
            return texts.undone(await self._core.engine.undo(request.user_id))
        except NothingToUndo as error:
            return texts.sentence(str(error))

    async def _put_role(self, request: ChatRequest, message_id: str, role: Role, about: str) -> None:
        row = MessageRole(
            platform=request.place.platform,
            chat_external_id=request.chat,
            message_id=message_id,
            user_id=request.user_id,
            role=role,
            about=about,
        )
        await self._database.write(lambda s: message_roles.put(s, row))


def _is_undone(s: Session, user_id: str, number: int) -> bool:
    """Return True if the lesson of a version was taken back."""
    taught_by = versions.get(s, user_id, number).feedback_id
    return taught_by is not None and feedback.get(s, taught_by).status == FeedbackStatus.UNDONE


def scope_rows(feedback_id: str) -> Rows:
    """Return the two buttons that say how far a lesson reaches."""
    labels = ((texts.JUST_THIS, Scope.ANSWER), (texts.FROM_NOW_ON, Scope.ALWAYS))
    return (tuple(Button(label, f"scope:{scope}:{feedback_id}") for label, scope in labels),)


def _fill(notice: OutboxItem, lesson: LessonResult) -> None:
    """In place: say what became of a lesson. With a role it takes the place of the line that was shown."""
    is_learned = lesson.outcome.status == "learned"
    rows = UNDO_ROWS if is_learned else ()
    if is_learned or lesson.outcome.is_unsure:
        rows += scope_rows(lesson.feedback.id)
    notice.post = replace(notice.post, text=literal(texts.learned(lesson.outcome, lesson.ask)), rows=rows)
    notice.role = Role.LESSON if rows or notice.shown else ""
    notice.about = str(lesson.outcome.adapter_version) if is_learned else ""


async def acknowledge(request: ChatRequest, text: str = "") -> None:
    """Answer a press; what the platform makes of it changes nothing."""
    if request.token:
        try:
            await request.channel.acknowledge(request.token, text)
        except ChannelError as error:
            logger.info("a press could not be acknowledged: %s", type(error).__name__)
