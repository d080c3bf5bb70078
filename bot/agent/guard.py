"""The places of a workspace that a run in the sandbox cannot change, where git would run what they name outside.

Invariants: a place is held where it is, with every folder above it, so that none can be moved away; before the command
begins the sandbox compares what is held there with what heed has seen, so that a link put in its place shows nothing.
"""

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Absent = Literal["", "file", "folder"]  # what stands for a place that is not there: nothing, or an empty one
_SAME = (
    'if test "$(stat --format=%d:%i -- "${{@:2:{count}}}" | tr "\\n" " ")" = "$1"; then shift {past}; exec "$@"; fi; '
    "echo The folder has changed meanwhile.; exit 125"
)


@dataclass(frozen=True)
class HeldPlace:
    """A place by its name from the top of the workspace."""

    name: str
    is_frozen: bool = False  # with all that is in it; else it may be changed, but not moved
    inode: str = ""  # of what is there, with its device; empty if nothing is
    absent: Absent = ""


@dataclass(frozen=True)
class Guard:
    """The places of one run; with `is_frozen` nothing of the workspace can be changed."""

    places: tuple[HeldPlace, ...] = ()
    is_frozen: bool = False

    @property
    def num_files(self) -> int:
        """How many empty files stand for something that is not there."""
        return sum(place.absent == "file" for place in self.places)

    def mounts(self, folder: Path, work: str, files: Sequence[int]) -> list[str]:
        """Return bubblewrap's words for a folder that is seen at `work`; `files` are descriptors of empty files."""
        words, empty = ["--ro-bind" if self.is_frozen else "--bind", str(folder), work], iter(files)
        for place in self.places:
            seen = f"{work}/{place.name}"
            match place.absent:
                case "file":
                    words += ["--ro-bind-data", str(next(empty)), seen]
                case "folder":
                    words += ["--size", "4096", "--tmpfs", seen, "--remount-ro", seen]
                case _:
                    words += ["--ro-bind" if place.is_frozen else "--bind", str(folder / place.name), seen]
        return words

    def checked(self, command: Sequence[str]) -> list[str]:
        """Return a command that begins only if every place is what heed has seen there."""
        there = [place for place in self.places if place.inode]
        if not there:
            return [*command]
        script = _SAME.format(count=len(there), past=len(there) + 1)
        wanted = "".join(f"{place.inode} " for place in there)
        return ["bash", "-c", script, "bash", wanted, *(place.name for place in there), *command]


def guard_of(folder: Path, wanted: Mapping[str, Absent]) -> Guard:
    """Return the guard that freezes these names, each with what stands for it where it is not there."""
    found = dict[str, HeldPlace]()
    for name, absent in wanted.items():
        for place in _held(folder, name, absent):
            if not (place.name in found and found[place.name].is_frozen):
                found[place.name] = place
    closed = {place.name for place in found.values() if place.is_frozen or place.absent}
    kept = [place for name, place in sorted(found.items()) if not closed & {*_above(name)}]
    return Guard(tuple(kept))


def _held(folder: Path, name: str, absent: Absent) -> Iterator[HeldPlace]:
    """Yield a name with the folders above it; a link is held by freezing the folder that it lies in."""
    above: HeldPlace | None = None
    for part in [*_above(name), name]:
        is_last = part == name
        try:
            inode = _inode(folder, part)
        except FileNotFoundError:
            if absent:
                yield HeldPlace(part, absent=absent if is_last else "folder")
            return
        except OSError:
            if above is not None:
                yield HeldPlace(above.name, True, above.inode)
            return
        above = HeldPlace(part, is_last, inode)
        yield above


def _above(name: str) -> list[str]:
    """Return the folders that a name lies in, the top first."""
    parts = name.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]


def _inode(folder: Path, name: str) -> str:
    """Return the device and inode of a file or folder, no link followed below the workspace. Raises OSError."""
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    try:
        for part in name.split("/"):
            inner = os.open(part, os.O_PATH | os.O_NOFOLLOW, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
        found = os.fstat(descriptor)
        if stat.S_ISLNK(found.st_mode):
            raise NotADirectoryError(name)
        return f"{found.st_dev}:{found.st_ino}"
    finally:
        os.close(descriptor)
