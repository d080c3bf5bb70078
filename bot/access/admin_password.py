"""The one password of the dashboards: random, shown when it is made and never again; storage has its SHA-256 only."""

import hashlib
import secrets

from storage import settings
from storage.database import Database, Session

SETTING = "admin.password"


def digest(password: str) -> str:
    """Return what is stored of a password. No salt and no stretching: no one can guess 32 random bytes."""
    return hashlib.sha256(password.encode("utf-8", "surrogateescape")).hexdigest()


async def first(database: Database) -> str | None:
    """Return a new password where there was none, to be shown once, or None if there is one."""
    password = secrets.token_urlsafe(32)

    def put(s: Session) -> bool:
        if settings.get(s, SETTING) is not None:
            return False
        settings.put(s, SETTING, digest(password))
        return True

    return password if await database.write(put) else None


async def another(database: Database) -> str:
    """Return a new password in place of the one before: anyone who is signed in with that is signed out."""
    password = secrets.token_urlsafe(32)
    await database.write(lambda s: settings.put(s, SETTING, digest(password)))
    return password


async def current(database: Database) -> str:
    """Return the digest that counts now; "" before the first password is made, which is no one's digest."""
    return str(await database.read(lambda s: settings.get(s, SETTING, "")))
