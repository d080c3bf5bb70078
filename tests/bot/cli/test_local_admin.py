"""bot.cli.local_admin: the operator's commands, beside a running heed and without one."""

from pathlib import Path

import pytest

from bot.cli import local_admin
from bot.cli.local_admin import NewKey
from bot.config import Settings
from bot.errors import SettingsError
from storage.database import Database
from storage.errors import KeyNotFound
from storage.files.lock import DataDirectoryLock
from storage.people import api_keys


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """A data directory that is not there yet."""
    return Settings(data_dir=tmp_path / "data")


async def test_keys_before_the_first_start(settings: Settings) -> None:
    """The data directory is made, and what is listed never has a key in it."""
    token, row = await local_admin.add_key(settings, NewKey("ana", "chat, admin,chat", messages_per_day=5))
    lines = await local_admin.list_keys(settings)
    assert lines == [f"{row.id}  ana          chat,admin; 0 of 5 messages, 0 updates today; last used never"]
    assert token not in str(lines)
    assert token.encode() not in (settings.data_dir / "heed.db").read_bytes()
    await local_admin.revoke_key(settings, row.id)
    assert "; revoked 20" in (await local_admin.list_keys(settings))[0]
    with pytest.raises(KeyNotFound):
        await local_admin.revoke_key(settings, "key-none")


async def test_beside_a_running_heed_its_database_is_joined(settings: Settings) -> None:
    """What is made is there for the running one at once, and its mark of a clean end is not touched."""
    with DataDirectoryLock(settings.data_dir):
        database = Database.open(settings.data_dir)
        _, row = await local_admin.add_key(settings, NewKey("ana", "chat"))
        assert [key.id for key in await database.read(api_keys.everything)] == [row.id]
        assert not (settings.data_dir / "heed.db.clean").exists()
        await database.close()


@pytest.mark.parametrize(
    ("person", "scopes", "words"),
    [("a b", "chat", "The name 'a b'"), ("ana", "chat,fly", "not fly"), ("ana", " ,", "not nothing")],
)
async def test_what_no_key_can_be_is_refused_by_name(settings: Settings, person: str, scopes: str, words: str) -> None:
    """And nothing is made on disk."""
    with pytest.raises(SettingsError, match=words):
        await local_admin.add_key(settings, NewKey(person, scopes))
    assert not settings.data_dir.exists()
