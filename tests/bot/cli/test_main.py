"""bot.cli.main: exit codes, and one line where something is wrong."""

import asyncio
import json
import os
import socket
import subprocess
import sys
import types
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from bot.access import admin_password
from bot.cli.main import cli
from bot.events import Author, Place
from evals.ports import reserved_port
from storage.files.lock import DataDirectoryLock
from tests.bot.conftest import Heed, StartHeed
from tests.bot.test_app import model, settings
from tests.patience import PATIENCE_S

__all__ = ["model", "settings"]

ROOT = Path(__file__).resolve().parents[3]


async def heed_command(
    *arguments: str, cwd: Path, stdin: str = "", **variables: str
) -> subprocess.CompletedProcess[str]:
    """`heed ...` as a process of its own."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HEED_")}
    environment |= {"PYTHONPATH": str(ROOT), "COLUMNS": "200", **variables}
    return await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "bot", *arguments],
        input=stdin, capture_output=True, text=True, cwd=cwd, env=environment, timeout=PATIENCE_S, check=False,
    )  # fmt: skip


@pytest.fixture
async def port(heed: Heed) -> str:
    """The port of a running heed."""
    await heed.client.start_server()
    return str(heed.client.make_url("/").port)


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"HEED_HTTP_PORT": "abc"}, "HEED_HTTP_PORT"),
        ({"HEED_MODEL": "./no/such/model"}, "HEED_MODEL"),
    ],
)
async def test_what_cannot_start_says_so_in_one_line(tmp_path: Path, variables: dict[str, str], words: str) -> None:
    """Exit code 2, one line on stderr that names the setting, nothing left behind."""
    done = await heed_command("run", "--no-terminal", cwd=tmp_path, **variables)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("heed: ")
    assert words in done.stderr
    assert not any(Path(tmp_path).iterdir())  # noqa: ASYNC240  a test may wait for its own directory


async def test_a_port_in_use_is_one_line(tmp_path: Path) -> None:
    """Exit code 2 and the port's setting."""
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = await heed_command("run", cwd=tmp_path, HEED_HTTP_PORT=port, HEED_MODEL="model")
    told = f"Port {port} on 127.0.0.1 is in use. Stop what listens there, or set HEED_HTTP_PORT to another."
    assert (done.returncode, done.stderr) == (2, f"heed: {told}\n")
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["chat"],
        ["notes"],
        ["rollback", "0"],
        ["forget", "--yes"],
        ["export"],
        ["pair", "A"],
        ["consolidate"],
        ["rebuild"],
        ["pause"],
        ["resume"],
        ["adapters", "list"],
        ["adapters", "export", "1"],
        ["adapters", "import", __file__],
    ],
)
def test_without_a_running_heed_it_says_how(monkeypatch: pytest.MonkeyPatch, arguments: list[str]) -> None:
    """Every command that needs one exits with 2 and names `heed run`."""
    with reserved_port() as port:
        monkeypatch.setenv("HEED_HTTP_PORT", str(port))
        done = CliRunner().invoke(cli, arguments)
    assert (done.exit_code, len(done.stderr.splitlines())) == (2, 1)
    assert "`heed run`" in done.stderr


SCRIPT = """
import atexit, sys
from multiprocessing import spawn
from bot.cli.main import main
atexit.register(lambda: print(*sorted(spawn.get_preparation_data("a child")), sep="\\n"))
sys.argv = ["heed", "--version"]
main()
"""


def test_a_child_process_does_not_import_the_script(tmp_path: Path) -> None:
    """It is told that its parent is the module `bot`, which multiprocessing does not import again."""
    script = tmp_path / "heed"
    script.write_text(SCRIPT)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False, cwd=ROOT)
    told = done.stdout.splitlines()
    assert "init_main_from_name" in told
    assert "init_main_from_path" not in told


async def test_a_chat_works_through_a_pipe(port: str, tmp_path: Path) -> None:
    """Lines in, answers out: ask, correct, list what was learned, take it back."""
    lines = "bees\n/feedback too long\n/notes\n/undo\n/rollback 1\n/undo\nsay it like this: Buzz.\n/dance\n"
    done = await heed_command("chat", "--user", "ana", cwd=tmp_path, stdin=lines, HEED_HTTP_PORT=port)
    assert (done.returncode, done.stderr) == (0, "")
    for words in (
        "I could go on",
        "Learned: v1 in 1.2 s.",
        "1. too long",
        "Undone",
        "v1 answers now; it",
        "Buzz.",
        "/help lists",
    ):
        assert words in done.stdout


async def invoke(*arguments: str, typed: str = "") -> Result:
    """A command in a thread of its own, with an event loop of its own."""
    return await asyncio.to_thread(CliRunner().invoke, cli, arguments, input=typed)


async def test_the_small_commands_talk_to_the_running_heed(
    heed: Heed, port: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """notes, rollback, export and forget do what their calls do."""
    monkeypatch.setenv("HEED_HTTP_PORT", port)
    first = await heed.ask("bees", user="ana")
    await heed.correct(first["id"], "too long", user="ana")
    about = ("--user", "ana")
    assert "too long" in (await invoke("notes", *about)).stdout
    assert "The untrained model answers now." in (await invoke("rollback", "0", *about)).stdout
    assert json.loads((await invoke("export", *about)).stdout)["completions"][0]["id"] == first["id"]
    assert (await invoke("rollback", "7", *about)).exit_code == 2
    assert "from 1 new signal" in (await invoke("consolidate", "ana")).stdout
    assert "Nothing changed" in (await invoke("rebuild", "ana")).stdout
    assert (await invoke("forget", *about, typed="n\n")).exit_code == 1
    assert (await invoke("forget", "--yes", *about)).exit_code == 0
    assert (await heed.get("/v1/users/ana/history"))[1]["data"] == []


async def test_pause_and_resume_stop_and_start_learning(heed: Heed, port: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Through the running heed."""
    monkeypatch.setenv("HEED_HTTP_PORT", port)
    assert "paused" in (await invoke("pause")).stdout
    assert heed.core.lessons.is_paused
    assert "Learning goes on" in (await invoke("resume")).stdout
    assert not heed.core.lessons.is_paused


async def test_adapters_go_out_and_come_in(
    heed: Heed, port: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Listed with what taught them, written to a file that is not overwritten, and taken in for somebody else."""
    monkeypatch.setenv("HEED_HTTP_PORT", port)
    monkeypatch.chdir(tmp_path)
    first = await heed.ask("bees", user="ana")
    await heed.correct(first["id"], "too long", user="ana")
    assert 'v1        "too long"  <- answers now' in (await invoke("adapters", "list", "--user", "ana")).stdout
    written = await invoke("adapters", "export", "1", "--user", "ana")
    assert "v1 is in heed-adapter-v1.zip" in written.stdout
    again = await invoke("adapters", "export", "1", "--user", "ana")
    assert (again.exit_code, "is there already" in again.stderr) == (2, True)
    assert (
        await invoke("adapters", "import", "heed-adapter-v1.zip", "--user", "ben")
    ).stdout == "Version 1 answers now.\n"
    assert "imported: v1" in (await invoke("adapters", "list", "--user", "ben")).stdout
    assert (
        "what v1 was trained on is in b.zip"
        in (await invoke("adapters", "batch", "1", "--user", "ana", "-o", "b.zip")).stdout
    )
    for wrong in (
        ["export", "7"],
        ["batch", "7"],
        ["batch", "1", "-o", "b.zip"],
        ["import", "nowhere.zip"],
        ["import", __file__],
    ):
        refused = await invoke("adapters", *wrong, "--user", "ana")
        assert (refused.exit_code, len(refused.stderr.splitlines())) == (2, 1)
    assert sorted(path.name for path in tmp_path.glob("*.zip")) == ["b.zip", "heed-adapter-v1.zip"]  # noqa: ASYNC240  as above


async def test_pair_lets_in_who_was_shown_the_code(heed: Heed, port: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Through the running heed; a wrong code is one line and exit code 2."""
    monkeypatch.setenv("HEED_HTTP_PORT", port)
    eve, home = Author("telegram", "5", "Eve"), Place("telegram", "5")
    access = heed.core.access
    code = (await access.authorise(eve, home, "message")).notice.partition("Your code is ")[2][:8]
    wrong = await invoke("pair", "ABCDEFGH")
    assert (wrong.exit_code, "No one is waiting" in wrong.stderr) == (2, True)
    assert (await invoke("pair", code)).stdout == "Eve (telegram:5) is let in.\n"
    assert (await access.authorise(eve, home, "message")).is_allowed


def test_with_api_keys_pairing_takes_an_admins_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no key is an admin's, one line says what to set."""
    monkeypatch.setenv("HEED_HTTP_API_KEYS", '{"ana": "a long random text"}')
    refused = CliRunner().invoke(cli, ["pair", "ABCDEFGH"])
    assert (refused.exit_code, len(refused.stderr.splitlines())) == (2, 1)
    assert "HEED_ACCESS_ADMINS" in refused.stderr


async def test_an_admins_key_pairs(start_heed: StartHeed, monkeypatch: pytest.MonkeyPatch) -> None:
    """The key that the settings name is sent by itself."""
    keys = {"ana": "a long random text", "ben": "another random text"}
    heed = await start_heed(http={"api_keys": keys}, access={"admins": ("http:ben",)})
    await heed.client.start_server()
    monkeypatch.setenv("HEED_HTTP_PORT", str(heed.client.make_url("/").port))
    monkeypatch.setenv("HEED_HTTP_API_KEYS", json.dumps(keys))
    monkeypatch.setenv("HEED_ACCESS_ADMINS", '["http:ben"]')
    assert "No one is waiting" in (await invoke("pair", "ABCDEFGH")).stderr


async def test_forget_says_whose_key_it_is(start_heed: StartHeed, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a key the question names its holder, whom the call would erase, not the name that was left out."""
    heed = await start_heed(http={"api_keys": {"ana": "a long random text"}})
    await heed.client.start_server()
    monkeypatch.setenv("HEED_HTTP_PORT", str(heed.client.make_url("/").port))
    monkeypatch.setenv("HEED_HTTP_KEY", "a long random text")
    asked = await invoke("forget", typed="n\n")
    assert (asked.exit_code, "note and version of ana?" in asked.output) == (1, True)


async def test_keys_and_passwords_are_made_beside_a_running_heed(
    heed: Heed, port: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shown once and in force at once; commands use the key that HEED_HTTP_KEY names."""
    monkeypatch.setenv("HEED_HTTP_PORT", port)
    monkeypatch.setenv("HEED_DATA_DIR", str(heed.core.settings.data_dir))
    with DataDirectoryLock(heed.core.settings.data_dir):
        made = await invoke("keys", "add", "ana", "--messages-per-day", "3")
        token, about = made.stdout.splitlines()
        assert token.startswith("heed_")
        assert (await invoke("notes")).exit_code == 2
        monkeypatch.setenv("HEED_HTTP_KEY", token)
        assert "0 tokens saved" in (await invoke("notes")).stdout
        listed = (await invoke("keys", "list")).stdout
        assert "0 of 3 messages" in listed
        assert token not in listed
        wrong = await invoke("keys", "add", "ana", "--scopes", "fly")
        assert (wrong.exit_code, len(wrong.stderr.splitlines())) == (2, 1)
        assert "is revoked" in (await invoke("keys", "revoke", about.split()[0])).stdout
        assert (await invoke("keys", "revoke", "key-none")).exit_code == 2
        password = (await invoke("admin-password")).stdout.strip()
    assert await admin_password.current(heed.core.database) == admin_password.digest(password)


async def test_doctor_reports_a_running_heed(port: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its findings come as lines; bad ones make the exit code 1."""
    monkeypatch.setenv("HEED_HTTP_PORT", port)
    assert "running heed" in (await invoke("doctor")).stdout
    monkeypatch.setenv("HEED_MODEL", "nonsense")
    bad = await invoke("doctor")
    assert (bad.exit_code, "HEED_MODEL" in bad.stdout) == (1, True)


def test_eval_and_bench_hand_their_arguments_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """The exit code is theirs; where the package is not there, one line says so."""
    given: list[list[str]] = []
    package = types.ModuleType("evals.run")
    monkeypatch.setattr(package, "main", lambda words: given.append(list(words)) or 3, raising=False)
    monkeypatch.setitem(sys.modules, "evals.run", package)
    assert CliRunner().invoke(cli, ["eval", "--seeds", "2", "--help"]).exit_code == 3
    assert given == [["--seeds", "2", "--help"]]
    monkeypatch.setitem(sys.modules, "bench.run", None)
    missing = CliRunner().invoke(cli, ["bench"])
    assert (missing.exit_code, len(missing.stderr.splitlines())) == (2, 1)
