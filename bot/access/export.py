"""Everything heed holds about a person, as one zip file that both chat platforms take.

The rows of every table as JSON, the conversations as plain text, and the adapter. What does not fit (the weights of an
adapter of a large model) is named in the README of the zip with its size and SHA-256.
"""

import asyncio
import io
import json
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from storage.database import Database
from storage.errors import UnsafePath
from storage.files import atomic
from storage.kinds import VersionState
from storage.people import personal_data
from storage.tables import User

FILE_NAME = "heed-export.zip"
LIMIT_BYTES = 8 * 1024**2  # Discord takes 10 MiB, Telegram 50 MB
TOKEN_COLUMNS = ("prompt_token_ids", "completion_token_ids", "logprobs")

Tables = dict[str, personal_data.Rows]

README = """Everything heed holds about you.

user.json                 who you are to heed
<table>.json              every row about you, one file per table
conversations.txt         what was said, as plain text
adapters/<version>/       what heed learned: the weights of each version of your adapter
"""


@dataclass(frozen=True)
class Archive:
    """A zip file and one line about what is in it."""

    content: bytes
    summary: str


async def archive(database: Database, data_dir: Path, user: User, limit_bytes: int = LIMIT_BYTES) -> Archive:
    """Everything about a person, in memory."""
    tables = await database.read(lambda s: personal_data.everything(s, user.id))
    return await asyncio.to_thread(_archive, tables, data_dir, user, limit_bytes)


def _archive(tables: Tables, data_dir: Path, user: User, limit_bytes: int) -> Archive:
    left_out: list[str] = []
    text = _texts(user, tables)
    if len(_zipped(text)) > limit_bytes:
        slim = [{name: row[name] for name in row if name not in TOKEN_COLUMNS} for row in tables["completions"]]
        text = _texts(user, tables | {"completions": slim})
        left_out.append("the token ids and log-probabilities of the answers (completions.json)")
    files = dict(text)
    room = limit_bytes - len(_zipped(text))
    for version in reversed(tables["adapter_versions"]):
        weights = _weights(data_dir, version)
        size_bytes = sum(map(len, weights.values()))
        if size_bytes > room:
            left_out.append(f"version {version['number']}, {size_bytes} bytes, SHA-256 {version['sha256']}")
            continue
        room -= size_bytes
        files |= weights
    files["README.txt"] = _readme(left_out).encode()
    return Archive(_zipped(files), _summary(tables, left_out))


def _texts(user: User, tables: Tables) -> dict[str, bytes]:
    files = {f"{name}.json": _json(rows) for name, rows in tables.items()}
    files["user.json"] = _json(user.model_dump())
    files["conversations.txt"] = "\n".join(_conversations(tables["completions"])).encode()
    return files


def _json(value: Any) -> bytes:
    return json.dumps(value, indent=1, ensure_ascii=False).encode("utf-8", "backslashreplace")


def _conversations(completions: personal_data.Rows) -> Iterator[str]:
    for row in completions:
        asked = [message["content"] for message in row["messages"] if message["role"] == "user"]
        yield f"you   {asked[-1] if asked else ''}\nheed  {row['text']}\n"


def _weights(data_dir: Path, version: dict[str, Any]) -> dict[str, bytes]:
    if version["state"] != VersionState.ACCEPTED:
        return {}
    try:
        files = atomic.read_directory(data_dir / version["path"])
    except (OSError, UnsafePath):
        return {}  # its row says that it should be there; nothing of it is left to hand out
    return {f"adapters/{version['number']}/{name}": content for name, content in files.items()}


def _readme(left_out: list[str]) -> str:
    if not left_out:
        return README
    lines = "".join(f"- {line}\n" for line in left_out)
    return f"{README}\nToo large for a message, and left out; heed's operator can hand it to you:\n{lines}"


def _summary(tables: Tables, left_out: list[str]) -> str:
    counted = {"answers": "completions", "feedback": "feedback", "notes": "notes", "versions": "adapter_versions"}
    parts = [f"{name}: {len(tables[table])}" for name, table in counted.items()]
    rest = ". Its README says what was too large for a message" if left_out else ""
    return f"Everything heed holds about you. {', '.join(parts)}{rest}"


def _zipped(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archived:
        for name, content in sorted(files.items()):
            archived.writestr(name, content)
    return buffer.getvalue()
