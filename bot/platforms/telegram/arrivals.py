"""Raw Telegram updates on their way into the inbox.

Invariants: what `take_all` returns from is durable or of no use to heed; the updates of one conversation are committed
in the order of their ids, those of several at the same time (and so in one commit).
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from bot.channel import Take
from bot.platforms.telegram.reader import PLATFORM, labelled, sender_and_chat
from storage.errors import NotStorable
from storage.tables import Inbox

logger = logging.getLogger(__name__)


class Arrivals:
    """Commits the updates of one bot."""

    def __init__(self, bot_id: str, username: str, take: Take) -> None:
        self._bot_id = bot_id
        self._username = username
        self._take = take

    async def take_all(self, updates: Iterable[Any]) -> None:
        """Commit a batch. Raises what `take` raised; then some of it may not be durable."""
        by_chat: dict[str, list[Inbox]] = defaultdict(list)
        for row in self._rows(updates):
            by_chat[row.chat_key.partition("/")[0]].append(row)
        outcomes = await asyncio.gather(*map(self._take_chat, by_chat.values()), return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome

    def _rows(self, updates: Iterable[Any]) -> list[Inbox]:
        rows = [row for update in updates if (row := self._row(update)) is not None]
        return sorted(rows, key=lambda row: int(row.update_id))

    def _row(self, update: Any) -> Inbox | None:
        number = update_id(update)
        if number is None:
            return None
        account, chat_key = sender_and_chat(update)
        if not chat_key:
            return None
        return Inbox(
            platform=PLATFORM,
            bot_id=self._bot_id,
            update_id=str(number),
            account=account,
            chat_key=chat_key,
            payload=labelled(update, self._username),
        )

    async def _take_chat(self, rows: list[Inbox]) -> None:
        for row in rows:
            try:
                await self._take(row)
            except NotStorable as error:
                logger.warning("telegram: update %s cannot be kept (%s)", row.update_id, type(error).__name__)


def update_id(update: Any) -> int | None:
    """Return an update's number, None if it has none."""
    number = update.get("update_id") if isinstance(update, dict) else None
    return number if isinstance(number, int) else None
