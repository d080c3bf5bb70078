"""bot.agent.inside.texts: text files, read whole and written whole."""

import os
from pathlib import Path

import pytest

from bot.agent.inside import texts
from bot.agent.inside.result import ToolFailed


def test_a_text_is_written_and_read_as_it_is(tmp_path: Path) -> None:
    """Line ends and mode stay; folders are made; nothing else is left behind."""
    path = tmp_path / "a" / "b.sh"
    texts.write(tmp_path, path, "one\r\ntwo\n")
    path.chmod(0o755)
    texts.write(tmp_path, path, "three\r\nüñ")
    assert texts.read(tmp_path, path) == "three\r\nüñ"
    assert path.stat().st_mode & 0o777 == 0o755
    assert [found.name for found in path.parent.iterdir()] == ["b.sh"]


def test_what_is_no_text_is_refused(tmp_path: Path) -> None:
    """Binary, other encodings, too much, no file; each with a remedy, and a pipe without waiting."""
    (tmp_path / "binary").write_bytes(b"\x7fELF\0")
    (tmp_path / "latin").write_bytes("schön".encode("latin-1"))
    (tmp_path / "large").write_bytes(b"x" * (texts.MOST_BYTES + 1))
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    said = {
        "binary": "binary is no text.",
        "latin": "latin is not UTF-8: byte 3 cannot be read.",
        "large": f"large is larger than {texts.MOST_BYTES} bytes.",
        "folder": "folder cannot be read: Is a directory.",
        "pipe": "pipe is no file.",
        "none": "none cannot be read: No such file or directory.",
    }
    for name, output in said.items():
        with pytest.raises(ToolFailed) as refused:
            texts.read(tmp_path, tmp_path / name)
        assert refused.value.result.output in (output, "folder is no file.")
        assert refused.value.result.feedback


def test_what_cannot_be_written_changes_nothing(tmp_path: Path) -> None:
    """A folder in the way, a file in the way of a folder, and what is no character."""
    (tmp_path / "file").write_text("old")
    (tmp_path / "folder").mkdir()
    for name, text in (("folder", "x"), ("file/below", "x"), ("file", "\ud800")):
        with pytest.raises(ToolFailed):
            texts.write(tmp_path, tmp_path / name, text)
    assert (tmp_path / "file").read_text() == "old"
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "folder"]
