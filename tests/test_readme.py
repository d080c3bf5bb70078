"""README.md: its commands run, its links and packages exist, and it stays short."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.live_heed import LiveHeed
from tests.patience import PATIENCE_S

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
MAX_LINES = 180
MAX_WIDTH = 120
BLOCKS = re.findall(r"^```\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
PICTURE = "standing note"  # the block that draws how heed learns
PORT = "localhost:8080"
# Those that talk, measure for minutes or want a stranger: help only.
LONG = {"run", "chat", "agent", "mcp", "eval", "bench", "pair", "calibrate"}


def command_lines() -> list[str]:
    """Return every command of the fenced blocks, continuation lines joined and comments taken off."""
    joined = "".join(block for block in BLOCKS if PICTURE not in block).replace("\\\n", " ")
    return [line.split("  #")[0].strip() for line in joined.splitlines() if line.strip()]


def heed_commands() -> list[str]:
    """Return every `heed ...` command of the running text."""
    return sorted(set(re.findall(r"`(heed [^`]+)`", TEXT)))


def run(words: list[str], folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command in an empty folder, without this machine's settings."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HEED_")}
    environment |= {"PYTHONPATH": str(ROOT), "COLUMNS": "200", "HEED_DATA_DIR": str(folder / "data"), **variables}
    return subprocess.run(
        words, capture_output=True, text=True, cwd=folder, env=environment, timeout=PATIENCE_S, check=False
    )


def test_the_readme_is_short() -> None:
    """At most 180 lines of at most 120 characters; only a table's row may be longer."""
    lines = TEXT.splitlines()
    assert len(lines) <= MAX_LINES
    assert [line for line in lines if len(line) > MAX_WIDTH and not line.startswith("|")] == []


@pytest.mark.parametrize(
    "page", ["README.md", *(str(p.relative_to(ROOT)) for p in sorted((ROOT / "docs").glob("*.md")))]
)
def test_every_link_leads_somewhere(page: str) -> None:
    """Each relative link of the README and of docs/ names a file or folder of the repository."""
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", (ROOT / page).read_text(encoding="utf-8"))
    assert [link for link in links if not ((ROOT / page).parent / link).exists()] == []


def test_every_package_has_its_line() -> None:
    """The table of packages names every package of bot, engine and storage and none that is gone."""
    named = {name for name in re.findall(r"`((?:bot|engine|storage)/[a-z_]+)`", TEXT) if not name.endswith(".py")}
    packages = {
        str(path.parent.relative_to(ROOT))
        for top in ("bot", "engine", "storage")
        for path in (ROOT / top).glob("*/__init__.py")
    } - {"storage/migrations"}
    assert named == packages


def test_every_file_named_in_the_documents_exists() -> None:
    """A path such as `bot/core/gateway.py` in the README, docs/ or a decision (the log is history) names a file."""
    pages = [ROOT / "README.md", *(p for p in (ROOT / "docs").rglob("*.md") if p.name not in ("LOG.md", "MAP.md"))]
    named = {
        path
        for page in pages
        for path in re.findall(r"`((?:bot|engine|storage|evals|bench|tools|tests)/[\w/.]+\.py)`", page.read_text())
    }
    assert [path for path in sorted(named) if not (ROOT / path).is_file()] == []


@pytest.mark.parametrize("line", [line for line in command_lines() if line.startswith("make ")])
def test_every_make_target_exists(line: str) -> None:
    """`make -n` finds the target and what it needs."""
    assert (
        subprocess.run(["make", "-n", *shlex.split(line)[1:]], cwd=ROOT, capture_output=True, check=False).returncode
        == 0
    )


@pytest.mark.engine
def test_the_calls_work_as_written(live_heed: LiveHeed, tmp_path: Path) -> None:
    """The two curls, in their order, against a running heed: an answer, then a correction of it that is learned."""
    answer_id = ""
    for line in (line for line in command_lines() if line.startswith("curl ")):
        words = shlex.split(line.replace(PORT, live_heed.url.removeprefix("http://")).replace("<its id>", answer_id))
        reply = json.loads(run(words, tmp_path).stdout)
        answer_id = reply.get("id", answer_id)
    assert reply["status"] == "learned", reply
    assert reply["adapter_version"] >= 1  # other tests share this heed, and may have taught Ana before


@pytest.mark.parametrize("command", heed_commands())
def test_every_heed_command_works(command: str, tmp_path: Path) -> None:
    """Short ones run as written in an empty data directory; those that take minutes or a partner show their help."""
    words = shlex.split(command)[1:]
    shown = [words[0], "--help"] if words[0] in LONG else words
    done = run([sys.executable, "-m", "bot", *shown], tmp_path, HEED_HTTP_PORT="0")
    assert "Traceback" not in done.stderr
    assert done.returncode in (0, 2) if words[0] in ("doctor", "backup") else done.returncode == 0, done.stderr


def test_no_command_is_left_out() -> None:
    """Every line of the fenced blocks is a make target or a curl: others would not be run by this file."""
    assert [line for line in command_lines() if not line.startswith(("make ", "curl "))] == []
