"""bot.agent.inside.main: one call, read and answered as JSON."""

import io
import json
import sys
from pathlib import Path

import pytest

from bot.agent.inside.main import main, run

WHOLE = {"tool": "write", "arguments": {"path": "a", "content": "x\n"}, "is_preview": False, "shown": None}


def test_a_call_is_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On standard output, one object; a long output without its middle."""
    monkeypatch.setattr(
        sys, "stdin", io.StringIO(json.dumps(WHOLE | {"arguments": {"path": "a", "content": "x\n" * 20_000}}))
    )
    main(tmp_path)
    found = json.loads(capsys.readouterr().out)
    assert (found["success"], found["feedback"]) == (True, "")
    assert found["output"].startswith("--- /dev/null\n+++ b/a\n")
    assert len(found["output"]) < 17_000
    assert (tmp_path / "a").stat().st_size == 40_000


def test_a_long_preview_is_answered_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The line in its middle is what the person has to see."""
    content = "x\n" * 10_000 + "rm -rf /\n" + "x\n" * 10_000
    asked = WHOLE | {"arguments": {"path": "a", "content": content}, "is_preview": True}
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(asked)))
    main(tmp_path)
    found = json.loads(capsys.readouterr().out)
    assert (found["success"], "+rm -rf /" in found["output"]) == (True, True)


def test_a_preview_changes_nothing(tmp_path: Path) -> None:
    """It answers with the diff."""
    found = run(tmp_path, "write", {"path": "a", "content": "x\n"}, is_preview=True)
    assert found.output.endswith("+x\n")
    assert not (tmp_path / "a").exists()


def test_a_failure_is_an_answer(tmp_path: Path) -> None:
    """So is an error of the system."""
    assert not run(tmp_path, "read", {"path": "../a", "offset": 1, "limit": 5}, is_preview=False).success
    found = run(tmp_path / "gone", "glob", {"pattern": "*"}, is_preview=False)
    assert found.output in ("No file is called so.", "glob failed: No such file or directory.")
