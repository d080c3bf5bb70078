"""bot.cli.cluster: several engines need a server's database, and say so before anything is started.

A whole cluster behind the command line: `make test ARGS="--engines 2 tests/bot/test_end_to_end.py"`.
"""

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from bot.cli import cluster, serving
from bot.cli.main import cli
from bot.monitoring.metrics import Metrics
from engine.requests import EngineLoad


@pytest.fixture(autouse=True)
def data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The data directory of the settings."""
    monkeypatch.setenv("HEED_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setattr(cluster.logs, "begin", lambda *_: None)  # it would log to a stream that is closed afterwards
    return tmp_path / "data"


def test_a_cluster_needs_a_servers_database(data_dir: Path) -> None:
    """SQLite's file has one writer; nothing is made."""
    done = CliRunner().invoke(cli, ["cluster", "up"])
    assert done.exit_code == 2
    assert "HEED_DATABASE_URL" in done.stderr
    assert not data_dir.exists()


class FakeClient:
    """A client of a heed with two engines."""

    async def __aenter__(self) -> "FakeClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        """Nothing is open."""

    async def ready(self) -> dict[str, Any]:
        """As /readyz says it."""
        return {"parts": {"storage": "ok", "engine-2": "down: starting", "engine-1": "ok"}}

    async def metrics(self) -> str:
        """As /metrics says it."""
        metrics = Metrics()
        metrics.see_engines({"engine-1": EngineLoad(31, 2, 3, 4, 5, 6, 7)})
        return metrics.render().decode()


async def test_the_status_names_each_engine_and_what_it_does() -> None:
    """Also one that does not answer; nothing is known of what that does."""
    written = io.StringIO()
    Console(file=written, width=120).print(await cluster._status(FakeClient))  # type: ignore[arg-type]
    assert [line.split() for line in written.getvalue().splitlines()[1:]] == [
        ["engine-1", "ok", "31", "2", "3", "4", "5", "6", "7"],
        ["engine-2", "down:", "starting"],
    ]


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
