"""Text files of a workspace: read whole if they are text and not too large, and written whole or not at all."""

import os
import stat
import tempfile
from pathlib import Path

from bot.agent.inside.paths import named
from bot.agent.inside.result import ToolFailed

MOST_BYTES = 2 * 1024 * 1024
_NEW_MODE = 0o644


def read(root: Path, path: Path) -> str:
    """Return a file's text, line ends as they are. Raises ToolFailed if there is none that can be shown."""
    name = named(root, path)
    data = _bytes(path, name)
    if len(data) > MOST_BYTES:
        raise ToolFailed(f"{name} is larger than {MOST_BYTES} bytes.", "Use grep, or bash with head or sed.")
    if b"\0" in data:
        raise ToolFailed(f"{name} is no text.", "Leave binary files as they are.")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        said = f"{name} is not UTF-8: byte {error.start} cannot be read."
        raise ToolFailed(said, "Use bash with iconv to convert it first.") from None


def write(root: Path, path: Path, text: str) -> None:
    """Put a text in place of a file, its mode kept, or make it with its folders. Raises ToolFailed."""
    name = named(root, path)
    if path.is_dir():
        raise ToolFailed(f"{name} is a folder.", "Name a file in it.")
    try:
        data = text.encode("utf-8")
        path.parent.mkdir(parents=True, exist_ok=True)
        _put(path, data, stat.S_IMODE(path.stat().st_mode) if path.exists() else _NEW_MODE)
    except UnicodeEncodeError:
        raise ToolFailed("That is no text.", "Leave out what is no character.") from None
    except OSError as error:
        raise ToolFailed(f"{name} cannot be written: {error.strerror}.", "Nothing was changed.") from None


def _bytes(path: Path, name: str) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # of a pipe nobody writes to, there is no end
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise ToolFailed(f"{name} is no file.", "Use glob to see what there is.")
            return file.read(MOST_BYTES + 1)
    except OSError as error:
        raise ToolFailed(f"{name} cannot be read: {error.strerror}.", "Use glob to see what there is.") from None


def _put(path: Path, data: bytes, mode: int) -> None:
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".heed-", delete=False) as file:
        new = Path(file.name)
        try:
            file.write(data)
            file.flush()
            new.chmod(mode)
            new.replace(path)
        except BaseException:
            new.unlink()
            raise
