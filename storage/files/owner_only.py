"""The data directory for its owner only, also one that was made with wider rights.

Owns which entries of the directory are heed's: only those are touched, as the directory may hold other things. Rights
are only taken away. Never follows a link.
"""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from storage.errors import StorageNotWritable

OWN = ("heed.*", "adapters", "backups", "calibration", "logs", "rejected")
OTHERS = stat.S_IRWXG | stat.S_IRWXO


def make_owner_only(data_dir: Path) -> None:
    """Take the group's and others' rights off the data directory (0700) and heed's files in it (0600).

    Blocking: looks at every file. What belongs to another user stays as it is, and so does a directory that is
    everyone's by intent, such as /tmp. Raises StorageNotWritable.
    """
    if not data_dir.stat().st_mode & stat.S_ISVTX:
        _narrow(data_dir)
    for path in _own(data_dir):
        _narrow(path)


def _own(data_dir: Path) -> Iterator[Path]:
    for pattern in OWN:
        for entry in data_dir.glob(pattern):
            yield entry
            if entry.is_dir() and not entry.is_symlink():
                yield from entry.rglob("*")


def _narrow(path: Path) -> None:
    try:
        found = path.lstat()
        is_plain = stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)
        if is_plain and found.st_mode & OTHERS and found.st_uid == os.geteuid():
            path.chmod(stat.S_IMODE(found.st_mode) & ~OTHERS)
    except FileNotFoundError:
        return  # a retired version's file
    except OSError as error:
        raise StorageNotWritable(f"{path} cannot be kept from other users ({error.strerror})") from error
