"""The line about a lesson that takes its time: how far it is, with a button that stops it.

Invariants: there is no line for a lesson that ends within `AFTER_S`; the line is edited at most every `EDIT_S`, and
less often where the platform wants that; the notice of what became of the lesson takes its place; what the platform
refuses costs the line, never the lesson.
"""

from dataclasses import replace

from bot.channel import Button, Rows
from bot.commands import texts
from bot.core.lessons import LearningService, LessonResult
from bot.messaging.markdown import literal
from bot.messaging.outbox import OutboxSender
from bot.messaging.outbox_item import OutboxItem
from engine.requests import LessonProgress
from storage.conversations.message_roles import Role

AFTER_S = 3.0
EDIT_S = 3.0
CANCEL_ROWS: Rows = ((Button(texts.CANCEL, "cancel"),),)


class LessonLine:
    """The line about one lesson. `notice` is the item that takes its place."""

    def __init__(self, outbox: OutboxSender, lessons: LearningService, notice: OutboxItem) -> None:
        self._outbox = outbox
        self._lessons = lessons
        self._notice = notice

    async def follow(self, lesson: LessonResult) -> LessonResult:
        """Show how far a lesson is until it has ended. Return it with its outcome."""
        self._notice.role, self._notice.about = Role.LEARNING, lesson.feedback.id
        num_shown = 0

        async def show(progress: LessonProgress | None) -> float:
            nonlocal num_shown
            num_shown += await self._is_shown(progress)
            return max(EDIT_S, self._outbox.draft_interval_s(self._notice.post.place, num_shown))

        return await self._lessons.followed(lesson, show)

    async def _is_shown(self, progress: LessonProgress | None) -> bool:
        """Show how far it is. Return False if that is what the line says already."""
        text = literal(texts.learning(progress)) if progress else self._notice.post.text
        if text == self._notice.post.text:
            return False
        self._notice.post = replace(self._notice.post, text=text, rows=CANCEL_ROWS)
        await self._outbox.draft(self._notice)
        return True
