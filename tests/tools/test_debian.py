"""Installing a Debian package without asking anyone."""

import os
from pathlib import Path

import pytest

from tests.tools.commands import make_command
from tools import debian


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine where we are root and apt-get writes down what it is asked; returns that file."""
    log = tmp_path / "calls"
    make_command(tmp_path / "bin", "apt-get", f'echo "$@" >> {log}')
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    return log


def test_root_gets_the_package(calls: Path) -> None:
    """As root the lists are updated and the package is installed without recommendations."""
    assert debian.install("chromium")
    update, install = calls.read_text(encoding="utf-8").splitlines()
    assert update.endswith("update")
    assert install.endswith("install --yes --no-install-recommends chromium")


def test_nobody_else_does(calls: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without being root nothing is tried: no sudo, no question."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert not debian.install("chromium")
    assert not calls.exists()


def test_a_machine_without_apt_is_not_debian(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without apt-get on PATH the answer is no."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not debian.install("chromium")


def test_a_failing_apt_is_a_no(calls: Path, tmp_path: Path) -> None:
    """A failing apt-get (no network) is reported as not installed."""
    make_command(tmp_path / "bin", "apt-get", "exit 100")
    assert not debian.install("chromium")
