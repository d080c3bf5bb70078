"""The operator's commands on heed's storage, beside a running heed or without one.

Anyone who may write the data directory is the operator: no key is asked for. Invariant: beside a running heed the
database is joined, not opened; without one the data directory is locked meanwhile, and made where it is not there yet.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from bot.access import admin_password
from bot.access.api_keys import SCOPES
from bot.config import KEY_NAME, Settings
from bot.errors import SettingsError
from storage.database import Database
from storage.errors import DataDirectoryLocked
from storage.files.lock import DataDirectoryLock
from storage.people import api_keys
from storage.tables import ApiKey


@dataclass(frozen=True)
class NewKey:
    """A key that is wanted; `scopes` have commas between."""

    person: str
    scopes: str
    messages_per_day: int | None = None
    updates_per_day: int | None = None

    def check(self) -> None:
        """Raise SettingsError on what no key can be."""
        if not KEY_NAME.fullmatch(self.person):
            raise SettingsError(f"The name {self.person!r} is not 1 to 32 letters, digits, '_', '.' or '-'.")
        unknown = [scope for scope in self.names if scope not in SCOPES]
        if unknown or not self.names:
            raise SettingsError(f"Scopes are {', '.join(SCOPES)}, not {', '.join(unknown) or 'nothing'}.")

    @property
    def names(self) -> list[str]:
        """The scopes one by one."""
        return list(dict.fromkeys(part.strip() for part in self.scopes.split(",") if part.strip()))


@asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[Database]:
    """Provide the database of the settings. Raises StorageError."""
    with ExitStack() as stack:
        open_database = Database.open
        try:
            stack.enter_context(DataDirectoryLock(settings.data_dir))
        except DataDirectoryLocked:
            open_database = Database.join
        database = await asyncio.to_thread(open_database, settings.data_dir, settings.database_url)
        try:
            yield database
        finally:
            await database.close()


async def add_key(settings: Settings, wanted: NewKey) -> tuple[str, ApiKey]:
    """Return a new key, as its holder needs it and as it is stored. Raises SettingsError."""
    wanted.check()
    token = api_keys.new_token()
    row = ApiKey(
        sha256=api_keys.digest(token),
        account=wanted.person,
        scopes=wanted.names,
        messages_per_day=wanted.messages_per_day,
        updates_per_day=wanted.updates_per_day,
    )
    async with opened(settings) as database:
        return token, await database.write(lambda s: api_keys.add(s, row))


async def list_keys(settings: Settings) -> list[str]:
    """One line for each key."""
    async with opened(settings) as database:
        found = await database.read(api_keys.everything)
    today = datetime.now(UTC).date().isoformat()
    return [_line(key, today) for key in found] or ["there are no keys; `heed keys add <person>` makes one"]


async def revoke_key(settings: Settings, key_id: str) -> ApiKey:
    """Return a key that opens nothing any more. Raises KeyNotFound."""
    async with opened(settings) as database:
        return await database.write(lambda s: api_keys.revoke(s, key_id))


async def new_password(settings: Settings) -> str:
    """Another password for the dashboards; who was signed in is signed out."""
    async with opened(settings) as database:
        return await admin_password.another(database)


def _line(key: ApiKey, today: str) -> str:
    is_counted = key.counted_on == today
    spent = [
        _spent(key.num_messages if is_counted else 0, key.messages_per_day, "messages"),
        _spent(key.num_updates if is_counted else 0, key.updates_per_day, "updates"),
    ]
    state = f"revoked {_day(key.revoked_at)}" if key.revoked_at else f"last used {_day(key.last_used_at)}"
    return f"{key.id}  {key.account:<12} {','.join(key.scopes)}; {', '.join(spent)} today; {state}"


def _spent(number: int, limit: int | None, what: str) -> str:
    return f"{number} {what}" if limit is None else f"{number} of {limit} {what}"


def _day(at_s: float | None) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%d %H:%M UTC") if at_s else "never"
