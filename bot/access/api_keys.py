"""API keys: those of the settings, those that `heed keys` made, and how much of a day each has left.

Invariants: a key is compared in constant time and remembered nowhere; what `heed keys` changes of a key holds from the
next call on, for storage is asked each time; beyond loopback no one is let in without a key, also when the last one is
revoked; on loopback, a second after the first key was made, no one is either. Quotas are of UTC days and are counted in
storage, so that a restart gives nothing back.
"""

import contextlib
import hmac
import math
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from bot.config import HttpSettings
from bot.errors import QuotaUsed, StartError
from storage.database import Database
from storage.errors import StorageError
from storage.people import api_keys
from storage.people.api_keys import Spending
from storage.tables import ApiKey

Scope = Literal["chat", "feedback", "adapters", "person", "metrics", "admin"]
SCOPES: dict[Scope, str] = {
    "chat": "ask for answers and likelihoods",
    "feedback": "correct answers and keep notes",
    "adapters": "list, take back, export and import versions",
    "person": "read, export and erase what heed holds about the person, and say commands",
    "metrics": "read the counters",
    "admin": "say an admin's commands",
}
EVERYDAY: tuple[Scope, ...] = ("chat", "feedback", "adapters", "person")
OF_SETTINGS: frozenset[Scope] = frozenset((*EVERYDAY, "metrics"))  # HEED_ACCESS_ADMINS makes admins of them
LOCAL_USER = "local"
ANY_EVERY_S = 1.0  # how often storage is asked whether there are keys: a call that needs none waits for nothing else
NOTED_EVERY_S = 60.0  # how exactly the last use of a key is known


@dataclass(frozen=True)
class Holder:
    """The holder of a key. `key_id` is None if nothing is counted."""

    account: str
    scopes: frozenset[str]
    is_admin: bool | None = None  # None: HEED_ACCESS_ADMINS decides
    key_id: str | None = None


OPERATOR = Holder(LOCAL_USER, frozenset(SCOPES), is_admin=True)


class Keys:
    """Every key of one heed."""

    def __init__(self, database: Database, settings: HttpSettings, clock: Callable[[], float] = time.time) -> None:
        self.own = api_keys.new_token()  # of this process, for the terminal chat in it
        self._database = database
        self._settings = settings
        self._clock = clock
        self._is_any = True  # until storage has said whether there are keys
        self._ask_again_s = -math.inf  # by the monotonic clock
        self._noted_s: dict[str, float] = {}  # when the last use of each key was stored

    async def is_needed(self) -> bool:
        """Return True if a call must bring a key. While storage cannot tell, what it said last holds."""
        if self._settings.api_keys or not self._settings.is_loopback:
            return True
        now_s = time.monotonic()
        if now_s >= self._ask_again_s:
            with contextlib.suppress(StorageError):
                self._is_any = await self._database.read(api_keys.is_any)
                self._ask_again_s = now_s + ANY_EVERY_S
        return self._is_any

    async def require_some(self) -> None:
        """Raise StartError if heed can be reached from other machines and no one has a key."""
        self._is_any = await self._database.read(api_keys.is_any)
        if self._settings.is_loopback or self._settings.api_keys or self._is_any:
            return
        raise StartError(
            f"HEED_HTTP_HOST: {self._settings.host} can be reached from other machines and there is no API key. "
            "Make one with `heed keys add you`, or set HEED_HTTP_HOST=127.0.0.1."
        )

    async def holder(self, token: str) -> Holder | None:
        """Return who this key stands for, None for a key that opens nothing."""
        found = self._of_settings(token)
        if found is not None:
            return found
        digest = api_keys.digest(token)
        row = await self._database.read(lambda s: api_keys.find(s, digest))
        if row is None or not secrets.compare_digest(row.sha256, digest):
            return None
        await self._note(row)
        return Holder(row.account, frozenset(row.scopes), "admin" in row.scopes, row.id)

    async def spend(self, holder: Holder, what: Spending, number: int = 1) -> None:
        """Count messages or updates. Raises QuotaUsed where the day has not so many left; then none is counted."""
        if holder.key_id is None:
            return
        now_s = self._clock()
        key_id, day = holder.key_id, datetime.fromtimestamp(now_s, UTC).date().isoformat()
        if await self._database.write(lambda s: api_keys.spend(s, key_id, what, day, now_s, number)):
            return
        left_s = _next_day_s(now_s) - now_s
        hours = math.ceil(left_s / 3600)
        raise QuotaUsed(
            f"This API key's {what} of the day are used up; there are more in {hours} hour{'s' * (hours != 1)}.", left_s
        )

    def _of_settings(self, token: str) -> Holder | None:
        given, found = token.encode("utf-8", "surrogateescape"), None
        if hmac.compare_digest(self.own.encode(), given):
            found = OPERATOR
        for name, key in self._settings.api_keys.items():
            if hmac.compare_digest(key.get_secret_value().encode(), given):
                found = Holder(name, OF_SETTINGS)
        return found

    async def _note(self, row: ApiKey) -> None:
        now_s = self._clock()
        if now_s - self._noted_s.get(row.id, -math.inf) < NOTED_EVERY_S:
            return
        self._noted_s[row.id] = now_s
        await self._database.write(lambda s: api_keys.note_use(s, row.id, now_s))


def _next_day_s(now_s: float) -> float:
    day = datetime.fromtimestamp(now_s, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return (day + timedelta(days=1)).timestamp()
