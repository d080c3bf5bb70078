"""bot.cli.cluster: several engines need a server's database, and say so before anything is started.

A whole cluster behind the command line: `make test ARGS="--engines 2 tests/bot/test_end_to_end.py"`.
"""

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from bot.cli import cluster, serving
from bot.cli.main import cli


@pytest.fixture(autouse=True)
def data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The data directory of the settings."""
    monkeypatch.setenv("HEED_DATA_DIR", str(tmp_path / "data"))
    return tmp_path / "data"


def test_a_cluster_needs_a_servers_database(data_dir: Path) -> None:
    """SQLite's file has one writer; nothing is made."""
    done = CliRunner().invoke(cli, ["cluster", "up"])
    assert done.exit_code == 2
    assert "HEED_DATABASE_URL" in done.stderr
    assert not data_dir.exists()


@pytest.mark.parametrize("given", ["", "s3://bucket/heed"])
def test_the_engines_share_an_object_store(data_dir: Path, monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    """The one that is set, or a folder of the data directory."""
    made: dict[str, Any] = {}

    async def serve(make: Any, *, has_terminal: bool) -> None:
        made.update(settings=make.args[0], engine=make.keywords["engine_factory"], has_terminal=has_terminal)

    monkeypatch.setattr(serving, "serve", serve)
    monkeypatch.setenv("HEED_DATABASE_URL", "postgresql://heed@localhost/heed")
    if given:
        monkeypatch.setenv("HEED_OBJECT_STORE", given)
    assert CliRunner().invoke(cli, ["cluster", "up", "--engines", "3"]).exit_code == 0
    assert made["settings"].object_store == (given or f"file://{data_dir / cluster.OBJECTS_FOLDER}")
    assert made["engine"].keywords == {"database_url": "postgresql://heed@localhost/heed", "num_engines": 3}
