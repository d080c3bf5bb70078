"""Adapter directories: written once, verified, erased; damage is found, whatever it is."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save

from engine.adapter_ref import CONFIG_FILE, TENSORS_FILE
from engine.adapters.store import KEPT_REJECTED, VERDICT_FILE, AdapterStore
from engine.errors import AdapterDamaged
from storage.errors import AlreadyWritten
from storage.learning import versions
from storage.tables import AdapterVersion
from tests.engine.rows import accepted, opened, person

CONFIG = json.dumps({"peft_type": "LORA", "r": 2})
GOOD = save({"m.lora_A.weight": np.ones((2, 3), np.float32), "m.lora_B.weight": np.ones((3, 2), np.float32)})


class KnownPaths:
    """A database that knows some directories."""

    def __init__(self, *paths: str) -> None:
        self.paths = set(paths)

    async def read(self, _work: Any) -> set[str]:
        """Return the paths as `versions.known_paths` does."""
        return self.paths


def store_in(folder: Path, *known: str) -> AdapterStore:
    """A store whose database knows these directories."""
    return AdapterStore(folder, KnownPaths(*known))  # type: ignore[arg-type]


def version(user_id: str = "ana", number: int = 1, **fields: Any) -> AdapterVersion:
    """A version's row."""
    path = f"adapters/{user_id}/{number}"
    return AdapterVersion(**({"lora_int_id": 7, "user_id": user_id, "number": number, "path": path} | fields))


async def written(store: AdapterStore, row: AdapterVersion) -> AdapterVersion:
    """The row after its directory was written."""
    row.sha256, row.size_bytes = await store.write(row, GOOD, CONFIG)
    return row


async def test_what_was_written_verifies(tmp_path: Path) -> None:
    """A written version passes the check, and its size is that of both files."""
    store = store_in(tmp_path)
    row = await written(store, version())
    await store.verify(row)
    assert row.size_bytes == len(GOOD) + len(CONFIG)
    assert (tmp_path / row.path / TENSORS_FILE).read_bytes() == GOOD


async def test_a_version_is_never_written_twice(tmp_path: Path) -> None:
    """It is immutable."""
    store = store_in(tmp_path)
    await written(store, version())
    with pytest.raises(AlreadyWritten):
        await written(store, version())


def values(value: float) -> bytes:
    """A tensors file of one value."""
    return save({"m.lora_A.weight": np.full((2, 3), value, np.float32)})


@pytest.mark.parametrize(
    "tensors", [values(float("nan")), values(float("inf")), values(1e6), b"", b"\x00" * 64, save({})]
)
async def test_values_that_no_training_produces_are_not_written(tmp_path: Path, tensors: bytes) -> None:
    """Values that are not finite, enormous, empty or no safetensors file leave nothing behind."""
    with pytest.raises(AdapterDamaged):
        await store_in(tmp_path).write(version(), tensors, CONFIG)
    assert not (tmp_path / "adapters").exists()


@pytest.mark.parametrize("config", ["", "{", "[]", json.dumps({"peft_type": "IA3"})])
async def test_a_configuration_that_is_not_loras_is_not_written(tmp_path: Path, config: str) -> None:
    """PEFT and vLLM would refuse it later."""
    with pytest.raises(AdapterDamaged):
        await store_in(tmp_path).write(version(), GOOD, config)


@pytest.mark.parametrize("damage", ["changed", "shortened", "missing file", "extra file", "missing", "link"])
async def test_any_damage_on_disk_is_found(tmp_path: Path, damage: str) -> None:
    """Against the SHA-256 in the row."""
    store = store_in(tmp_path)
    row = await written(store, version())
    folder = tmp_path / row.path
    file = folder / TENSORS_FILE
    if damage == "changed":
        file.write_bytes(GOOD[:-1] + bytes([GOOD[-1] ^ 1]))
    if damage == "shortened":
        file.write_bytes(GOOD[:-4])
    if damage == "missing file":
        (folder / CONFIG_FILE).unlink()
    if damage == "extra file":
        (folder / "more").write_bytes(b"")
    if damage == "missing":
        folder.rename(tmp_path / "elsewhere")
    if damage == "link":
        folder.rename(tmp_path / "elsewhere")
        folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(AdapterDamaged):
        await store.verify(row)


async def test_erasing_a_person_leaves_others(tmp_path: Path) -> None:
    """All versions of one, none of another's; harmless to repeat."""
    store = store_in(tmp_path)
    await written(store, version("ana", 1))
    await written(store, version("ana", 2))
    bens = await written(store, version("ben", 1))
    await store.erase("ana")
    await store.erase("ana")
    assert not (tmp_path / "adapters" / "ana").exists()
    await store.verify(bens)


async def test_a_removed_version_leaves_the_others_of_the_person(tmp_path: Path) -> None:
    """One directory."""
    store = store_in(tmp_path)
    first, second = await written(store, version(number=1)), await written(store, version(number=2))
    await store.remove(first)
    await store.remove(first)
    await store.verify(second)
    assert not (tmp_path / first.path).exists()


async def test_sweeping_removes_what_no_row_knows(tmp_path: Path) -> None:
    """A crash between writing the directory and committing its row leaves an orphan; temporary ones go, too."""
    store = store_in(tmp_path, "adapters/ana/1")
    kept = await written(store, version("ana", 1))
    await written(store, version("ana", 2))
    await written(store, version("ben", 1))
    (tmp_path / "adapters" / "ana" / ".heed-tmp-x").mkdir()
    assert sorted(await store.sweep()) == ["adapters/ana/2", "adapters/ben/1"]
    assert [path.name for path in (tmp_path / "adapters").iterdir()] == ["ana"]
    await store.verify(kept)


async def test_sweeping_before_anything_was_written_does_nothing(tmp_path: Path) -> None:
    """A new data directory."""
    assert await store_in(tmp_path).sweep() == []


def test_a_reference_has_an_absolute_path_and_a_name_of_its_own(tmp_path: Path) -> None:
    """A relative path that does not exist would make vLLM ask a hub."""
    ref = store_in(tmp_path).ref(version(number=3))
    assert ref.name == "ana@3"
    assert Path(ref.path) == tmp_path.resolve() / "adapters/ana/3"
    assert ref.to_dict() == {"lora_int_id": 7, "path": ref.path}


@pytest.mark.parametrize(
    "fields", [{"path": "adapters/ben/1"}, {"path": "../ana/1"}, {"user_id": "../etc"}, {"user_id": ""}]
)
async def test_a_path_outside_the_persons_folder_is_refused(tmp_path: Path, fields: dict[str, str]) -> None:
    """A row cannot lead out of its person's folder."""
    store = store_in(tmp_path)
    with pytest.raises(AdapterDamaged):
        await store.write(version(**fields), GOOD, CONFIG)
    with pytest.raises(AdapterDamaged):
        store.ref(version(lora_int_id=None))


VERDICT: dict[str, object] = {"accepted": False, "reason": "too much"}


async def test_a_refused_candidate_is_kept_apart_with_its_verdict(tmp_path: Path) -> None:
    """Its files can be read with any PEFT tool; nothing lies where versions are served from."""
    store = store_in(tmp_path)
    folder = await store.keep_rejected(version(), GOOD, CONFIG, VERDICT)
    assert (folder / TENSORS_FILE).read_bytes() == GOOD
    assert (folder / CONFIG_FILE).read_text() == CONFIG
    assert json.loads((folder / VERDICT_FILE).read_text()) == VERDICT
    assert not (tmp_path / "adapters").exists()
    assert await store.sweep() == []
    assert folder.is_dir()


async def test_a_candidate_without_numbers_leaves_its_verdict(tmp_path: Path) -> None:
    """There is nothing else to look at."""
    folder = await store_in(tmp_path).keep_rejected(version(), b"", "", VERDICT)
    assert [f.name for f in folder.iterdir()] == [VERDICT_FILE]


async def test_only_the_newest_refused_candidates_are_kept(tmp_path: Path) -> None:
    """By number, not by name: 10 is newer than 9."""
    store = store_in(tmp_path)
    for number in range(8, 12):
        folder = await store.keep_rejected(version(number=number), b"", "", VERDICT)
    kept = sorted(int(path.name) for path in folder.parent.iterdir())
    assert kept == [8, 9, 10, 11][-KEPT_REJECTED:]


async def test_erasing_a_person_erases_refused_candidates_too(tmp_path: Path) -> None:
    """Other people's refused candidates stay."""
    store = store_in(tmp_path)
    gone = await store.keep_rejected(version("ana"), b"", "", VERDICT)
    other = await store.keep_rejected(version("ben"), b"", "", VERDICT)
    await store.erase("ana")
    assert not gone.exists()
    assert other.is_dir()


async def test_refused_candidates_of_people_who_are_gone_are_swept(tmp_path: Path) -> None:
    """A person may be erased while no engine runs; its next start finishes that, and leaves everybody else's."""
    async with opened(tmp_path) as database:
        ana = await database.write(lambda s: person(s))
        store = AdapterStore(tmp_path, database)
        known = await store.keep_rejected(version(ana), b"", "", VERDICT)
        gone = await store.keep_rejected(version("nobody"), b"", "", VERDICT)
        await store.sweep()
    assert known.is_dir()
    assert not gone.exists()


async def test_sweeping_removes_what_a_pruned_version_left(tmp_path: Path) -> None:
    """Killed between the row and the files: the next start removes the files, and keeps the row and the others'."""
    async with opened(tmp_path) as database:
        store = AdapterStore(tmp_path, database)
        ana = await database.write(person)
        rows = [await database.write(lambda s: accepted(s, ana, None)) for _ in range(3)]
        for row in rows:
            await store.write(row, GOOD, CONFIG)
        await database.write(lambda s: versions.prune(s, ana, 2))
        assert await store.sweep() == [f"adapters/{ana}/1"]
        assert sorted(path.name for path in (tmp_path / "adapters" / ana).iterdir()) == ["2", "3"]
        assert len(await database.read(lambda s: versions.history(s, ana))) == 3


async def test_reading_gives_verified_files(tmp_path: Path) -> None:
    """An export reads exactly the written bytes, or fails."""
    store = store_in(tmp_path)
    row = await written(store, version())
    assert await store.read(row) == {CONFIG_FILE: CONFIG.encode(), TENSORS_FILE: GOOD}
    row.sha256 = "00"
    with pytest.raises(AdapterDamaged):
        await store.read(row)
