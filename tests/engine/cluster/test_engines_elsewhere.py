"""engine.cluster.engines_elsewhere: a gateway says what is missing where it cannot find engines.

Real ones behind real Ray: tests/bot/cli/test_roles.py.
"""

from pathlib import Path
from typing import Any, cast

import pytest
import ray

from engine.cluster import ray_engines
from engine.cluster.engines_elsewhere import EnginesElsewhere
from engine.cluster.fleet import EngineHandle, Fleet
from engine.config import EngineConfig
from engine.errors import EngineStartError
from storage.database import Database
from tests.crash.echo import echo_server, port_of


async def none() -> dict[str, EngineHandle]:
    """There is no engine."""
    return {}


def gateway() -> EnginesElsewhere:
    """One that has not been started."""
    return EnginesElsewhere(EngineConfig("m", Path("unused")), cast(Database, None), Fleet(none, "1"))


async def test_a_cluster_has_one_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which the operator gives: one that is made here is no one else's."""
    monkeypatch.setattr(ray_engines, "IS_SECRET_GIVEN", False)
    with pytest.raises(EngineStartError, match="RAY_AUTH_TOKEN"):
        await gateway().start()


async def test_ray_has_to_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says how it is begun."""

    def init(*_: Any, **__: Any) -> None:
        raise ConnectionError("Could not find any running Ray instance.\nMore.")

    monkeypatch.setattr(ray_engines, "IS_SECRET_GIVEN", True)
    monkeypatch.setattr(ray, "init", init)
    with pytest.raises(EngineStartError, match="ray start --head") as refused:
        await gateway().start()
    assert "More" not in str(refused.value)


async def test_a_ray_that_does_not_let_heed_in_has_another_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray says only that it could not connect, whether nothing listens there or the secret is wrong."""

    def init(*_: Any, **__: Any) -> None:
        raise ConnectionError(f"Failed to connect to Ray cluster at 127.0.0.1:{port}")

    monkeypatch.setattr(ray_engines, "IS_SECRET_GIVEN", True)
    monkeypatch.setattr(ray, "init", init)
    server = await echo_server()
    port = port_of(server)
    async with server:
        with pytest.raises(EngineStartError, match=f"listens at 127.0.0.1:{port} .* same RAY_AUTH_TOKEN"):
            await gateway().start()
    with pytest.raises(EngineStartError, match="ray start --head"):
        await gateway().start()
