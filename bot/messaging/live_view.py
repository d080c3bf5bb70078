"""Streams an answer to a chat platform: typing, then a draft or a placeholder that is edited while it is written.

Invariants: an answer that is whole before its first edit would be due has no placeholder; the newest text wins and
every older one may be skipped; nothing is shown after `finish` has returned; a post that has begun is never given up
half-way, because its message would be left behind unknown; anything that the platform refuses here costs the live view
only, never the answer.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from bot.channel import Channel, ChannelError, NotOffered, Post, SlowDown
from bot.messaging.rate_limit import Limiter
from bot.messaging.splitting import MIN_LIMIT, split

logger = logging.getLogger(__name__)

TYPING_S = 4.5  # Telegram shows it for five seconds
LAST_CALL_S = 5.0  # given to an edit that is under way when the answer is whole
CURSOR = " …"

OnShown = Callable[[str], Awaitable[None]]


@dataclass(frozen=True)
class AnswerView:
    """The place where an answer is shown, and what happens with the id of its placeholder."""

    channel: Channel
    limiter: Limiter
    post: Post
    draft_id: int
    on_shown: OnShown
    turn: Callable[[], Awaitable[None]]  # returns when everything before this answer has been shown
    may_show: Callable[[], bool]  # False: another heed has the platform by now
    message_id: str = ""  # a placeholder of an earlier attempt


class LiveView:
    """The live view of one answer. Make it, `start` it, `add` to it, `finish` it."""

    def __init__(self, view: AnswerView) -> None:
        self._has_drafts = view.post.place.is_private  # until the platform says that it has none
        self.message_id = view.message_id
        self.is_uncertain = False  # a placeholder may be there whose id is not known
        self._view = view
        self._pieces: list[str] = []
        self._shown = ""
        self._is_calling = False
        self._has_text = asyncio.Event()
        self._is_finished = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to show."""
        self._task = asyncio.create_task(self._run(), name="live text")

    def add(self, piece: str) -> None:
        """Add a piece of the answer."""
        self._pieces.append(piece)
        if piece.strip():
            self._has_text.set()

    async def finish(self) -> str:
        """Show nothing more. Return the id of the placeholder, empty if there is none."""
        self._is_finished.set()
        self._has_text.set()
        if self._task is not None:
            if self._is_calling:
                await asyncio.wait([self._task], timeout=LAST_CALL_S)
            while self._is_calling and not self.message_id and not self._task.done():
                await asyncio.wait([self._task])  # a post: the channel's own timeout ends it
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        return self.message_id

    async def _run(self) -> None:
        try:
            await self._show_typing()
            await self._view.turn()
            if not (self._has_drafts or self.message_id):
                await _wait(self._is_finished, self._view.limiter.edit_interval_s(self._view.post.place, 0))
            await self._follow()
        except ChannelError as error:
            logger.info("the live view of an answer ended: %s", type(error).__name__)
        except Exception as error:  # noqa: BLE001  the edge to the platform: the answer itself must not suffer
            logger.warning("the live view of an answer ended: %s", type(error).__name__)

    async def _show_typing(self) -> None:
        while not self._has_text.is_set():
            await self._view.channel.typing(self._view.post.place)
            await _wait(self._has_text, TYPING_S)

    async def _follow(self) -> None:
        """Show what there is, repeatedly, at the pace of the limits."""
        place, limiter = self._view.post.place, self._view.limiter
        num_shown = 0
        while not self._is_finished.is_set():
            text = self._visible()
            if text != self._shown and self._view.may_show() and limiter.try_turn(place):
                await self._show(text)
                num_shown += 1
            await _wait(self._is_finished, max(limiter.edit_interval_s(place, num_shown), limiter.wait_s(place)))

    async def _show(self, text: str) -> None:
        self._is_calling = True
        try:
            if self.message_id or not self._has_drafts:
                await self._show_message(text)
            else:
                await self._show_draft(text)
        except SlowDown as error:
            self._view.limiter.park(self._view.post.place, error.retry_after_s)
        finally:
            self._is_calling = False

    async def _show_draft(self, text: str) -> None:
        """Show a draft. A place without drafts gets a message when its first edit would be due."""
        try:
            await self._view.channel.draft(self._view.post.place, self._view.draft_id, text)
            self._shown = text
        except NotOffered:
            self._has_drafts = False

    async def _show_message(self, text: str) -> None:
        view = self._view
        if self.message_id:
            await view.channel.edit(view.post.place, self.message_id, text + CURSOR)
        else:
            self.is_uncertain = True
            self.message_id = await view.channel.post(replace(view.post, text=text + CURSOR, rows=()))
            self.is_uncertain = False
            await view.on_shown(self.message_id)
        self._shown = text

    def _visible(self) -> str:
        """Return the first part of what there is, with room for the cursor."""
        limits = self._view.channel.limits
        text = "".join(self._pieces)
        parts = split(text, max(limits.text_units - len(CURSOR), MIN_LIMIT), limits.measure)
        return parts[0] if parts else self._shown


async def _wait(event: asyncio.Event, timeout_s: float) -> None:
    """Wait until the event, or for the time given."""
    try:
        async with asyncio.timeout(timeout_s):
            await event.wait()
    except TimeoutError:
        return
