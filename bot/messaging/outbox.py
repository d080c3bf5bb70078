"""The durable outbox at work: shows what heed says on its platforms, in order within a chat.

Invariants: what is to be said is in storage before anything is shown, an answer together with its stored turn and the
done mark of the update that asked for it; a final answer is never shown twice: where a platform can tell a repeated
post (nonce) it is posted, elsewhere a placeholder is posted and edited, so that a crash at the worst moment leaves one
more placeholder; a platform's wait holds up its own chat only; what heed has not shown when it ends is shown by the
next one.
"""

import asyncio
import logging
import random
import time
from collections import deque
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import replace

from bot.backoff import Jitter, Sleep, backoff_s
from bot.channel import Channel, ChannelError, Gone, NotOffered, Post, Refused, SlowDown, Unreachable
from bot.core.gateway import Gateway, Turn, completion_row
from bot.errors import NotReady, Overloaded, RequestError
from bot.events import Place
from bot.messaging.inbox import Done
from bot.messaging.live_view import AnswerView, LiveView
from bot.messaging.outbox_item import OutboxItem, chat_of
from bot.messaging.rate_limit import Limiter
from bot.messaging.splitting import split
from bot.monitoring.metrics import Metrics
from engine.errors import EngineError, EngineRestarting
from engine.requests import GenerateResult
from storage.conversations import completions, message_roles, outbox
from storage.database import Database, Session
from storage.errors import PASSING
from storage.kinds import OutboxState
from storage.tables import Completion, Inbox, MessageRole, Outbox, PlatformMessage

logger = logging.getLogger(__name__)

MAX_FAILURES = 3  # unexpected errors, before an item is given up
PLACEHOLDER = "…"
NO_WORDS = "(no words)"  # an empty answer still gets shown, so that it can be corrected

ChatKey = tuple[str, str]


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
        self._queues: dict[ChatKey, deque[OutboxItem]] = {}
        self._senders: dict[ChatKey, asyncio.Task[None]] = {}
        self._queued: set[str] = set()
        self._without_drafts: set[str] = set()
        self._open: set[str] = set()  # platforms that have started

    @property
    def num_waiting(self) -> int:
        """Items that are to be shown."""
        return len(self._queued)

    async def open(self, platform: str) -> None:
        """Send on a platform from now on, first of all what an earlier heed has not shown."""
        for _ in range(2):  # again for what was stored between the reading and the opening
            rows = await self._database.read(outbox.waiting)
            self._open.add(platform)
            for row in rows:
                self._enqueue(row, is_fresh=False)

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
        done: Done | None = None,
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

    def _enqueue(self, row: Outbox, *, is_fresh: bool) -> None:
        """Queue an item; one that is not fresh may be shown or erased before its turn, so it is read again then."""
        if row.state != OutboxState.WAITING or row.id in self._queued or row.platform not in self._open:
            return
        self._queued.add(row.id)
        outbox_item = OutboxItem.of_row(row)
        outbox_item.is_fresh = is_fresh
        key = (row.platform, row.chat_key)
        self._queues.setdefault(key, deque()).append(outbox_item)
        if key not in self._senders:
            self._senders[key] = asyncio.create_task(self._send_all(key), name=f"sender on {row.platform}")

    async def draft(self, outbox_item: OutboxItem) -> None:
        """Show an item before its final text: post it, or edit it if the place has a call to spare."""
        place, platform = outbox_item.post.place, outbox_item.platform
        try:
            if not outbox_item.shown:
                await self.settled(place)
                outbox_item.shown = [await self._post(self._channels[platform], outbox_item.part_of_draft())]
                await self._database.write(lambda s: _keep_draft(s, outbox_item))
            elif self._limiters[platform].try_turn(place):
                post = outbox_item.post
                await self._channels[platform].edit(place, outbox_item.shown[0], post.text, post.rows)
        except SlowDown as error:
            self._limiters[platform].park(place, error.retry_after_s)
        except ChannelError as error:
            logger.info("a draft could not be shown on %s: %s", platform, type(error).__name__)

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
        except (RequestError, EngineError) as error:
            text = str(error) if isinstance(error, RequestError) else "I could not answer that. Please try again."
            await self._settle(outbox_item, text, done, live, None)
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
        if not live.has_drafts:
            self._without_drafts.add(outbox_item.post.place.platform)
        outbox_item.shown = [live.message_id] if live.message_id else []
        outbox_item.is_uncertain = not live.message_id and (live.is_uncertain or outbox_item.is_uncertain)
        outbox_item.retell(text, completion)

        def commit(s: Session) -> Outbox:
            if completion is not None:
                completions.add(s, completion)
            self._link(s, outbox_item)
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
            outbox_item.shown = [message_id]
            await self._database.write(lambda s: outbox.keep(s, outbox_item.row(OutboxState.DRAFT)))

        async def turn() -> None:
            await self.settled(outbox_item.post.place)

        view = AnswerView(
            self._channels[platform],
            self._limiters[platform],
            outbox_item.first_post(),
            draft_id,
            keep,
            turn,
            message_id=outbox_item.shown[0] if outbox_item.shown else "",
        )
        return LiveView(view, has_drafts=platform not in self._without_drafts)

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
                if not (outbox_item.is_fresh or await self._is_waiting(outbox_item)):
                    return None
                outbox_item.is_fresh = True
                await self._show(outbox_item)
                return await self._note_shown(outbox_item)
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

    async def _show(self, outbox_item: OutboxItem) -> None:
        """Bring every part to its final text, beginning with the first that an earlier attempt did not finish."""
        limits = self._channels[outbox_item.platform].limits
        parts = split(outbox_item.post.text, limits.text_units, limits.measure) or [NO_WORDS]
        while outbox_item.num_final < len(parts):
            place = outbox_item.num_final
            await self._show_part(outbox_item, outbox_item.part(parts, place), place, is_only=len(parts) == 1)
            outbox_item.num_final += 1

    async def _show_part(self, outbox_item: OutboxItem, post: Post, place: int, *, is_only: bool) -> None:
        channel = self._channels[outbox_item.platform]
        if place < len(outbox_item.shown):
            if outbox_item.is_careful and await self._is_edited(channel, post, outbox_item.shown[place]):
                return
            if not outbox_item.is_careful:
                return  # it was posted with its final text
            post = replace(post, nonce=outbox_item.nonce(place, instead_of=outbox_item.shown[place]))
            del outbox_item.shown[place:]
        if not outbox_item.is_careful or channel.limits.has_nonces:
            outbox_item.is_known = False
            outbox_item.shown.append(await self._post(channel, post))
            if outbox_item.is_uncertain and place == 0:
                await self._edit(channel, post, outbox_item.shown[0])  # the nonce may have found the placeholder
            if not is_only:
                await self._keep(outbox_item)
            return
        placeholder = Post(post.place, PLACEHOLDER, reply_to=post.reply_to, nonce=post.nonce, token=post.token)
        outbox_item.shown.append(await self._post(channel, placeholder))
        await self._keep(outbox_item)
        await self._edit(channel, post, outbox_item.shown[place])

    async def _is_edited(self, channel: Channel, post: Post, message_id: str) -> bool:
        """Return false if the message cannot be edited any more, so that another must be posted."""
        try:
            await self._edit(channel, post, message_id)
        except (Gone, Refused, NotOffered) as error:
            logger.info("a message could not be edited (%s); posting another", type(error).__name__)
            return False
        return True

    async def _edit(self, channel: Channel, post: Post, message_id: str) -> None:
        await self._limiters[channel.platform].turn(post.place)
        await channel.edit(post.place, message_id, post.text, post.rows)

    async def _post(self, channel: Channel, post: Post) -> str:
        await self._limiters[channel.platform].turn(post.place)
        return await channel.post(post)

    async def _keep(self, outbox_item: OutboxItem) -> None:
        """Note what is posted so far, and what it is for: buttons are shown only after that."""

        def commit(s: Session) -> None:
            outbox.keep(s, outbox_item.row())
            self._link(s, outbox_item)
            _put_role(s, outbox_item)

        await self._database.write(commit)
        outbox_item.is_known = True

    async def _note_shown(self, outbox_item: OutboxItem) -> None:
        def commit(s: Session) -> None:
            if outbox.finish(s, outbox_item.id, outbox_item.shown[-1]) and not outbox_item.is_known:
                self._link(s, outbox_item)
                _put_role(s, outbox_item)

        await self._database.write(commit)
        self._metrics.posts.labels(outbox_item.platform, "shown").inc()

    async def _give_up(self, outbox_item: OutboxItem, error: Exception) -> None:
        await self._database.write(lambda s: outbox.give_up(s, outbox_item.id))
        self._metrics.posts.labels(outbox_item.platform, type(error).__name__.lower()).inc()
        logger.warning(
            "an item could not be shown on %s and is given up: %s", outbox_item.platform, type(error).__name__
        )

    def _link(self, s: Session, outbox_item: OutboxItem) -> None:
        """Note which messages show the answer."""
        for message_id in outbox_item.shown if outbox_item.completion_id else ():
            completions.link(
                s,
                PlatformMessage(
                    platform=outbox_item.platform,
                    chat_external_id=chat_of(outbox_item.post.place),
                    message_id=message_id,
                    completion_id=outbox_item.completion_id,
                ),
            )


def _keep_draft(s: Session, outbox_item: OutboxItem) -> None:
    outbox.keep(s, outbox_item.row(OutboxState.DRAFT))
    _put_role(s, outbox_item)


def _put_role(s: Session, outbox_item: OutboxItem) -> None:
    if outbox_item.role and outbox_item.user_id:
        row = MessageRole(
            platform=outbox_item.platform,
            chat_external_id=chat_of(outbox_item.post.place),
            message_id=outbox_item.shown[-1],
            user_id=outbox_item.user_id,
            role=outbox_item.role,
            about=outbox_item.about,
        )
        message_roles.put(s, row)
