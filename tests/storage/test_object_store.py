"""storage.object_store: objects in a folder and in a real S3 server's bucket, whole or not there."""

import errno
from collections.abc import Iterator
from pathlib import Path

import pytest

from storage import object_store
from storage.errors import PASSING, DriverMissing, ObjectMissing, ObjectStoreAway, ObjectStoreRefused
from storage.object_store import ObjectStore, opened
from tests.storage.s3_server import BUCKET, s3_server


@pytest.fixture(params=["folder", "bucket"])
def url(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A store of each kind."""
    if request.param == "folder":
        yield f"file://{tmp_path}/mounted"
    else:
        with s3_server(monkeypatch):
            yield f"s3://{BUCKET}/heed"


@pytest.fixture
def store(url: str) -> ObjectStore:
    """It, opened."""
    return opened(url)


def test_what_is_put_is_there(store: ObjectStore, url: str) -> None:
    """For everyone who opens it, under its name; the newest if it is put again."""
    assert store.names("adapters") == []
    store.put("adapters/ana/1/a.zip", b"one")
    store.put("adapters/ana/1/a.zip", b"two")
    store.put("adapters/ben/12/b.zip", b"")
    other = opened(url)
    assert (other.get("adapters/ana/1/a.zip"), other.get("adapters/ben/12/b.zip")) == (b"two", b"")
    assert other.names("adapters") == ["adapters/ana/1/a.zip", "adapters/ben/12/b.zip"]
    assert other.names("adapters/ana") == ["adapters/ana/1/a.zip"]


def test_a_folder_is_removed_and_no_other(store: ObjectStore) -> None:
    """Also where another's name begins alike; harmless to repeat, and what is gone is missing at once."""
    for folder in ("1", "12"):
        store.put(f"adapters/ana/{folder}/a.zip", b"x")
    for _ in range(2):
        store.remove("adapters/ana/1")
    assert store.names("adapters") == ["adapters/ana/12/a.zip"]
    with pytest.raises(ObjectMissing):
        store.get("adapters/ana/1/a.zip")


@pytest.mark.parametrize("name", ["", "../a", "a/../../b", "/etc/passwd", "a//b", "a b", "a\x00"])
def test_no_name_leads_out(store: ObjectStore, name: str) -> None:
    """Whatever is done with it."""
    for call in (store.get, store.names, store.remove, lambda name: store.put(name, b"x")):
        with pytest.raises(ObjectMissing):
            call(name)


def test_it_is_tried_out(store: ObjectStore, url: str) -> None:
    """And nothing stays of that."""
    object_store.try_out(url)
    assert store.names("trials") == []


def test_a_server_that_is_away_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was put before is there when it is back."""
    with s3_server(monkeypatch) as server:
        store = opened(f"s3://{BUCKET}/heed")
        store.put("a", b"x")
        server.stop()
        with pytest.raises(ObjectStoreAway) as away:
            store.get("a")
        assert away.value.retryable
        server.begin_again()
        assert store.get("a") == b"x"


def test_a_full_folder_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is there stays, lessons wait as for a store that is away, and there is room again."""
    store = opened(f"file://{tmp_path}/objects")
    store.put("a", b"x")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(object_store.atomic, "write_file", full)
        with pytest.raises(PASSING):
            store.put("b", b"y")
    assert store.get("a") == b"x"
    store.put("b", b"y")
    assert store.get("b") == b"y"


def test_a_bucket_that_is_not_there_is_no_empty_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is stored, and the remedy is said; so it is without credentials."""
    with s3_server(monkeypatch):
        with pytest.raises((ObjectMissing, ObjectStoreRefused)):
            opened("s3://another/heed").put("a", b"x")
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.delenv(name)
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        with pytest.raises(ObjectStoreRefused, match="AWS_ACCESS_KEY_ID"):
            opened(f"s3://{BUCKET}/heed").put("a", b"x")


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """A file stands where the folder belongs."""
    (tmp_path / "file").write_text("x")
    with pytest.raises(Exception, match="file"):
        opened(f"file://{tmp_path}/file").put("a", b"x")


@pytest.mark.parametrize("url", ["s3://", "file://", "nowhere", "nothing://a/b", "file:///"])
def test_a_url_that_names_no_store_is_refused(url: str) -> None:
    """At once, with what to give."""
    with pytest.raises(DriverMissing, match="object store"):
        opened(url)
