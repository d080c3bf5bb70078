"""The durable outbox at work: shows what heed says on its platforms, in order within a chat.

Invariants: what is to be said is in storage before anything is shown, an answer together with its stored turn and the
done mark of the update that asked for it; a platform's wait holds up its own chat only; what heed has not shown when it
ends is shown by the next one.
"""

import asyncio
import logging
import random
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing

from bot.backoff import Jitter, Sleep, backoff_s
from bot.channel import Channel, ChannelError, Post, SlowDown, Unreachable
from bot.core.gateway import Gateway, Turn, completion_row
from bot.errors import NotReady, Overloaded, RequestError
from bot.events import Place
from bot.messaging.delivery import ChatKey, Delivery, link
from bot.messaging.inbox import Done
from bot.messaging.live_view import AnswerView, LiveView
from bot.messaging.markdown import literal
from bot.messaging.outbox_item import OutboxItem, chat_of
from bot.messaging.rate_limit import Limiter
from bot.monitoring.metrics import Metrics
from engine.errors import ConversationRefused, EngineError, EngineRestarting, PromptTooLongError
from engine.requests import GenerateResult
from storage.conversations import completions, outbox
from storage.database import Database, Session
from storage.errors import PASSING
from storage.kinds import OutboxState
from storage.tables import Completion, Inbox, Outbox

logger = logging.getLogger(__name__)

MAX_FAILURES = 3  # unexpected errors, before an item is given up
NOT_ANSWERED = "I could not answer that. Please try again."


class OutboxSender:
    """Queues what heed says and sends it."""

    def __init__(
        self,
        database: Database,
        gateway: Gateway,
        metrics: Metrics,
        channels: Mapping[str, Channel],
        *,
        sleep: Sleep = asyncio.sleep,
        jitter: Jitter = random.uniform,
    ) -> None:
        self._database = database
        self._gateway = gateway
        self._metrics = metrics
        self._channels = channels
        self._sleep = sleep
        self._jitter = jitter
        self._limiters = {name: Limiter(channel.limits, time.monotonic, sleep) for name, channel in channels.items()}
        self._delivery = Delivery(database, channels, self._limiters)
        self._queues: dict[ChatKey, deque[OutboxItem]] = {}
        self._senders: dict[ChatKey, asyncio.Task[None]] = {}
        self._queued: set[str] = set()
        self._open: set[str] = set()  # platforms that have started
        self.may_show: Callable[[], bool] = _always  # False: another heed shows what waits

    @property
    def num_waiting(self) -> int:
        """Items that are to be shown."""
        return len(self._queued)

    async def open(self, platform: str) -> None:
        """Send on a platform from now on, first of all what an earlier heed has not shown."""
        for _ in range(2):  # again for what was stored between the reading and the opening
            rows = await self._database.read(outbox.waiting)
            self._open.add(platform)
            self._enqueue_all(rows)

    async def take_up(self) -> None:
        """Send what another heed has stored meanwhile, on the platforms that are open."""
        self._enqueue_all(await self._database.read(outbox.waiting))

    async def settled(self, place: Place) -> None:
        """Wait until nothing is being shown in a place: from then on it is known what its messages are for."""
        if sender := self._senders.get((place.platform, chat_of(place))):
            await asyncio.wait([sender])

    async def drain(self, timeout_s: float) -> None:
        """Give what is being shown `timeout_s`; the rest stays in storage."""
        senders = list(self._senders.values())
        if senders:
            await asyncio.wait(senders, timeout=timeout_s)
        self._open.clear()
        for sender in senders:
            sender.cancel()
        await asyncio.gather(*senders, return_exceptions=True)

    async def say(
        self,
        post: Post,
        user_id: str | None,
        key: str = "",
        *,
        done: Callable[[Session], None] | None = None,
        role: str = "",
        about: str = "",
    ) -> None:
        """Queue a message, together with the done mark of an update. The same `key` is said once."""
        outbox_item = OutboxItem.of_post(post, user_id, key, role=role, about=about)

        def commit(s: Session) -> Outbox:
            row, _ = outbox.add(s, outbox_item.row())
            if done is not None:
                done(s)
            return row

        self.send(await self._database.write(commit))

    def send(self, row: Outbox) -> None:
        """Hand an item to the sender of its chat, just stored; harmless if the sender has it or must wait."""
        self._enqueue(row, is_fresh=(row.platform, row.chat_key) not in self._queues)

    def _enqueue_all(self, rows: Sequence[Outbox]) -> None:
        for row in rows:
            self._enqueue(row, is_fresh=False)

    def _enqueue(self, row: Outbox, *, is_fresh: bool) -> None:
        """Queue an item; one that is not fresh may be shown or erased before its turn, so it is read again then."""
        if row.state != OutboxState.WAITING or row.id in self._queued or row.platform not in self._open:
            return
        outbox_item = OutboxItem.of_row(row)
        if not self._channels[row.platform].hears(outbox_item.post.place.server):
            return  # another connection's
        self._queued.add(row.id)
        outbox_item.is_fresh = is_fresh
        if not (is_fresh or outbox_item.is_uncertain):
            outbox_item.after = ""  # newer messages of heed's may be there by now
        key = (row.platform, row.chat_key)
        self._queues.setdefault(key, deque()).append(outbox_item)
        if key not in self._senders:
            self._senders[key] = asyncio.create_task(self._send_all(key), name=f"sender on {row.platform}")

    async def draft(self, outbox_item: OutboxItem) -> None:
        """Show an item before its final text: post it, or edit it if the place has a call to spare."""
        place, platform = outbox_item.post.place, outbox_item.platform
        if not self.may_show():
            return
        try:
            if not outbox_item.shown:
                await self.settled(place)
            await self._delivery.show_draft(outbox_item)
        except SlowDown as error:
            self._limiters[platform].park(place, error.retry_after_s)
        except ChannelError as error:
            logger.info("a draft could not be shown on %s: %s", platform, type(error).__name__)

    async def take_buttons(self, place: Place, message_id: str) -> None:
        """Take the buttons off a message; what the platform makes of it changes nothing."""
        try:
            await self._limiters[place.platform].turn(place)
            await self._channels[place.platform].take_buttons(place, message_id)
        except ChannelError as error:
            logger.info("buttons could not be taken away on %s: %s", place.platform, type(error).__name__)

    def draft_interval_s(self, place: Place, num_edits: int) -> float:
        """Return how long to wait before the next edit of a draft in a place."""
        return self._limiters[place.platform].edit_interval_s(place, num_edits)

    async def conclude(self, outbox_item: OutboxItem, done: Done | None = None) -> None:
        """Queue an item in place of its draft, together with the done mark of an update."""

        def commit(s: Session) -> Outbox:
            row = outbox.keep(s, outbox_item.row())
            if done is not None:
                done(s)
            return row

        self.send(await self._database.write(commit))

    async def answer(self, turn: Turn, item: Inbox, done: Done, post: Post) -> Completion | None:
        """Answer a turn live in the place of `post`; store it, queue its final text and mark the update done at once.

        Return None if there is no answer; then the person is told why. Raises NotReady, Overloaded or EngineRestarting
        if it is worth another try; a placeholder is used again then.
        """
        outbox_item = OutboxItem.of_post(post, turn.user_id, f"answer-{item.seq}", is_answer=True)
        if item.attempts:
            await self.resume(outbox_item)
        live = self._live(outbox_item, item.seq or 1)
        try:
            result = await self._generate(turn, live)
        except (NotReady, Overloaded, EngineRestarting):
            raise
        except (RequestError, PromptTooLongError, ConversationRefused) as error:
            await self._settle(outbox_item, literal(str(error)), done, live, None)
            return None
        except EngineError:
            await self._settle(outbox_item, NOT_ANSWERED, done, live, None)
            return None
        completion = completion_row(turn, result)
        await self._settle(outbox_item, result.text, done, live, completion)
        self._gateway.count(result)
        return completion

    async def _generate(self, turn: Turn, live: LiveView) -> GenerateResult:
        live.start()
        try:
            async with aclosing(self._gateway.generate(turn)) as deltas:
                async for delta in deltas:
                    live.add(delta.text)
                    if delta.result is not None:
                        return delta.result
        finally:
            await live.finish()
        raise EngineRestarting("the model's answer ended without its result")

    async def _settle(
        self, outbox_item: OutboxItem, text: str, done: Done, live: LiveView, completion: Completion | None
    ) -> None:
        """Store the turn and what shows it, queue what is to be shown, and mark the update done, in one transaction."""
        outbox_item.shown = [live.message_id] if live.message_id else []
        outbox_item.is_uncertain = not live.message_id and (live.is_uncertain or outbox_item.is_uncertain)
        outbox_item.retell(text, completion)

        def commit(s: Session) -> Outbox:
            if completion is not None:
                completions.add(s, completion)
            link(s, outbox_item)
            row = outbox.keep(s, outbox_item.row())
            done(s)
            return row

        self.send(await self._database.write(commit))

    async def resume(self, outbox_item: OutboxItem) -> None:
        """In place: find the draft or placeholder that an earlier attempt has shown."""
        known = await self._database.read(lambda s: outbox.get(s, outbox_item.id))
        if known is not None and known.external_message_id:
            outbox_item.shown = [known.external_message_id]
        outbox_item.is_uncertain = not outbox_item.shown

    def _live(self, outbox_item: OutboxItem, draft_id: int) -> LiveView:
        platform = outbox_item.post.place.platform

        async def keep(message_id: str) -> None:
            await self._delivery.note_placeholder(outbox_item, message_id)

        async def turn() -> None:
            await self.settled(outbox_item.post.place)

        view = AnswerView(
            self._channels[platform],
            self._limiters[platform],
            outbox_item.first_post(),
            draft_id,
            keep,
            turn,
            self.may_show,
            message_id=outbox_item.shown[0] if outbox_item.shown else "",
        )
        return LiveView(view)

    async def _send_all(self, key: ChatKey) -> None:
        """Show a chat's items until none is left."""
        try:
            while (queue := self._queues.get(key)) and key[0] in self._open:
                await self._send(queue[0])
                self._queued.discard(queue.popleft().id)
                if not queue:
                    del self._queues[key]
        finally:
            del self._senders[key]

    async def _send(self, outbox_item: OutboxItem) -> None:
        """Show an item, however long the platform makes it wait; give it up if the platform will never take it."""
        num_failures = num_unreachable = 0
        while True:
            try:
                if not (outbox_item.is_fresh or await self._is_waiting(outbox_item)) or not self.may_show():
                    return None
                outbox_item.is_fresh = True
                await self._delivery.show(outbox_item)
                await self._delivery.note_shown(outbox_item)
                return self._metrics.posts.labels(outbox_item.platform, "shown").inc()
            except SlowDown as error:
                self._limiters[outbox_item.platform].park(outbox_item.post.place, error.retry_after_s)
                self._metrics.waited_s.labels(outbox_item.platform).inc(error.retry_after_s)
            except (Unreachable, *PASSING):
                num_unreachable += 1
                await self._sleep(backoff_s(num_unreachable, self._jitter))
            except ChannelError as error:
                return await self._give_up(outbox_item, error)
            except Exception as error:  # noqa: BLE001  the edge to the platform: the chat must go on
                num_failures += 1
                if num_failures == MAX_FAILURES:
                    return await self._give_up(outbox_item, error)
                await self._sleep(float(num_failures))

    async def _is_waiting(self, outbox_item: OutboxItem) -> bool:
        """Return False if it was shown after `open` had read it, or was erased with its person while it was queued."""
        row = await self._database.read(lambda s: outbox.get(s, outbox_item.id))
        return row is not None and row.state == OutboxState.WAITING

    async def _give_up(self, outbox_item: OutboxItem, error: Exception) -> None:
        await self._database.write(lambda s: outbox.give_up(s, outbox_item.id))
        self._metrics.posts.labels(outbox_item.platform, type(error).__name__.lower()).inc()
        logger.warning(
            "an item could not be shown on %s and is given up: %s", outbox_item.platform, type(error).__name__
        )


def _always() -> bool:
    return True
