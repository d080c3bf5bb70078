"""Immutable objects on other disks than this machine's: in a folder that is mounted from there, or in a bucket of S3's.

Owns their names and which errors a driver's are. Invariants: an object is whole or not there, also if heed is killed
while it writes one; its content is for the reader to verify; nothing outside of the root is touched. All calls block
for as long as the store takes.
"""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import fsspec

from storage.errors import DriverMissing, ObjectMissing, ObjectStoreAway, ObjectStoreRefused, StorageError
from storage.files import atomic
from storage.tables import new_id

TRIALS_FOLDER = "trials"
CONNECT_TIMEOUT_S = 5
ANSWER_TIMEOUT_S = 30
ATTEMPTS = 3  # of one call, by the driver
_NAME = re.compile(r"[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*")
_OPTIONS: dict[str, dict[str, Any]] = {
    "s3": {
        "config_kwargs": {
            "connect_timeout": CONNECT_TIMEOUT_S,
            "read_timeout": ANSWER_TIMEOUT_S,
            "retries": {"max_attempts": ATTEMPTS},
        },
    },
}


class ObjectStore(Protocol):
    """Objects by name, such as adapters/ana/1/files.zip. Every call raises ObjectStoreAway or ObjectStoreRefused."""

    place: str  # as it may be shown: without a password

    def put(self, name: str, content: bytes) -> None:
        """Store an object; afterwards it is there whole, and survives this machine."""

    def get(self, name: str) -> bytes:
        """Return an object. Raises ObjectMissing."""

    def names(self, folder: str) -> list[str]:
        """Return the names of all objects below a folder, sorted; none if there is no such folder."""

    def remove(self, folder: str) -> None:
        """Remove all objects below a folder; harmless to repeat."""


def opened(url: str) -> ObjectStore:
    """Return the store at a URL: file:///folder, or s3://bucket/prefix. Asks for nothing yet. Raises DriverMissing."""
    scheme, _, rest = url.partition("://")
    if not rest.strip("/"):
        raise DriverMissing(f"{url!r} is no object store: give file:///a/folder or s3://bucket/prefix")
    if scheme == "file":
        return FolderStore(Path(rest))
    return BucketStore(url)


def try_out(url: str) -> None:
    """Store an object, read it and remove it again. Raises DriverMissing, ObjectStoreAway, ObjectStoreRefused."""
    store, name = opened(url), f"{TRIALS_FOLDER}/{new_id()}"
    store.put(f"{name}/object", b"heed")
    if store.get(f"{name}/object") != b"heed" or store.names(name) != [f"{name}/object"]:
        raise ObjectStoreAway(f"{store.place} gives back something else than it was given")
    store.remove(name)


class FolderStore:
    """Objects as files, on a disk that other machines may have mounted, too."""

    def __init__(self, root: Path) -> None:
        self.place = f"the folder {root.name}"
        self._root = root

    def put(self, name: str, content: bytes) -> None:
        """See ObjectStore."""
        with _named_errors(self.place):
            atomic.write_file(self._root / _checked(name), content)

    def get(self, name: str) -> bytes:
        """See ObjectStore."""
        with _named_errors(self.place):
            return (self._root / _checked(name)).read_bytes()

    def names(self, folder: str) -> list[str]:
        """See ObjectStore."""
        with _named_errors(self.place):
            files = (path for path in (self._root / _checked(folder)).rglob("*") if path.is_file())
            found = (path.relative_to(self._root) for path in files if not path.name.startswith("."))
            return sorted(map(str, found))

    def remove(self, folder: str) -> None:
        """See ObjectStore."""
        with _named_errors(self.place):
            atomic.remove_directory(self._root / _checked(folder))


class BucketStore:
    """Objects in a bucket, by fsspec's driver for the URL's scheme. Credentials are where that looks for them."""

    def __init__(self, url: str) -> None:
        """Raise DriverMissing."""
        scheme = url.partition("://")[0]
        options = _OPTIONS.get(scheme, {})
        try:
            self._files, self._root = fsspec.url_to_fs(
                url, use_listings_cache=False, skip_instance_cache=True, **options
            )
        except (ImportError, ValueError) as error:
            raise DriverMissing(f"no driver for the object store {url!r} ({error})") from error
        self.place = f"the bucket {self._root.partition('/')[0]}"

    def put(self, name: str, content: bytes) -> None:
        """See ObjectStore."""
        with _named_errors(self.place):
            self._files.pipe_file(self._path(name), content)

    def get(self, name: str) -> bytes:
        """See ObjectStore."""
        with _named_errors(self.place):
            return bytes(self._files.cat_file(self._path(name)))

    def names(self, folder: str) -> list[str]:
        """See ObjectStore."""
        with _named_errors(self.place):
            found = self._files.find(self._path(folder))
            return sorted(path.removeprefix(f"{self._root}/") for path in found)

    def remove(self, folder: str) -> None:
        """See ObjectStore."""
        path = self._path(folder)
        with _named_errors(self.place), contextlib.suppress(FileNotFoundError):
            self._files.rm(path, recursive=True)

    def _path(self, name: str) -> str:
        return f"{self._root}/{_checked(name)}"


def _checked(name: str) -> str:
    """Return the name. Raise ObjectMissing for one that could lead out of the root."""
    if not _NAME.fullmatch(name) or ".." in name.split("/"):
        raise ObjectMissing(f"{name!r} is no name of an object")
    return name


@contextlib.contextmanager
def _named_errors(place: str) -> Iterator[None]:
    """Give what a driver raises, which may be of any class, the name of its remedy."""
    try:
        yield
    except StorageError:
        raise
    except FileNotFoundError as error:
        raise ObjectMissing(f"{place} has no such object") from error
    except PermissionError as error:
        raise ObjectStoreRefused(f"{place} does not let heed in ({error})") from error
    except Exception as error:
        if "Credentials" in type(error).__name__:
            raise ObjectStoreRefused(f"there are no credentials for {place} ({error})") from error
        raise ObjectStoreAway(f"{place} does not answer ({error})") from error
