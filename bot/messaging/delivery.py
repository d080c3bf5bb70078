"""One item on its way to a platform: its parts posted or edited at the platform's pace, and what shows it noted.

Invariants: what is complete is posted as it is, in one call; an answer, or something to press, is never shown twice.
Where a platform can tell a repeated post (nonce) it is repeated. Elsewhere storage has the number of the newest message
known before a post, so that a post whose reply was lost is looked for among the next ones; where none is known a
placeholder is posted and edited, and a crash at the worst moment leaves one placeholder more.
"""

import logging
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace

from bot.channel import Channel, ChannelError, Gone, NotOffered, Post, Refused, Unreachable
from bot.messaging.outbox_item import OutboxItem, chat_of
from bot.messaging.rate_limit import Limiter
from bot.messaging.splitting import split
from storage.conversations import completions, message_roles, outbox
from storage.database import Database, Session
from storage.kinds import OutboxState
from storage.tables import MessageRole, PlatformMessage

logger = logging.getLogger(__name__)

PLACEHOLDER = "…"
NO_WORDS = "(no words)"  # an empty answer still gets shown, so that it can be corrected
MAX_TRIED = 8  # messages among which a post is looked for whose reply was lost: people may have written meanwhile
KNOWN_CHATS = 10_000  # whose newest message is remembered; the longest unused goes first

ChatKey = tuple[str, str]


class Delivery:
    """Shows items on their platforms."""

    def __init__(self, database: Database, channels: Mapping[str, Channel], limiters: Mapping[str, Limiter]) -> None:
        self._database = database
        self._channels = channels
        self._limiters = limiters
        self._newest: OrderedDict[ChatKey, int] = OrderedDict()  # messages of heed's, where platforms number them

    async def show(self, item: OutboxItem) -> None:
        """Bring every part to its final text, beginning with the first that an earlier attempt did not finish."""
        limits = self._channels[item.platform].limits
        parts = split(item.post.text, limits.text_units, limits.measure) or [NO_WORDS]
        while item.num_final < len(parts):
            place = item.num_final
            await self._show_part(item, item.part(parts, place), place, is_only=len(parts) == 1)
            item.num_final += 1

    async def show_draft(self, item: OutboxItem) -> None:
        """Show an item before its final text: post it, or edit it if the place has a call to spare."""
        place, channel = item.post.place, self._channels[item.platform]
        if not item.shown:
            item.shown = [await self._post(channel, item.part_of_draft())]
            await self._keep(item, OutboxState.DRAFT)
        elif self._limiters[item.platform].try_turn(place):
            await channel.edit(place, item.shown[0], item.post.text, item.post.rows)

    async def note_placeholder(self, item: OutboxItem, message_id: str) -> None:
        """Note the message that shows an answer while it is written."""
        item.shown = [message_id]
        self._note_newest(item.chat_key, message_id)
        await self._database.write(lambda s: outbox.keep(s, item.row(OutboxState.DRAFT)))

    async def note_shown(self, item: OutboxItem) -> None:
        """Note that an item is shown, and what its messages are for if that is not known."""

        def commit(s: Session) -> None:
            if outbox.finish(s, item.id, item.shown[-1]) and not item.is_known:
                link(s, item)
                _put_role(s, item)

        await self._database.write(commit)

    async def _show_part(self, item: OutboxItem, post: Post, place: int, *, is_only: bool) -> None:
        channel = self._channels[item.platform]
        if place < len(item.shown):
            if not item.is_careful:
                return  # it was posted with its final text
            if await self._is_edited(channel, post, item.shown[place]):
                return
            post = replace(post, nonce=item.nonce(place, instead_of=item.shown[place]))
            del item.shown[place:]
        if item.is_careful and not channel.limits.has_nonces:
            await self._post_once(channel, item, post)
        else:
            item.shown.append(await self._post(channel, post))
            if item.is_uncertain and place == 0:
                await self._edit(channel, post, item.shown[0])  # the nonce may have found the placeholder
        item.is_known = False
        if not is_only:
            await self._keep(item)

    async def _post_once(self, channel: Channel, item: OutboxItem, post: Post) -> None:
        """Post where a repeated post is shown twice."""
        if item.is_uncertain and (found := await self._found(channel, item, post)):
            item.shown.append(found)
        else:
            item.after = item.after if item.is_uncertain else self._after(item)
            await (self._post_noted if item.after else self._post_and_edit)(channel, item, post)
        item.is_uncertain = False

    async def _post_noted(self, channel: Channel, item: OutboxItem, post: Post) -> None:
        """Post what is complete; storage knows before that it may be there."""
        item.is_uncertain = True
        await self._database.write(lambda s: outbox.keep(s, item.row()))
        try:
            item.shown.append(await self._post(channel, post))
        except ChannelError as error:
            item.is_uncertain = isinstance(error, Unreachable) and error.is_ambiguous
            raise

    async def _post_and_edit(self, channel: Channel, item: OutboxItem, post: Post) -> None:
        """Post a placeholder, note its id, and edit it."""
        placeholder = Post(post.place, PLACEHOLDER, reply_to=post.reply_to, nonce=post.nonce, token=post.token)
        item.shown.append(await self._post(channel, placeholder))
        item.is_uncertain = False
        await self._keep(item)
        await self._edit(channel, post, item.shown[-1])

    async def _found(self, channel: Channel, item: OutboxItem, post: Post) -> str:
        """Look for a post whose reply was lost, and bring it to its final text. Return its id, empty if there is none.

        A platform lets heed edit its own messages only, and every other one of these is known.
        """
        if not item.after:
            return ""
        first = int(item.after) + 1
        ids = [str(number) for number in range(first, first + MAX_TRIED)]
        known = await self._database.read(lambda s: message_roles.known(s, *item.chat_key, ids))
        for message_id in ids:
            if message_id not in known and await self._is_edited(channel, post, message_id):
                self._note_newest(item.chat_key, message_id)
                return message_id
        return ""

    def _after(self, item: OutboxItem) -> str:
        """Return the number of the newest message that is known to be there; empty if none is."""
        return str(max(int(item.after or 0), self._newest.get(item.chat_key, 0)) or "")

    def _note_newest(self, chat: ChatKey, message_id: str) -> None:
        if message_id.isdecimal() and not self._channels[chat[0]].limits.has_nonces:
            self._newest[chat] = max(int(message_id), self._newest.pop(chat, 0))
            while len(self._newest) > KNOWN_CHATS:
                self._newest.popitem(last=False)

    async def _is_edited(self, channel: Channel, post: Post, message_id: str) -> bool:
        """Return false if the message cannot be edited (any more)."""
        try:
            await self._edit(channel, post, message_id)
        except (Gone, Refused, NotOffered) as error:
            logger.info("a message could not be edited (%s)", type(error).__name__)
            return False
        return True

    async def _edit(self, channel: Channel, post: Post, message_id: str) -> None:
        await self._limiters[channel.platform].turn(post.place)
        await channel.edit(post.place, message_id, post.text, post.rows)

    async def _post(self, channel: Channel, post: Post) -> str:
        await self._limiters[channel.platform].turn(post.place)
        message_id = await channel.post(post)
        self._note_newest((channel.platform, chat_of(post.place)), message_id)
        return message_id

    async def _keep(self, item: OutboxItem, state: OutboxState = OutboxState.WAITING) -> None:
        """Note what is posted so far, and what it is for."""

        def commit(s: Session) -> None:
            outbox.keep(s, item.row(state))
            link(s, item)
            _put_role(s, item)

        await self._database.write(commit)
        item.is_known = True


def link(s: Session, item: OutboxItem) -> None:
    """Note which messages show an answer."""
    for message_id in item.shown if item.completion_id else ():
        completions.link(
            s,
            PlatformMessage(
                platform=item.platform,
                chat_external_id=chat_of(item.post.place),
                message_id=message_id,
                completion_id=item.completion_id,
            ),
        )


def _put_role(s: Session, item: OutboxItem) -> None:
    if item.role and item.user_id:
        row = MessageRole(
            platform=item.platform,
            chat_external_id=chat_of(item.post.place),
            message_id=item.shown[-1],
            user_id=item.user_id,
            role=item.role,
            about=item.about,
        )
        message_roles.put(s, row)
