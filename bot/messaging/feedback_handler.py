"""Feedback on chat platforms: corrections, reasons, approvals, notes and undo.

Invariants: feedback is committed under its update's key before anything is said, so it counts once however often the
update is handled; only the asker's words about answers given to them count; the notice of what was learned comes
before the new answer; an undo takes back one lesson, also if heed was killed while doing it.
"""

import logging
from dataclasses import replace

from bot.channel import Button, ChannelError, Rows
from bot.commands import texts
from bot.core import feedback as mapping
from bot.core.core import Core
from bot.core.feedback import NEGATIVE, POSITIVE, FeedbackRecord
from bot.core.lessons import LessonResult
from bot.events import Command, Place, Reaction, Reply
from bot.messaging.outbox import OutboxSender
from bot.messaging.outbox_item import chat_of
from bot.messaging.request import ANSWER_ROWS, ChatRequest
from engine.errors import NothingToUndo
from storage.conversations import chats, completions, message_roles
from storage.conversations.message_roles import Role
from storage.errors import CompletionNotFound
from storage.learning import feedback
from storage.tables import Completion, MessageRole

logger = logging.getLogger(__name__)

CHIPS = ("too long", "wrong", "tone", "format", "other …")
CHIP_REASONS = ("too long", "it is wrong", "the tone is not right", "the format is not right")
CHIP_ROWS: Rows = (
    tuple(Button(label, f"why:{number}") for number, label in enumerate(CHIPS[:3])),
    tuple(Button(label, f"why:{number}") for number, label in enumerate(CHIPS[3:], 3)),
)
UNDO_ROWS: Rows = ((Button("undo", "undo"),),)
RECENT = 100  # pieces of feedback among which the last one on an answer is looked for
ASK_FIX = 'What should be different? Say it in a few words, or "say it like this: ..." and the whole answer.'
NOT_THE_NEWEST = "That is not the newest lesson any more; /undo takes back the newest one."


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
        if notice := await self._limit_notice(request):
            await self._outbox.say(
                request.post(notice, token=token), request.user_id, request.key("notice"), done=request.done
            )
            return
        lesson = await self._lessons.teach(request.user_id, record, idempotency_key=request.idempotency_key)
        await self._tell_all(request, lesson, token=token)

    async def _tell_all(self, request: ChatRequest, lesson: LessonResult, *, token: str) -> None:
        turn = await self._lessons.turn_again(lesson)
        await self._tell(request, lesson, token=token, is_last=turn is None)
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
        said = request.post(texts.noted(lesson.outcome.note or text.strip()), token=token)
        await self._outbox.say(said, request.user_id, request.key("note"), done=request.done)

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
            await self._tell_all(request, lesson, token=token)
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
        question = replace(request.post(prompt), reply_to=request.message_id, wants_reply=True)
        await self._outbox.say(
            question, request.user_id, request.key("words"), done=request.done, role=Role.REASON, about=completion_id
        )

    async def undo(self, request: ChatRequest, *, of_version: str = "", token: str = "") -> None:
        """Take back the newest lesson; from a notice's button only the lesson of that notice."""
        text = await self._undone(request, of_version)
        await self._outbox.say(request.post(text, token=token), request.user_id, request.key("undo"), done=request.done)

    async def _undone(self, request: ChatRequest, of_version: str) -> str:
        """Return what to say after an undo. What it takes back is noted before, so that it happens once."""
        active = str((await self._core.gateway.user(request.user_id)).active_version)
        begun = await self.role_of(request.user_id, request.place, request.key("undo"))
        if begun is not None and begun.about != active:
            return f"Undone. {texts.answers_again(int(active))}"
        if of_version and of_version != active:
            return NOT_THE_NEWEST
        await self._put_role(request, request.key("undo"), Role.UNDO, active)
        try:
            return texts.undone(await self._core.engine.undo(request.user_id))
        except NothingToUndo as error:
            return texts.sentence(str(error))

    async def _tell(self, request: ChatRequest, lesson: LessonResult, *, token: str, is_last: bool) -> None:
        outcome = lesson.outcome
        is_learned = outcome.status == "learned"
        await self._outbox.say(
            request.post(texts.learned(lesson.outcome, lesson.ask), UNDO_ROWS if is_learned else (), token=token),
            request.user_id,
            request.key("lesson"),
            done=request.done if is_last else None,
            role=Role.LESSON if is_learned else "",
            about=str(outcome.adapter_version),
        )

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


async def acknowledge(request: ChatRequest, text: str = "") -> None:
    """Answer a press; what the platform makes of it changes nothing."""
    if request.token:
        try:
            await request.channel.acknowledge(request.token, text)
        except ChannelError as error:
            logger.info("a press could not be acknowledged: %s", type(error).__name__)
