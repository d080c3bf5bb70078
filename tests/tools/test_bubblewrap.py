"""Finding bubblewrap for the tests of the agent's sandbox."""

from pathlib import Path

import pytest

from tests.tools.commands import make_command
from tools import bubblewrap


def test_what_is_there_is_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing is installed and nothing said."""
    monkeypatch.setenv("PATH", str(tmp_path))
    make_command(tmp_path, "bwrap", "exit 0")
    bubblewrap.main()


def test_without_it_the_package_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without apt-get either, the program says what to install and ends with 2."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit) as ended:
        bubblewrap.main()
    assert ended.value.code == 2
    assert "apt install bubblewrap" in capsys.readouterr().err
