"""bot.access.export: one zip file with everything."""

import io
import json
import zipfile
from typing import Any

from bot.access import export
from storage.files import atomic
from storage.learning import versions
from storage.people import people
from storage.tables import User
from tests.bot.conftest import Heed


async def person(heed: Heed) -> User:
    """Somebody who asked, corrected and has an adapter on disk."""
    first = await heed.ask("bees 🙂 and <wasps>", user="ana")
    await heed.correct(first["id"], "too long", user="ana")
    database = heed.core.database
    user = await database.read(lambda s: people.find(s, "http", "ana"))
    assert user is not None
    version = await database.read(lambda s: versions.get(s, user.id, 1))
    atomic.write_directory(heed.core.settings.data_dir / version.path, {"adapter.safetensors": b"w" * 5000})
    return user


async def opened(heed: Heed, user: User, **options: Any) -> tuple[dict[str, bytes], export.Archive]:
    """The files of the archive."""
    made = await export.archive(heed.core.database, heed.core.settings.data_dir, user, **options)
    with zipfile.ZipFile(io.BytesIO(made.content)) as archived:
        return {name: archived.read(name) for name in archived.namelist()}, made


async def test_everything_is_in_the_archive(heed: Heed) -> None:
    """Tables as JSON, conversations as text, the adapter's files; the summary counts them."""
    files, made = await opened(heed, await person(heed))
    assert json.loads(files["completions.json"])[0]["completion_token_ids"]
    assert json.loads(files["feedback.json"])[0]["text"] == "too long"
    assert json.loads(files["user.json"])["display_name"] == "ana"
    assert "you   bees 🙂 and <wasps>" in files["conversations.txt"].decode()
    assert files["adapters/1/adapter.safetensors"] == b"w" * 5000
    assert "answers: 1, feedback: 1, notes: 1, versions: 1" in made.summary
    assert b"left out" not in files["README.txt"]


async def test_what_is_too_large_is_named(heed: Heed) -> None:
    """An adapter that does not fit is left out, and the README says which and its SHA-256."""
    files, made = await opened(heed, await person(heed), limit_bytes=4500)
    assert not any(name.startswith("adapters/") for name in files)
    assert b"version 1, 5000 bytes, SHA-256 " in files["README.txt"]
    assert len(made.content) < 5500
    assert "README" in made.summary


async def test_token_ids_go_before_words_do(heed: Heed) -> None:
    """Where even the rows do not fit, the answers lose their token ids and keep their words."""
    files, _ = await opened(heed, await person(heed), limit_bytes=100)
    assert "prompt_token_ids" not in json.loads(files["completions.json"])[0]
    assert json.loads(files["completions.json"])[0]["text"]
    assert b"token ids" in files["README.txt"]


async def test_missing_weights_stop_nothing(heed: Heed) -> None:
    """A version whose files are gone is still a row in the archive."""
    user = await person(heed)
    atomic.remove_directory(heed.core.settings.data_dir / "adapters")
    files, _ = await opened(heed, user)
    assert json.loads(files["adapter_versions.json"])[0]["number"] == 1
