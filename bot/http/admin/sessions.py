"""The signed-in browsers of the dashboards. In memory: a restart signs everyone out.

Invariants: a cookie's value is random and stored as its digest; a session ends by its age, after an idle hour, by
signing out, and when the password changes.
"""

import hashlib
import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from aiohttp import web

LIFETIME_S = 12 * 3600.0
IDLE_S = 3600.0
MAX_SESSIONS = 100


@dataclass
class AdminSession:
    """One signed-in browser. `csrf` is the token that every form of its pages carries."""

    password: str  # digest of the password that opened it
    opened_s: float
    used_s: float
    csrf: str = field(default_factory=lambda: secrets.token_urlsafe(32))


class AdminSessions:
    """All open sessions."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._secret = secrets.token_bytes(32)
        self._open: OrderedDict[str, AdminSession] = OrderedDict()

    def open(self, password: str) -> str:
        """Open a session for the password with this digest. Return the cookie's value."""
        token = secrets.token_urlsafe(32)
        now_s = self._clock()
        self._open[_digest(token)] = AdminSession(password, now_s, now_s)
        while len(self._open) > MAX_SESSIONS:
            self._open.popitem(last=False)
        return token

    def find(self, token: str, password: str, *, is_use: bool = True) -> AdminSession | None:
        """Return the session of a cookie if it is open and the password's digest still the same; a use extends it."""
        session = self._open.get(_digest(token))
        if session is None:
            return None
        now_s = self._clock()
        is_over = now_s - session.opened_s >= LIFETIME_S or now_s - session.used_s >= IDLE_S
        if is_over or not hmac.compare_digest(session.password, password):
            self.close(token)
            return None
        session.used_s = now_s if is_use else session.used_s
        return session

    def close(self, token: str) -> None:
        """End a session, if it is open."""
        self._open.pop(_digest(token), None)

    def form_token(self, visitor: str) -> str:
        """Return the form token of a visitor who is not signed in; `visitor` is the value of their cookie."""
        return hmac.new(self._secret, visitor.encode(), hashlib.sha256).hexdigest()


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


ADMIN_SESSIONS = web.AppKey("admin_sessions", AdminSessions)
