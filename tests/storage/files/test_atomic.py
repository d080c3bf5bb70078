"""Files are whole or absent."""

import errno
import itertools
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.errors import AlreadyWritten, StorageBroken, StorageFull, StorageNotWritable, UnsafePath
from storage.files import atomic
from tests.storage.conftest import fast_folder
from tests.storage.stored import directory_sha256

FILES = {"adapter_model.safetensors": b"\x01" * 5000, "adapter_config.json": b"{}"}
SYSTEM_CALLS = ("open", "write", "fsync", "mkdir", "rename", "replace")


class Recorder:
    """Stands before the system calls of a write: notes them, and fails the one it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, fail_at: int = 0, error: int = errno.ENOSPC) -> None:
        self.calls: list[str] = []
        self._paths: dict[int, str] = {}
        self._fail_at = fail_at
        self._error = error
        for name in SYSTEM_CALLS:
            monkeypatch.setattr(os, name, self._wrap(name, getattr(os, name)))

    def _wrap(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            subject = self._paths.get(args[0], "?") if isinstance(args[0], int) else Path(args[0]).name
            self.calls.append(f"{name} {_stable(subject)}")
            if len(self.calls) == self._fail_at:
                raise OSError(self._error, os.strerror(self._error))
            result = real(*args, **kwargs)
            if name == "open":
                self._paths[result] = subject
            return result

        return call


def _stable(name: str) -> str:
    return "TEMP" if name.startswith(atomic.TEMPORARY_PREFIX) else name


def _contents(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_write_file_replaces_the_whole_content_for_the_owner_only(tmp_path: Path) -> None:
    """A written file has exactly the new bytes and mode 0600, and nothing lies beside it."""
    path = tmp_path / "deep" / "er" / "file"
    atomic.write_file(path, b"a longer first content")
    atomic.write_file(path, b"second")
    assert _contents(tmp_path) == {"deep/er/file": b"second"}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_write_file_syncs_before_and_after_the_rename(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The order is: content, fsync of it, rename, fsync of the directory."""
    recorder = Recorder(monkeypatch)
    atomic.write_file(tmp_path / "file", b"content")
    folder = tmp_path.name
    expected = ["open TEMP", "write TEMP", "fsync TEMP", "replace TEMP", f"open {folder}", f"fsync {folder}"]
    assert recorder.calls == expected


def test_write_directory_syncs_files_then_itself_then_its_parent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every file and the directory are synced under the temporary name, the parent after the rename."""
    recorder = Recorder(monkeypatch)
    atomic.write_directory(tmp_path / "1", {"a": b"x", "b": b"y"})
    steps = [call for call in recorder.calls if call.split()[0] in {"mkdir", "fsync", "rename"}]
    assert steps == ["mkdir TEMP", "fsync a", "fsync b", "fsync TEMP", "rename TEMP", f"fsync {tmp_path.name}"]


def test_a_full_disk_at_any_system_call_leaves_no_directory_and_no_rest(tmp_path: Path) -> None:
    """Each call of write_directory fails once with ENOSPC: StorageFull, and nothing is there."""
    for fail_at in itertools.count(1):
        with pytest.MonkeyPatch.context() as patch:
            Recorder(patch, fail_at)
            try:
                atomic.write_directory(tmp_path / "versions" / "1", FILES)
            except StorageFull:
                assert _contents(tmp_path) == {}
                assert not (tmp_path / "versions" / "1").exists()
            else:
                break
    assert fail_at > len(FILES) * 3
    assert directory_sha256(tmp_path / "versions" / "1") == atomic.files_sha256(FILES)


def test_a_full_disk_at_any_system_call_leaves_the_old_or_the_new_file(tmp_path: Path) -> None:
    """Each call of write_file fails once with ENOSPC: StorageFull, a whole content, no temporary file."""
    path = tmp_path / "file"
    atomic.write_file(path, b"old")
    for fail_at in itertools.count(1):
        with pytest.MonkeyPatch.context() as patch:
            recorder = Recorder(patch, fail_at)
            try:
                atomic.write_file(path, b"new")
            except StorageFull:
                is_renamed = "replace TEMP" in recorder.calls[:-1]
                assert _contents(tmp_path) == {"file": b"new" if is_renamed else b"old"}
            else:
                break
    assert fail_at > 6
    assert path.read_bytes() == b"new"


def test_short_writes_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A system that takes seven bytes at a time still gets the whole content."""
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, bytes(data[:7])))
    atomic.write_file(tmp_path / "file", bytes(range(100)))
    assert (tmp_path / "file").read_bytes() == bytes(range(100))


@pytest.mark.parametrize(
    ("number", "leaf"),
    [
        (errno.ENOSPC, StorageFull),
        (errno.EDQUOT, StorageFull),
        (errno.EFBIG, StorageFull),
        (errno.EACCES, StorageNotWritable),
        (errno.EROFS, StorageNotWritable),
        (errno.EIO, StorageBroken),
    ],
)
def test_system_errors_get_the_name_of_their_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, leaf: type[Exception]
) -> None:
    """A full, a forbidden and a failing disk are three different errors."""
    Recorder(monkeypatch, fail_at=1, error=number)
    with pytest.raises(leaf):
        atomic.write_file(tmp_path / "file", b"content")


def test_a_directory_is_written_once(tmp_path: Path) -> None:
    """Writing to a name that exists is refused and changes nothing."""
    atomic.write_directory(tmp_path / "1", FILES)
    with pytest.raises(AlreadyWritten):
        atomic.write_directory(tmp_path / "1", {"other": b""})
    assert atomic.read_directory(tmp_path / "1") == FILES


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../x", "/etc/passwd", "nul\0", atomic.TEMPORARY_PREFIX + "x"])
def test_names_that_leave_the_directory_are_refused(tmp_path: Path, name: str) -> None:
    """Only plain file names are written."""
    with pytest.raises(UnsafePath):
        atomic.write_directory(tmp_path / "1", {name: b"x"})
    assert list(tmp_path.iterdir()) == []


def _link_file(directory: Path, target: Path) -> Path:
    (directory / "planted").symlink_to(target)
    return directory


def _fifo(directory: Path, target: Path) -> Path:
    os.mkfifo(directory / "planted")
    return directory


def _folder(directory: Path, target: Path) -> Path:
    (directory / "planted").mkdir()
    return directory


def _link_itself(directory: Path, target: Path) -> Path:
    link = directory.with_name("link")
    link.symlink_to(directory)
    return link


@pytest.mark.parametrize("plant", [_link_file, _fifo, _folder, _link_itself])
def test_reading_follows_nothing_planted(tmp_path: Path, plant: Callable[[Path, Path], Path]) -> None:
    """A link, a FIFO or a folder in a directory, and a link to a directory, are refused and not read."""
    secret = tmp_path / "secret"
    secret.write_bytes(b"secret")
    atomic.write_directory(tmp_path / "1", FILES)
    with pytest.raises(UnsafePath):
        directory_sha256(plant(tmp_path / "1", secret))


def test_a_missing_directory_is_not_an_empty_one(tmp_path: Path) -> None:
    """Reading what is not there raises FileNotFoundError."""
    with pytest.raises(FileNotFoundError):
        atomic.read_directory(tmp_path / "1")


file_names = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=20).filter(
    lambda name: name not in {".", ".."} and not name.startswith(atomic.TEMPORARY_PREFIX)
)
directories = st.dictionaries(file_names, st.binary(max_size=50), max_size=4)


@given(directories)
def test_the_hash_of_a_directory_is_that_of_what_was_written(files: dict[str, bytes]) -> None:
    """Every file written comes back, under the hash write_directory returned."""
    with fast_folder() as folder:
        sha256 = atomic.write_directory(folder / "1", files)
        assert atomic.read_directory(folder / "1") == files
        assert directory_sha256(folder / "1") == sha256


@given(directories, directories)
def test_different_directories_have_different_hashes(one: dict[str, bytes], other: dict[str, bytes]) -> None:
    """The hash tells names from contents and one file from the next."""
    assert (atomic.files_sha256(one) == atomic.files_sha256(other)) == (one == other)


def test_bytes_cannot_move_between_name_and_content() -> None:
    """The two ways to cut the same bytes have different hashes."""
    assert atomic.files_sha256({"ab": b"c"}) != atomic.files_sha256({"a": b"bc"})


def test_one_flipped_bit_changes_the_hash(tmp_path: Path) -> None:
    """A single damaged bit in a written file is noticed."""
    sha256 = atomic.write_directory(tmp_path / "1", FILES)
    damaged = bytearray(FILES["adapter_model.safetensors"])
    damaged[2500] ^= 0x10
    (tmp_path / "1" / "adapter_model.safetensors").write_bytes(damaged)
    assert directory_sha256(tmp_path / "1") != sha256


def test_the_sweep_removes_leftovers_and_nothing_else(tmp_path: Path) -> None:
    """Unfinished files and directories go at any depth; finished ones and what links point at stay."""
    outside = tmp_path / "outside"
    (outside / (atomic.TEMPORARY_PREFIX + "theirs")).mkdir(parents=True)
    root = tmp_path / "root"
    atomic.write_directory(root / "adapters" / "ana" / "1", FILES)
    (root / "adapters" / "ana" / (atomic.TEMPORARY_PREFIX + "1")).mkdir()
    (root / "adapters" / "ana" / (atomic.TEMPORARY_PREFIX + "1") / "half").write_bytes(b"x")
    (root / (atomic.TEMPORARY_PREFIX + "2")).write_bytes(b"x")
    (root / "link").symlink_to(outside)
    assert atomic.sweep_temporary(root) == 2
    assert set(_contents(root)) == {f"adapters/ana/1/{name}" for name in FILES}
    assert (outside / (atomic.TEMPORARY_PREFIX + "theirs")).is_dir()


def test_sweeping_a_directory_that_is_not_there_removes_nothing(tmp_path: Path) -> None:
    """The first start has nothing to sweep."""
    assert atomic.sweep_temporary(tmp_path / "none") == 0


def test_removing_a_directory_takes_its_name_away_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A crash while the content is erased leaves only what the sweep removes."""
    atomic.write_directory(tmp_path / "1", FILES)
    with monkeypatch.context() as patch:
        patch.setattr(atomic.shutil, "rmtree", lambda path: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            atomic.remove_directory(tmp_path / "1")
    assert not (tmp_path / "1").exists()
    assert atomic.sweep_temporary(tmp_path) == 1
    assert list(tmp_path.iterdir()) == []


def test_removing_says_whether_there_was_something(tmp_path: Path) -> None:
    """Removing a directory twice is harmless."""
    atomic.write_directory(tmp_path / "1", FILES)
    assert atomic.remove_directory(tmp_path / "1") is True
    assert atomic.remove_directory(tmp_path / "1") is False


def test_removing_a_link_spares_what_it_points_at(tmp_path: Path) -> None:
    """A planted link is removed itself."""
    atomic.write_directory(tmp_path / "1", FILES)
    (tmp_path / "link").symlink_to(tmp_path / "1")
    atomic.remove_directory(tmp_path / "link")
    assert not (tmp_path / "link").is_symlink()
    assert atomic.read_directory(tmp_path / "1") == FILES


def test_removing_a_file_is_for_good_and_harmless_to_repeat(tmp_path: Path) -> None:
    """A file is gone after remove_file, whether it was there or not."""
    atomic.write_file(tmp_path / "file", b"x")
    atomic.remove_file(tmp_path / "file")
    atomic.remove_file(tmp_path / "file")
    assert list(tmp_path.iterdir()) == []


def test_publishing_moves_a_synced_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file made elsewhere is synced before it takes its name, and the directory after."""
    temporary = tmp_path / (atomic.TEMPORARY_PREFIX + "copy")
    temporary.write_bytes(b"content")
    recorder = Recorder(monkeypatch)
    atomic.publish_file(temporary, tmp_path / "copy")
    steps = [call for call in recorder.calls if call.split()[0] in {"fsync", "replace"}]
    assert steps == ["fsync TEMP", "replace TEMP", f"fsync {tmp_path.name}"]
    assert (tmp_path / "copy").read_bytes() == b"content"


def test_a_file_where_the_directory_should_be_is_named(tmp_path: Path) -> None:
    """Writing below a plain file says that it is not a directory."""
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageNotWritable, match="is not a directory"):
        atomic.write_file(tmp_path / "file" / "below", b"x")


def test_a_file_that_comes_in_pieces_is_there_as_a_whole(tmp_path: Path) -> None:
    """For the owner only, in folders made for it, and not before the block has ended."""
    path = tmp_path / "new" / "file"
    with atomic.new_file(path) as file:
        file.write(b"first ")
        assert not path.exists()
        file.write(b"second")
    assert path.read_bytes() == b"first second"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(AlreadyWritten), atomic.new_file(path):
        pass


def test_a_file_whose_block_fails_is_nowhere(tmp_path: Path) -> None:
    """A full disk has its name, other errors keep theirs."""

    def write(error: Exception) -> None:
        with atomic.new_file(tmp_path / "file") as file:
            file.write(b"part")
            raise error

    for error, expected in ((OSError(errno.ENOSPC, "full"), StorageFull), (KeyError("x"), KeyError)):
        with pytest.raises(expected):
            write(error)
    assert list(tmp_path.iterdir()) == []


def test_a_temporary_directory_goes_with_its_block(tmp_path: Path) -> None:
    """With everything in it; the sweep at a start knows it by its name."""

    def use() -> None:
        with atomic.temporary_directory(tmp_path) as folder:
            (folder / "file").write_bytes(b"x")
            assert folder.name.startswith(atomic.TEMPORARY_PREFIX)
            raise KeyError

    with pytest.raises(KeyError):
        use()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("has_links", [True, False])
def test_a_linked_directory_outlives_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_links: bool
) -> None:
    """Also where the file system has no hard links."""
    files = {"a": b"1", "b": b"2"}
    atomic.write_directory(tmp_path / "one", files)
    if not has_links:
        monkeypatch.setattr(os, "link", _no_links)
    atomic.link_directory(tmp_path / "one", tmp_path / "two")
    assert atomic.remove_directory(tmp_path / "one")
    assert atomic.read_directory(tmp_path / "two") == files
    with pytest.raises(FileNotFoundError):
        atomic.link_directory(tmp_path / "one", tmp_path / "three")


def _no_links(*_: object, **__: object) -> None:
    raise OSError(errno.EPERM, "no links here")


def test_a_finished_directory_is_published_too(tmp_path: Path) -> None:
    """It is moved with everything in it."""
    atomic.write_directory(tmp_path / "made" / "inner", {"a": b"1"})
    atomic.publish_file(tmp_path / "made", tmp_path / "there")
    assert atomic.read_directory(tmp_path / "there" / "inner") == {"a": b"1"}
