"""Finding a browser for the browser tests."""

from pathlib import Path

import pytest

from tests.tools.commands import make_command
from tools import chromium


@pytest.fixture
def path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The only folder on PATH, empty."""
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def test_chromium_comes_before_chrome(path: Path) -> None:
    """Of several browsers the first in the list is taken."""
    make_command(path, "google-chrome", "echo Google Chrome 150")
    expected = make_command(path, "chromium", "echo Chromium 150")
    assert chromium.find() == str(expected)


def test_a_browser_that_does_not_run_is_passed_over(path: Path) -> None:
    """Ubuntu's chromium-browser may only say which snap to install; the next one is taken."""
    make_command(path, "chromium-browser", "echo 'requires the chromium snap' >&2; exit 1")
    expected = make_command(path, "google-chrome", "echo Google Chrome 150")
    assert chromium.find() == str(expected)


def test_without_a_browser_the_package_is_named(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a browser and without apt-get the program says what to install and ends with 2."""
    with pytest.raises(SystemExit) as ended:
        chromium.main()
    assert ended.value.code == 2
    assert "apt install chromium" in capsys.readouterr().err
