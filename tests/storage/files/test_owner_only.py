"""storage.files.owner_only: a data directory that others could read, and cannot any more."""

import stat
from pathlib import Path

from storage.database import Database
from storage.files.owner_only import make_owner_only


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


async def test_what_was_there_becomes_the_owners(tmp_path: Path) -> None:
    """Directory, database and everything heed keeps; what is not heed's stays as it is, and links are not followed."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("public")
    data_dir = tmp_path / "data"
    version = data_dir / "adapters" / "ana" / "1"
    version.mkdir(parents=True)
    (data_dir / "logs").mkdir()
    for path in (version / "weights", data_dir / "logs" / "vllm.log", data_dir / "notes.txt"):
        path.write_text("x")
    (data_dir / "logs" / "link").symlink_to(elsewhere)
    await Database.open(tmp_path / "fresh").close()
    (tmp_path / "fresh" / "heed.db").rename(data_dir / "heed.db")
    for path in (data_dir, *data_dir.rglob("*"), elsewhere):
        path.chmod(0o777 if path.is_dir() else 0o666)
    make_owner_only(data_dir)
    ours = (data_dir, data_dir / "logs", data_dir / "logs" / "vllm.log", data_dir / "heed.db", version / "weights")
    assert [oct(_mode(path)) for path in ours] == ["0o700", "0o700", "0o600", "0o600", "0o600"]
    assert _mode(version) == 0o700
    assert (_mode(data_dir / "notes.txt"), _mode(elsewhere)) == (0o666, 0o666)


def test_a_directory_of_everyones_stays_so(tmp_path: Path) -> None:
    """A sticky directory, as /tmp is, is not closed to the others who use it."""
    tmp_path.chmod(0o1777)
    make_owner_only(tmp_path)
    assert _mode(tmp_path) == 0o1777
