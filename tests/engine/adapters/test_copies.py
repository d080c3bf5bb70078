"""engine.adapters.copies: versions in an object store, fetched where they are not, and gone with their person."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from engine.adapter_ref import CONFIG_FILE, TENSORS_FILE
from engine.adapters import copies
from engine.adapters.copies import StoredCopies, copies_in, packed, unpacked
from engine.adapters.store import AdapterStore, NoCopies
from engine.errors import AdapterDamaged
from storage.database import Database
from storage.errors import ObjectStoreAway, ObjectStoreTaken
from storage.learning import versions
from storage.object_store import opened as store_at
from storage.tables import AdapterVersion
from tests.engine.adapters.test_store import CONFIG, GOOD
from tests.engine.rows import BASE_MODEL, opened, person
from tests.storage.s3_server import BUCKET, s3_server


@dataclass
class Machine:
    """A data directory of a heed with copies."""

    folder: Path
    database: Database
    url: str

    @property
    def adapters(self) -> AdapterStore:
        """Its adapters, as after a start."""
        return AdapterStore(self.folder, self.database, copies_in(self.url, self.database))

    @property
    def names(self) -> list[str]:
        """The objects."""
        return store_at(self.url).names("adapters")

    async def version(self, user_id: str, adapters: AdapterStore | None = None) -> AdapterVersion:
        """A version of a person's that was trained, stored and accepted."""
        row = await self.database.write(lambda s: versions.allocate(s, user_id, 0, BASE_MODEL, None, None))
        sha256, size_bytes = await (adapters or self.adapters).write(row, GOOD, CONFIG)
        return await self.database.write(lambda s: versions.accept(s, user_id, row.number, sha256, size_bytes))


@pytest.fixture
async def machine(tmp_path: Path) -> AsyncIterator[Machine]:
    """One with its copies in a folder."""
    async with opened(tmp_path / "data") as database:
        yield Machine(tmp_path / "data", database, f"file://{tmp_path}/mounted")


async def test_another_machine_has_the_same_bytes(machine: Machine, tmp_path: Path) -> None:
    """What is not there is fetched once, and verified."""
    row = await machine.version(await machine.database.write(person))
    other = AdapterStore(tmp_path / "other", machine.database, copies_in(machine.url, machine.database))
    files = {CONFIG_FILE: CONFIG.encode(), TENSORS_FILE: GOOD}
    assert await other.read(row) == files
    assert other.num_fetched == 1
    shutil.rmtree(tmp_path / "mounted")
    assert await other.read(row) == files
    assert (tmp_path / "other" / row.path / TENSORS_FILE).read_bytes() == GOOD
    assert other.num_fetched == 1


async def test_what_is_damaged_here_is_fetched(machine: Machine) -> None:
    """From the copy; where that is no better the damage is told as it was."""
    row = await machine.version(await machine.database.write(person))
    damaged = machine.folder / row.path / TENSORS_FILE
    damaged.write_bytes(b"torn")
    await machine.adapters.verify(row)
    assert damaged.read_bytes() == GOOD
    damaged.write_bytes(b"torn")
    store_at(machine.url).put(machine.names[0], packed({CONFIG_FILE: CONFIG.encode(), TENSORS_FILE: b"other"}))
    with pytest.raises(AdapterDamaged, match="on disk is not what was written"):
        await machine.adapters.verify(row)


async def test_a_version_that_is_removed_has_no_copy(machine: Machine) -> None:
    """A person's erasure takes all of theirs, and no one else's."""
    ana, ben = [await machine.database.write(lambda s, name=name: person(s, name)) for name in ("ana", "ben")]
    rows = [await machine.version(user_id) for user_id in (ana, ana, ben)]
    await machine.adapters.remove(rows[0])
    assert [name.rpartition("/")[0] for name in machine.names] == sorted([rows[1].path, rows[2].path])
    await machine.adapters.copies.erase(ana)
    assert [name.rpartition("/")[0] for name in machine.names] == [rows[2].path]


async def test_a_start_settles_what_was_left(machine: Machine) -> None:
    """Copies whose versions are gone go; versions from before there was a store get theirs; candidates stay."""
    ana = await machine.database.write(person)
    plain = AdapterStore(machine.folder, machine.database)
    old, lost = [await machine.version(ana, plain) for _ in range(2)]
    await plain.remove(lost)
    gone = await machine.version(ana)
    await machine.database.write(lambda s: setattr(versions.get(s, ana, gone.number), "state", "pruned"))
    candidate = await machine.database.write(lambda s: versions.allocate(s, ana, 0, BASE_MODEL, None, None))
    await machine.adapters.write(candidate, GOOD, CONFIG)
    store_at(machine.url).put("adapters/nobody/1/x.zip", b"x")
    await machine.adapters.settle_copies()
    assert [name.rpartition("/")[0] for name in machine.names] == [old.path, candidate.path]


async def test_a_new_version_waits_for_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For a while; then its lesson is begun again later. Nothing is active whose copy is not stored."""
    monkeypatch.setattr(copies, "PAUSE_S", 0.01)
    with s3_server(monkeypatch) as server:
        async with opened(tmp_path / "data") as database:
            machine = Machine(tmp_path / "data", database, f"s3://{BUCKET}/heed")
            ana = await database.write(person)
            server.stop()
            writing = asyncio.create_task(machine.version(ana))
            await asyncio.sleep(0.3)
            assert not writing.done()
            server.begin_again()
            row = await writing
            assert machine.names == [f"{row.path}/{row.sha256}.zip"]
            server.stop()
            monkeypatch.setattr(copies, "PATIENCE_S", 0.0)
            with pytest.raises(ObjectStoreAway):
                await machine.version(ana)
            await machine.adapters.settle_copies()
            shutil.rmtree(machine.folder / row.path)
            with pytest.raises(ObjectStoreAway):
                await machine.adapters.read(row)
            server.begin_again()
            await machine.adapters.verify(row)


async def test_a_place_is_one_databases(machine: Machine, tmp_path: Path) -> None:
    """The same after a restart; another's sweep would remove what it does not know."""
    for _ in range(2):
        await machine.adapters.copies.claim()
    async with opened(tmp_path / "another") as database:
        with pytest.raises(ObjectStoreTaken, match="HEED_OBJECT_STORE"):
            await copies_in(machine.url, database).claim()
        await copies_in(f"{machine.url}/another", database).claim()


async def test_without_a_store_versions_are_here_alone(tmp_path: Path) -> None:
    """And damage stays damage."""
    async with opened(tmp_path) as database:
        assert isinstance(copies_in("", database), NoCopies)
        assert isinstance(copies_in(f"file://{tmp_path}/a", database), StoredCopies)
        machine = Machine(tmp_path, database, "")
        row = await machine.version(await database.write(person))
        await machine.adapters.copies.claim()
        await machine.adapters.settle_copies()
        await machine.adapters.copies.erase(row.user_id)
        await machine.adapters.verify(row)
        await machine.adapters.remove(row)
        with pytest.raises(AdapterDamaged, match="cannot be read"):
            await machine.adapters.verify(row)


def test_a_copy_is_the_same_for_the_same_files() -> None:
    """And what is none, or of another size, is damaged."""
    files = {"b": b"2" * 1000, "a": b"1"}
    whole = packed(files)
    assert whole == packed(dict(reversed(files.items())))
    assert unpacked(whole, 1001) == files
    for content, size_bytes in ((whole, 1000), (whole[:-30], 1001), (whole[:500] + b"x" + whole[501:], 1001), (b"", 0)):
        with pytest.raises(AdapterDamaged):
            unpacked(content, size_bytes)
