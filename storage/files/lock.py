"""One running heed per data directory.

Owns the file `heed.lock`. The lock is the kernel's (flock): it ends with the process, however that ends, so a
stale file never blocks a start and the file is never removed. Child processes must not inherit it: an orphan of
a killed heed would otherwise keep the directory locked.
"""

import fcntl
import os
import weakref
from pathlib import Path
from types import TracebackType
from typing import Self

from storage.errors import DataDirectoryLocked, StorageNotWritable

LOCK_NAME = "heed.lock"
_MODE = 0o600

_held: weakref.WeakSet["DataDirectoryLock"] = weakref.WeakSet()


class DataDirectoryLock:
    """The lock on one data directory; use it as a context manager, or acquire() and release()."""

    def __init__(self, data_dir: Path) -> None:
        self._path = data_dir / LOCK_NAME
        self._fd: int | None = None

    def acquire(self) -> None:
        """Take the lock and leave our pid in the file.

        Raises DataDirectoryLocked (with the holder's pid) and StorageNotWritable.
        """
        if self._fd is not None:
            return
        fd = self._locked()
        while not self._is_in_place(fd):  # a start that failed has removed it since
            os.close(fd)
            fd = self._locked()
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
        self._fd = fd
        _held.add(self)

    def release(self) -> None:
        """Give the lock back; harmless when it is not held."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None
            _held.discard(self)

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def _locked(self) -> int:
        fd = self._open()
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            pid = _read_pid(fd)
            os.close(fd)
            who = f"process {pid}" if pid else "another heed"
            raise DataDirectoryLocked(f"{who} is running on {self._path.parent}", pid) from error
        return fd

    def _is_in_place(self, fd: int) -> bool:
        """Return True if the locked file is the one that others would lock."""
        try:
            return os.path.samestat(os.fstat(fd), self._path.lstat())
        except FileNotFoundError:
            return False

    def _open(self) -> int:
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            return os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, _MODE)
        except OSError as error:
            raise StorageNotWritable(
                f"cannot lock the data directory {self._path.parent} ({error.strerror})"
            ) from error


def _read_pid(fd: int) -> int | None:
    text = os.pread(fd, 32, 0).decode("ascii", "replace").strip()
    return int(text) if text.isdecimal() else None


def _drop_in_child() -> None:
    # A flock belongs to the open file, which fork() shares: closing the child's copy leaves the parent's lock alone.
    for lock in list(_held):
        lock.release()


os.register_at_fork(after_in_child=_drop_in_child)
