"""Access on Telegram and Discord: one question for messages, commands, button presses, reactions and forms.

Invariants: an account is its platform and its number, never a name that can be changed; a block beats everything; a
stranger's words are not processed and make no one known; the web page and the terminal are the operator's own and
never asked. What was decided is in storage and remembered here; limits count over the last hour and survive a restart,
because a person's first count comes from what is stored.
"""

import math
import secrets
import time
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from bot.config import Settings
from bot.errors import InvalidField, NotFound
from bot.events import Author, Place
from storage.database import Database
from storage.kinds import AccessState
from storage.people import access
from storage.reports import statistics
from storage.tables import Access as Decided
from storage.tables import Pairing

GUARDED = frozenset({"telegram", "discord"})
ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"  # no 0 O 1 I: a code is read aloud and typed
CODE_LENGTH = 8
CODE_LIFETIME_S = 3600.0
MAX_WAITING = 3  # strangers with a code, on each platform
HOUR_S = 3600.0
NOTICE_INTERVAL_S = 60.0  # between two notices to the same account
KNOWN_ACCOUNTS = 10_000  # remembered without asking storage

What = Literal["message", "command", "press", "reaction", "form"]
Kind = Literal["messages", "updates"]


@dataclass(frozen=True)
class Decision:
    """An answer to "may they?"; `notice` is what to tell a person who may not, empty: say nothing."""

    is_allowed: bool
    is_admin: bool = False
    notice: str = ""


@dataclass
class _Account:
    """The remembered state of an account; the times are those of the last hour."""

    state: AccessState | None
    spent: dict[Kind, deque[float]]
    told_at_s: float = field(default=-math.inf)


class AccessPolicy:
    """The one place that decides who may use heed, and how much."""

    def __init__(self, database: Database, settings: Settings, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._settings = settings.access
        self._is_operators_own = not settings.http.api_keys
        self._clock = clock
        self._accounts: OrderedDict[tuple[str, str], _Account] = OrderedDict()
        self._revision = 0  # of what storage has decided
        self.when_paired: list[Callable[[Pairing], Awaitable[None]]] = []  # each tells those that it reaches

    def is_admin(self, author: Author) -> bool:
        """Return true for the accounts the settings name, and on the web page where only this machine can reach it."""
        if f"{author.platform}:{author.account}" in self._settings.admins:
            return True
        if author.is_admin is not None:
            return author.is_admin
        return author.platform not in GUARDED and self._is_operators_own

    async def authorise(self, author: Author, place: Place, what: What) -> Decision:
        """Decide, and count a message that is allowed."""
        if author.platform not in GUARDED:
            return Decision(True, self.is_admin(author))
        known = await self._account(author)
        if known.state == AccessState.BLOCKED:
            return Decision(False)
        if self.is_admin(author):
            return Decision(True, is_admin=True)
        if self._settings.mode != "open" and known.state != AccessState.ALLOWED:
            return Decision(False, notice=await self._turned_away(author, place, what, known))
        notice = self._spend(known, "messages") if what == "message" else ""
        return Decision(not notice, notice=self._seldom(known, notice))

    async def spend(self, author: Author, kind: Kind) -> str:
        """Count an answer or an update that was asked for; "" or the notice why there is none now."""
        if author.platform not in GUARDED or self.is_admin(author):
            return ""
        return self._spend(await self._account(author), kind)

    async def pair(self, code: str, decided_by: str) -> Pairing:
        """Let the account in that waits with a code. Raises NotFound."""
        wanted = code.strip().upper().replace("-", "")
        now_s = self._clock()
        found = await self._database.write(lambda s: access.approve(s, wanted, now_s, decided_by))
        if found is None:
            raise NotFound(f"No one is waiting with the code {code[:16]!r}. A code is valid for an hour.", "text")
        self.drop(found.platform, found.account)
        for tell in list(self.when_paired):
            await tell(found)
        return found

    async def allow(self, platform: str, account: str, decided_by: str) -> None:
        """Let an account in, whether heed has met it or not."""
        await self._decide(platform, account, AccessState.ALLOWED, decided_by)

    async def block(self, platform: str, account: str, decided_by: str) -> None:
        """Shut an account out. Raises InvalidField for an admin's."""
        if f"{platform}:{account}" in self._settings.admins:
            raise InvalidField(f"{platform}:{account} is an admin; take it out of HEED_ACCESS_ADMINS first", "text")
        await self._decide(platform, account, AccessState.BLOCKED, decided_by)

    async def decided(self) -> list[Decided]:
        """Return the accounts that an operator allowed or blocked."""
        return await self._database.read(access.decided)

    async def waiting(self) -> list[Pairing]:
        """Return who waits with a code."""
        now_s = self._clock()
        return await self._database.read(lambda s: access.waiting(s, now_s))

    def drop(self, platform: str, account: str) -> None:
        """Remember an account no more: storage has changed, or the person is forgotten."""
        self._revision += 1
        self._accounts.pop((platform, account), None)

    async def _decide(self, platform: str, account: str, state: AccessState, decided_by: str) -> None:
        await self._database.write(lambda s: access.decide(s, platform, account, state, decided_by))
        self.drop(platform, account)

    async def _account(self, author: Author) -> _Account:
        key = (author.platform, author.account)
        while key not in self._accounts:
            revision = self._revision
            found = await self._stored(*key)
            if revision == self._revision:  # nothing was decided while storage was asked
                self._accounts.setdefault(key, found)
        self._accounts.move_to_end(key)
        while len(self._accounts) > KNOWN_ACCOUNTS:
            self._accounts.popitem(last=False)
        known = self._accounts[key]
        if self._database.is_shared:  # another gateway may have let them in, or shut them out
            known.state = await self._database.read(lambda s: access.state(s, *key))
        return known

    async def _stored(self, platform: str, account: str) -> _Account:
        since_s = self._clock() - HOUR_S
        state = await self._database.read(lambda s: access.state(s, platform, account))
        messages, updates = await self._database.read(lambda s: statistics.spent_since(s, platform, account, since_s))
        return _Account(state, {"messages": deque(messages), "updates": deque(updates)})

    def _spend(self, known: _Account, kind: Kind) -> str:
        now_s = self._clock()
        limit = self._settings.messages_per_hour if kind == "messages" else self._settings.updates_per_hour
        spent = deque(at_s for at_s in known.spent[kind] if now_s - HOUR_S < at_s <= now_s)
        known.spent[kind] = spent
        if len(spent) < limit:
            spent.append(now_s)
            return ""
        return _limit_notice(kind, limit, spent[-limit] + HOUR_S, now_s)

    def _seldom(self, known: _Account, notice: str) -> str:
        now_s = self._clock()
        if notice and 0 <= now_s - known.told_at_s < NOTICE_INTERVAL_S:
            return ""
        known.told_at_s = now_s if notice else known.told_at_s
        return notice

    async def _turned_away(self, author: Author, place: Place, what: What, known: _Account) -> str:
        if what == "reaction":
            return ""
        if what == "press":
            return "You do not have access yet. Send a message to learn how to get it."
        if not self._seldom(known, "due"):
            return ""
        name = f"{author.platform}:{author.account}"
        if self._settings.mode == "allow":
            return f"This heed answers the people its operator has let in. Ask them to allow {name}."
        if not place.is_private:
            return "I do not know you yet. Write to me in private, and I will tell you how to be let in."
        return await self._code_notice(author, place)

    async def _code_notice(self, author: Author, place: Place) -> str:
        now_s = self._clock()
        asked = Pairing(
            code="".join(secrets.choice(ALPHABET) for _ in range(CODE_LENGTH)),
            platform=author.platform,
            account=author.account,
            display_name=author.display_name,
            place=place.external_id,
            created_at=now_s,
            expires_at=now_s + CODE_LIFETIME_S,
        )
        pairing = await self._database.write(lambda s: access.wait(s, asked, now_s=now_s, limit=MAX_WAITING))
        if pairing is None:
            return "Too many people wait to be let in just now. Try again in an hour, or ask the operator."
        return (
            f"Hello. This heed answers the people its operator has let in. Your code is {pairing.code}, and it holds "
            f"{_until(pairing.expires_at, now_s)}: ask the operator to send me /pair {pairing.code} or to run "
            f"`heed pair {pairing.code}`. What you write before that is not read."
        )


def _limit_notice(kind: Kind, limit: int, free_at_s: float, now_s: float) -> str:
    what = "answer" if kind == "messages" else "lesson"
    spent = f"{limit} {what}{'s' * (limit != 1)}"
    return f"That was {spent} in an hour, which is the limit here. The next one is free {_at(free_at_s, now_s)}."


def _at(moment_s: float, now_s: float) -> str:
    """ "in 12 minutes (14:05 UTC)"."""
    minutes = max(1, math.ceil((moment_s - now_s) / 60))
    return f"in {minutes} minute{'s' * (minutes != 1)} ({_clock_time(moment_s)})"


def _until(moment_s: float, now_s: float) -> str:
    """ "for 60 minutes (until 14:05 UTC)"."""
    minutes = max(1, math.ceil((moment_s - now_s) / 60))
    return f"for {minutes} minute{'s' * (minutes != 1)} (until {_clock_time(moment_s)})"


def _clock_time(moment_s: float) -> str:
    return datetime.fromtimestamp(moment_s, UTC).strftime("%H:%M UTC")
