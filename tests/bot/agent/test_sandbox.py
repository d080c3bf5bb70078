"""bot.agent.sandbox: what a program can reach, and what ends it. Every attack here is run, for real."""

import asyncio
import os
import signal
import socket
import subprocess
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from bot.agent import sandbox
from bot.agent.sandbox import AS_ROOT, CANNOT_RUN, NO_ACCOUNT, NOT_INSTALLED, Bounds, Sandbox, account
from bot.errors import SandboxUnavailable
from tests.bot.agent.workspaces import USER, put
from tests.clock import Clock
from tests.patience import PATIENCE_S, until

SHORT = Bounds(seconds=4.0)
MANY = """
import os

number = 0
try:
    while number < 200:
        if os.fork() == 0:
            os.execvp("sleep", ["sleep", "4720"])
        number += 1
except BlockingIOError:
    print(number)
"""


def bounded(sandbox: Sandbox, bounds: Bounds) -> Sandbox:
    """The same folder, with other bounds."""
    return Sandbox(sandbox.folder, USER, bounds)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of every sandbox."""
    made = Clock()
    monkeypatch.setattr("bot.agent.sandbox.time", made)
    return made


async def bash(sandbox: Sandbox, command: str) -> str:
    """What a command prints."""
    return (await sandbox.run(["bash", "-c", command])).output


async def test_a_program_works_in_the_folder(sandbox: Sandbox, folder: Path) -> None:
    """It reads, writes and ends with its own status; both streams come in order."""
    put(folder, "a.txt", "hello\n")
    found = await sandbox.run(["bash", "-c", "cat a.txt; echo wrong >&2; echo new > b.txt; exit 3"])
    assert (found.output, found.status, found.ended_by) == ("hello\nwrong\n", 3, "")
    assert (folder / "b.txt").read_text() == "new\n"


async def test_what_is_written_to_it_is_read(sandbox: Sandbox) -> None:
    """Standard input ends where the data ends."""
    assert (await sandbox.run(["wc", "-c"], b"x" * 100_000)).output.strip() == "100000"
    assert (await sandbox.run(["true"], b"x" * 1_000_000)).status == 0


async def test_nothing_of_this_machine_can_be_seen(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No other folder, no home, no variable, no process."""
    (tmp_path / "secret").write_text("heed's own")
    for path in (tmp_path / "secret", Path(__file__), Path("/root"), Path("/home"), Path("/etc/shadow"), Path("/var")):
        assert "No such file" in await bash(sandbox, f"ls {path}"), path
    monkeypatch.setenv("HEED_HTTP_KEY", "a secret of the environment")
    assert "a secret" not in await bash(sandbox, "env; cat /proc/*/environ")
    assert f"pid {os.getpid()}" not in await bash(sandbox, "for p in /proc/[0-9]*; do echo pid ${p#/proc/}; done")


async def test_the_system_cannot_be_written(sandbox: Sandbox) -> None:
    """Only the folder and a small /tmp can."""
    for path in ("/usr/x", "/etc/x", "/x", "/dev/x", "/proc/sys/kernel/core_pattern", "/bin/x"):
        assert await bash(sandbox, f"echo x > {path} && echo written") != "written\n", path
    assert "written" in await bash(sandbox, "echo x > /tmp/x && echo written")


async def test_there_is_no_network(sandbox: Sandbox) -> None:
    """A port of this machine is not there, neither is one of another."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        connect = "import socket; socket.create_connection(({!r}, {}), timeout=2)"
        for host, port in (("127.0.0.1", server.getsockname()[1]), ("192.0.2.1", 80)):
            found = await sandbox.run(["/usr/bin/env", "python3", "-c", connect.format(host, port)])
            bash_found = await bash(sandbox, f"timeout 2 bash -c 'echo > /dev/tcp/{host}/{port}' && echo connected")
            assert found.status != 0, host
            assert "connected" not in bash_found, host


async def test_heed_gets_no_signal(sandbox: Sandbox) -> None:
    """The process that started it has no number in there."""
    asked = f"kill -9 {os.getpid()}; kill -9 {os.getppid()}; kill -9 -1; echo still here"
    found = await sandbox.run(["bash", "-c", asked])
    assert "No such process" in found.output


async def test_a_link_leads_nowhere_else(sandbox: Sandbox, folder: Path, tmp_path: Path) -> None:
    """What it points at is looked for in the sandbox."""
    (tmp_path / "secret").write_text("heed's own")
    (folder / "link").symlink_to(tmp_path / "secret")
    assert "No such file" in await bash(sandbox, "cat link")
    open_to_all(tmp_path)
    assert "written" not in await bash(sandbox, "echo x > link && echo written")


async def test_no_rights_can_be_won(sandbox: Sandbox) -> None:
    """No user namespace of its own, no mount, no other account."""
    assert "uid=0" not in await bash(sandbox, "id")
    assert "won" not in await bash(sandbox, "unshare --user --map-root-user true && echo won")
    assert "won" not in await bash(sandbox, "mount -t tmpfs x /tmp && echo won")
    assert "won" not in await bash(sandbox, "su -c true && echo won")


async def test_time_runs_out(sandbox: Sandbox, clock: Clock) -> None:
    """What it has printed is kept; none of its processes is left, one in the background neither."""
    command = ["bash", "-c", "echo begun; sleep 4711 & exec sleep 4712"]
    running_out = asyncio.create_task(bounded(sandbox, SHORT).run(command))
    await until(lambda: clock.is_read and len(running("4711", "4712")) == 2)
    clock.now_s = 2 * SHORT.seconds
    found = await running_out
    assert (found.output, found.status, found.ended_by) == ("begun\n", None, "it took longer than 4 s")
    assert not running("4711", "4712")


async def test_one_that_ends_leaves_nothing_behind(sandbox: Sandbox) -> None:
    """A process in the background ends with it."""
    assert await bash(sandbox, "setsid sleep 4713 > /dev/null 2>&1 & echo done") == "done\n"
    assert not running("4713")


async def test_what_is_cancelled_is_ended(sandbox: Sandbox) -> None:
    """`/stop` and Ctrl+C leave no process."""
    task = asyncio.create_task(sandbox.run(["sleep", "4714"]))
    await until(lambda: running("4714"))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not running("4714")


async def test_what_is_cancelled_at_any_moment_leaves_nothing(sandbox: Sandbox) -> None:
    """Neither bubblewrap's own processes nor those of the command, from the first moment on."""
    for moment in range(30):
        task = asyncio.create_task(sandbox.run(["sleep", "4716"]))
        await asyncio.sleep(moment * 0.003)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        words = [process.info["cmdline"] or [] for process in psutil.process_iter(["cmdline"])]
        assert not [line for line in words if line[-1:] == ["4716"]]


async def test_what_is_cancelled_at_its_start_is_ended(
    sandbox: Sandbox, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So is bubblewrap's second process, which waits for the first, and one that asyncio has not told of yet."""
    starting = put(folder, "bwrap", "#!/bin/sh\nsleep 4732 & wait\n")
    starting.chmod(0o755)
    monkeypatch.setattr("bot.agent.sandbox.BUBBLEWRAP", str(starting))
    begin, is_told = asyncio.create_subprocess_exec, asyncio.Event()

    async def begin_slowly(*words: str, **options: Any) -> asyncio.subprocess.Process:
        process = await begin(*words, **options)
        await is_told.wait()
        return process

    monkeypatch.setattr(asyncio, "create_subprocess_exec", begin_slowly)
    for comes_early in (True, False):
        task = asyncio.create_task(sandbox.run(["true"]))
        if not comes_early:
            is_told.set()
        await until(lambda: running("4732"))
        task.cancel()
        await asyncio.sleep(0)
        is_told.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not running("4732")


async def test_a_fork_bomb_has_a_bound(sandbox: Sandbox) -> None:
    """So many processes and no more, and all of them end with the run."""
    small = replace(Bounds(), processes=20)
    begun = await bounded(sandbox, small).run(["/usr/bin/env", "python3", "-c", MANY])
    assert 10 < int(begun.output) < 20
    assert not running("4720")
    bomb = await bounded(sandbox, replace(small, seconds=2.0)).run(["bash", "-c", "f() { f | f & f; }; f 2>/dev/null"])
    assert bomb.ended_by


async def test_memory_has_a_bound(sandbox: Sandbox) -> None:
    """Of all processes together, /tmp included."""
    small = replace(Bounds(), memory_bytes=64 * 1024**2, temporary_bytes=8 * 1024**2)
    eat = "x = []\nwhile True: x.append(bytearray(1 << 20))"
    found = await bounded(sandbox, small).run(["/usr/bin/env", "python3", "-c", eat])
    assert found.ended_by == "it used more than 64 MiB of memory" or "MemoryError" in found.output
    full = await bounded(sandbox, small).run(
        ["bash", "-c", "head -c 99M /dev/zero > /tmp/x; head -c 99M /dev/zero > /dev/shm/x"]
    )
    assert full.output.count("No space left") == 2


async def test_the_disk_is_not_filled(sandbox: Sandbox) -> None:
    """One file has a bound, and so have many."""
    one = await bounded(sandbox, replace(Bounds(), file_bytes=1024**2)).run(
        ["bash", "-c", "head -c 9M /dev/zero > big; stat -c %s big"]
    )
    assert "1048576" in one.output
    small = replace(Bounds(), disk_bytes=8 * 1024**2, file_bytes=1024**2)
    fill = "i=0; while true; do i=$((i + 1)); head -c 1M /dev/zero > f$i; sync f$i; done"
    many = await bounded(sandbox, small).run(["bash", "-c", fill])
    assert many.ended_by == "it wrote more than 8 MiB"


async def test_endless_output_is_cut(sandbox: Sandbox, folder: Path, clock: Clock) -> None:
    """Its beginning and end are kept, and no more of heed's memory is used."""
    small = replace(SHORT, output_chars=100)
    command = ["bash", "-c", "echo first; yes | head -200; touch shown; yes"]
    running_out = asyncio.create_task(bounded(sandbox, small).run(command))
    await until(lambda: clock.is_read and (folder / "shown").exists())
    clock.now_s = 2 * small.seconds
    found = await running_out
    assert found.output.startswith("first\ny\n")
    assert "characters" in found.output
    assert len(found.output) < 200


async def test_it_ends_with_heed(sandbox: Sandbox) -> None:
    """A heed that is killed leaves no program of an agent behind."""
    child = os.fork()
    if not child:
        asyncio.run(sandbox.run(["sleep", "4715"]))
        os._exit(0)
    await until(lambda: running("4715"))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)  # noqa: ASYNC222  it is dead
    await until(lambda: not running("4715"))


async def test_a_folder_that_is_gone(sandbox: Sandbox, folder: Path) -> None:
    """The run fails and says so."""
    gone = Sandbox(folder / "gone", USER)
    found = await gone.run(["true"])
    assert found.status != 0
    assert "Can't find source path" in found.output


async def test_without_bubblewrap_the_package_is_named(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """And where it cannot run, what has to be allowed."""
    monkeypatch.setattr("bot.agent.sandbox.BUBBLEWRAP", str(tmp_path / "bwrap"))
    with pytest.raises(SandboxUnavailable, match=NOT_INSTALLED):
        await sandbox.run(["true"])
    monkeypatch.setattr("bot.agent.sandbox.BUBBLEWRAP", "false")
    with pytest.raises(SandboxUnavailable, match=CANNOT_RUN[:22]):
        await sandbox.try_out()


def test_nothing_runs_as_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """As root heed needs another account for an agent's programs; otherwise they are its own."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    for user, said in (("", AS_ROOT), ("root", AS_ROOT), ("no-such", NO_ACCOUNT.format("no-such"))):
        with pytest.raises(SandboxUnavailable) as refused:
            account(user)
        assert str(refused.value) == said
    assert account("nobody").groups == []
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert account("").uid is None


def open_to_all(folder: Path) -> None:
    """Let every account of this machine write there."""
    folder.chmod(0o777)
    for path in folder.iterdir():
        path.chmod(0o666)


def running(*words: str) -> list[int]:
    """The processes of this machine that sleep for so long."""
    found = [process for process in psutil.process_iter(["cmdline"]) if process.info["cmdline"]]
    return [p.pid for p in found if p.info["cmdline"][0] == "sleep" and p.info["cmdline"][-1] in words]


async def test_an_end_leaves_a_status_to_the_one_that_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A status can be fetched once: fetched beside the loop's own wait, a killed run read as an unknown 255."""
    fetched: list[int | None] = []
    monkeypatch.setattr(subprocess.Popen, "poll", lambda process: fetched.append(process.returncode))
    process = await asyncio.create_subprocess_exec(
        "sleep", "4723", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, start_new_session=True
    )
    async with asyncio.timeout(PATIENCE_S):
        await sandbox._end(process)
    assert process.returncode == -signal.SIGKILL
    assert not fetched


async def test_what_outlives_a_run_and_holds_its_pipes_keeps_nobody_waiting() -> None:
    """As a process may that had just begun; it ends with the run's pipe, which is closed after that."""
    process = await asyncio.create_subprocess_exec(
        "sh", "-c", "setsid sleep 4722 & echo $!; exec sleep 4722", stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT, start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None
    left = psutil.Process(int(await process.stdout.readline()))
    await until(lambda: os.getsid(left.pid) == left.pid)
    assert process.stdin is not None
    process.stdin.write(b"unread" * 100_000)
    try:
        async with asyncio.timeout(PATIENCE_S):
            await sandbox._end(process)
        assert process.returncode == -signal.SIGKILL
        assert left.is_running()
    finally:
        left.kill()
