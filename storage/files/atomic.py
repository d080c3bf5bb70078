"""Files that survive: every write is complete or absent, also after kill -9 or a power cut.

Owns the order temp -> fsync -> rename -> fsync(directory). Nothing else in heed writes what must survive. Never
follows a link in the last component of a path, and never reads anything but plain files. A directory written
here is immutable: its SHA-256 covers the names and the contents.
"""

import contextlib
import errno
import hashlib
import os
import shutil
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

from storage.errors import AlreadyWritten, StorageBroken, StorageError, StorageFull, StorageNotWritable, UnsafePath

TEMPORARY_PREFIX = ".heed-tmp-"
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_DENIED = {errno.EACCES, errno.EPERM, errno.EROFS}
_NO_LINKS = {errno.ELOOP, errno.ENOTDIR}
_NO_HARD_LINKS = {errno.EPERM, errno.EXDEV, errno.EMLINK, errno.ENOTSUP}


def write_file(path: Path, data: bytes) -> None:
    """Write `data` to `path` with mode 0600; afterwards the old or the new content is there, never a part.

    Blocking: two fsyncs. Raises StorageFull, StorageNotWritable, StorageBroken; then the old content stands, or,
    where only the last fsync failed, the new one may.
    """
    with _storage_errors(path):
        make_directory(path.parent)
        temporary = _temporary_name(path.parent)
        try:
            _write_new_file(temporary, data)
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        _fsync_directory(path.parent)


@contextlib.contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    """Provide a file with mode 0600 for content that comes in pieces: at `path` once the block ends, nowhere if it
    fails.

    Blocking: two fsyncs. Raises AlreadyWritten, StorageFull, StorageNotWritable, StorageBroken.
    """
    with _storage_errors(path):
        if os.path.lexists(path):
            raise AlreadyWritten(f"{path} exists already")
        make_directory(path.parent)
        temporary = _temporary_name(path.parent)
        try:
            fd = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
            with os.fdopen(fd, "r+b") as file:
                yield file
                file.flush()
            publish_file(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


@contextlib.contextmanager
def temporary_directory(parent: Path) -> Iterator[Path]:
    """Provide a directory (0700) below `parent` for the length of the block. Raises as write_file."""
    with _storage_errors(parent):
        make_directory(parent)
        temporary = _temporary_name(parent)
        temporary.mkdir(mode=0o700)
        try:
            yield temporary
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def publish_file(temporary: Path, path: Path) -> None:
    """Move a finished file that something else wrote (a database backup) to `path`, as write_file does.

    A directory, too, whose content is on disk, where nothing is at `path`.
    """
    with _storage_errors(path):
        _fsync_file(temporary)
        temporary.replace(path)
        _fsync_directory(path.parent)


def write_directory(path: Path, files: Mapping[str, bytes]) -> str:
    """Write a new immutable directory and return the SHA-256 of its names and contents, in hex.

    Blocking: an fsync per file and two more. Raises AlreadyWritten, UnsafePath (a name that is not a plain file
    name), StorageFull, StorageNotWritable, StorageBroken; then nothing is left at `path`.
    """
    for name in files:
        _check_name(name)
    with _storage_errors(path):
        if os.path.lexists(path):
            raise AlreadyWritten(f"{path} exists already")
        make_directory(path.parent)
        temporary = _temporary_name(path.parent)
        temporary.mkdir(mode=0o700)
        try:
            for name, data in files.items():
                _write_new_file(temporary / name, data)
            _fsync_directory(temporary)
            temporary.rename(path)
            _fsync_directory(path.parent)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            shutil.rmtree(path, ignore_errors=True)  # ours: nothing was there before
            raise
    return files_sha256(files)


def read_directory(path: Path) -> dict[str, bytes]:
    """Read every file of a directory written here.

    Raises FileNotFoundError, and UnsafePath if the directory or anything in it is a link or a special file.
    """
    with _storage_errors(path):
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            return {name: _read_at(fd, name) for name in sorted(os.listdir(fd))}  # noqa: PTH208  a descriptor
        finally:
            os.close(fd)


def files_sha256(files: Mapping[str, bytes]) -> str:
    """SHA-256 over names and contents, each preceded by its length, in the order of the names; in hex."""
    digest = hashlib.sha256()
    for name in sorted(files):
        for part in (os.fsencode(name), files[name]):
            digest.update(len(part).to_bytes(8, "big"))
            digest.update(part)
    return digest.hexdigest()


def link_directory(path: Path, target: Path) -> None:
    """Give an immutable directory's files a second name below `target`: they stay there when they are erased here.

    Where the file system has no hard links they are copied; nothing is synced. Raises FileNotFoundError when the
    directory, or the folder of `target`, is not there or goes meanwhile; then part of it may be at `target`.
    """
    with _storage_errors(path):
        target.mkdir(mode=0o700)
        for name in sorted(os.listdir(path)):  # noqa: PTH208  names only
            try:
                os.link(path / name, target / name, follow_symlinks=False)
            except OSError as error:
                if error.errno not in _NO_HARD_LINKS:
                    raise
                _write_new_file(target / name, read_directory(path)[name])


def remove_directory(path: Path) -> bool:
    """Erase a directory: first its name, then its content; False if there is none.

    A crash in between leaves a temporary directory, which sweep_temporary removes. A link is removed, not followed.
    """
    with _storage_errors(path):
        if not os.path.lexists(path):
            return False
        temporary = _temporary_name(path.parent)
        path.rename(temporary)
        _fsync_directory(path.parent)
        _remove(temporary)
    return True


def remove_file(path: Path) -> None:
    """Erase a file for good; harmless when it is not there."""
    with _storage_errors(path):
        path.unlink(missing_ok=True)
        _fsync_directory(path.parent)


def sweep_temporary(root: Path) -> int:
    """Remove what a crash left unfinished anywhere under `root`; returns how many things it removed.

    Call it before anything is written: it cannot tell a write in progress from an abandoned one.
    """
    removed = 0
    with _storage_errors(root):
        for folder, directories, names in os.walk(root):
            leftovers = [name for name in (*directories, *names) if name.startswith(TEMPORARY_PREFIX)]
            directories[:] = [name for name in directories if not name.startswith(TEMPORARY_PREFIX)]
            for name in leftovers:
                _remove(Path(folder, name))
                removed += 1
    return removed


def make_directory(path: Path) -> None:
    """Make a directory (0700) and its missing parents so that they survive a power cut. Raises as write_file."""
    with _storage_errors(path):
        if path.is_dir():
            return
        make_directory(path.parent)
        try:
            path.mkdir(mode=0o700, exist_ok=True)
        except FileExistsError as error:
            raise StorageNotWritable(f"{path} is not a directory") from error
        _fsync_directory(path.parent)


def _check_name(name: str) -> None:
    if not name or name in {".", ".."} or "/" in name or "\0" in name or name.startswith(TEMPORARY_PREFIX):
        raise UnsafePath(f"{name!r} is not a plain file name")


def _temporary_name(directory: Path) -> Path:
    # 96 random bits: no one has that name, and O_EXCL (mkdir for a directory) refuses it if someone should.
    return directory / (TEMPORARY_PREFIX + os.urandom(12).hex())


def _write_new_file(path: Path, data: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
        os.fsync(fd)
    finally:
        os.close(fd)


def _read_at(directory_fd: int, name: str) -> bytes:
    # O_NONBLOCK: opening a planted FIFO must not wait for its writer.
    fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=directory_fd)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise UnsafePath(f"{name!r} is not a plain file")
        with os.fdopen(fd, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(fd)


def _fsync_file(path: Path) -> None:
    _fsync(path, os.O_RDONLY | os.O_NOFOLLOW)


def _fsync_directory(path: Path) -> None:
    _fsync(path, os.O_RDONLY | os.O_DIRECTORY)


def _fsync(path: Path, flags: int) -> None:
    fd = os.open(path, flags)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def _storage_errors(path: Path) -> Iterator[None]:
    """Turn the system's error numbers into storage's names; what has none of ours passes as it is."""
    try:
        yield
    except StorageError:
        raise
    except OSError as error:
        what = f"{error.filename or path} ({error.strerror})"
        if error.errno in _FULL:
            raise StorageFull(f"no space to write {what}") from error
        if error.errno in _DENIED:
            raise StorageNotWritable(f"not permitted: {what}") from error
        if error.errno in _NO_LINKS:
            raise UnsafePath(f"not a plain file or directory: {what}") from error
        if error.errno == errno.EIO:
            raise StorageBroken(f"the disk failed at {what}") from error
        raise
