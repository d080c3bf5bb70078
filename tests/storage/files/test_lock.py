"""One running heed per data directory."""

import fcntl
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from storage.errors import DataDirectoryLocked, StorageNotWritable
from storage.files.lock import LOCK_NAME, DataDirectoryLock

REPOSITORY = Path(__file__).parents[3]
HOLDER = r"""
import os, sys, time
from pathlib import Path
from storage.files.lock import DataDirectoryLock
lock = DataDirectoryLock(Path(sys.argv[1]))
lock.acquire()
{after}
os.write(1, b"held\n")
time.sleep(60)
"""
FORK = r"""
if os.fork() == 0:
    os.write(1, f"{os.getpid()}\n".encode())
    time.sleep(60)
    os._exit(0)
"""


def _holder(data_dir: Path, after: str = "") -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", HOLDER.format(after=after), str(data_dir)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY)


def _lines(process: "subprocess.Popen[str]", number: int) -> list[str]:
    assert process.stdout is not None
    return [process.stdout.readline().strip() for _ in range(number)]


def test_a_second_lock_is_refused_with_the_pid_of_the_first(tmp_path: Path) -> None:
    """The error names the process that holds the directory and what to do."""
    with (
        DataDirectoryLock(tmp_path),
        pytest.raises(DataDirectoryLocked, match=f"Process {os.getpid()} .*HEED_DATA_DIR") as caught,
    ):
        DataDirectoryLock(tmp_path).acquire()
    assert caught.value.pid == os.getpid()


def test_a_lock_on_a_file_that_was_removed_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A start that fails removes its directory, perhaps between our open and our lock: then the new file is locked."""
    data_dir, real, calls = tmp_path / "data", fcntl.flock, []

    def flock(fd: int, how: int) -> None:
        if not calls:
            shutil.rmtree(data_dir)
        calls.append(fd)
        real(fd, how)

    monkeypatch.setattr(fcntl, "flock", flock)
    with DataDirectoryLock(data_dir), pytest.raises(DataDirectoryLocked):
        DataDirectoryLock(data_dir).acquire()
    assert len(calls) == 3


def test_a_released_lock_can_be_taken_again(tmp_path: Path) -> None:
    """Leaving the block frees the directory; the lock file stays."""
    with DataDirectoryLock(tmp_path):
        pass
    with DataDirectoryLock(tmp_path):
        assert (tmp_path / LOCK_NAME).read_text() == f"{os.getpid()}\n"


def test_acquiring_twice_and_releasing_twice_is_harmless(tmp_path: Path) -> None:
    """The lock is held once however often it is asked for."""
    lock = DataDirectoryLock(tmp_path)
    lock.acquire()
    lock.acquire()
    lock.release()
    lock.release()
    with DataDirectoryLock(tmp_path):
        pass


@pytest.mark.crash
def test_the_lock_ends_with_a_killed_process(tmp_path: Path) -> None:
    """After kill -9 the directory is free at once, stale file or not."""
    with _holder(tmp_path) as process:
        assert _lines(process, 1) == ["held"]
        with pytest.raises(DataDirectoryLocked) as caught:
            DataDirectoryLock(tmp_path).acquire()
        assert caught.value.pid == process.pid
        process.kill()
        process.wait()
        with DataDirectoryLock(tmp_path):
            pass


@pytest.mark.crash
def test_an_orphan_of_a_killed_process_does_not_keep_the_lock(tmp_path: Path) -> None:
    """A forked child that outlives heed (a model process) leaves the directory free, and never frees it early."""
    with _holder(tmp_path, after=FORK) as process:
        lines = _lines(process, 2)
        child = int(next(line for line in lines if line.isdigit()))
        try:
            with pytest.raises(DataDirectoryLocked):
                DataDirectoryLock(tmp_path).acquire()
            process.kill()
            process.wait()
            os.kill(child, 0)  # it is still there
            with DataDirectoryLock(tmp_path):
                pass
        finally:
            os.kill(child, signal.SIGKILL)


def test_a_link_in_place_of_the_lock_file_is_not_followed(tmp_path: Path) -> None:
    """A planted link is refused, and what it points at is not emptied."""
    (tmp_path / "precious").write_text("precious")
    (tmp_path / LOCK_NAME).symlink_to(tmp_path / "precious")
    with pytest.raises(StorageNotWritable):
        DataDirectoryLock(tmp_path).acquire()
    assert (tmp_path / "precious").read_text() == "precious"


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    """A data directory below a plain file is refused by name."""
    (tmp_path / "file").touch()
    with pytest.raises(StorageNotWritable, match="file/data"):
        DataDirectoryLock(tmp_path / "file" / "data").acquire()
