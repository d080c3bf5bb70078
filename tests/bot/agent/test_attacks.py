"""A hundred attacks on the machine behind an agent's sandbox: nothing outside is read, changed, reached or left."""

import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from bot.agent.sandbox import Bounds, Sandbox
from bot.agent.toolbox import Toolbox
from bot.agent.tools import read_call
from tests.bot.agent.attacks import Attack, drawn, written
from tests.bot.agent.workspaces import USER
from tests.patience import PATIENCE_S, until

SECRET = "what stands outside of the sandbox"
BOUNDS = Bounds(seconds=5.0, processes=32)
DRAWN = 60


@dataclass
class Outside:
    """What must stay as it is, and what has come to it."""

    canary: Path
    port: int
    reached: list[str] = field(default_factory=list)

    def state(self) -> tuple[object, ...]:
        """Everything that an attack could have changed."""
        stat, folder = self.canary.stat(), self.canary.parent.stat()
        return self.canary.read_text(), stat.st_mode, stat.st_mtime_ns, stat.st_nlink, folder.st_mtime_ns


@contextmanager
def listening(outside: Outside) -> Iterator[None]:
    """Note every connection to the port, and to a socket without a file."""
    unnamed = socket.socket(socket.AF_UNIX)
    unnamed.bind("\0heed-canary")
    unnamed.listen()
    server = socket.create_server(("127.0.0.1", 0))
    outside.port = server.getsockname()[1]
    for kind, listener in (("unnamed", unnamed), ("port", server)):
        threading.Thread(target=_accept, args=(listener, kind, outside), daemon=True).start()
    try:
        yield
    finally:
        for listener in (unnamed, server):
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()


def _accept(listener: socket.socket, kind: str, outside: Outside) -> None:
    while True:
        try:
            listener.accept()
        except OSError:
            return
        outside.reached.append(kind)


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outside]:
    """A file that every account may read and write, two sockets, and a secret in the environment."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEED_HTTP_KEY", SECRET)
        folder = Path("/var/tmp") / f"heed-canary-{os.getpid()}"
        folder.mkdir(mode=0o777)
        folder.chmod(0o777)
        canary = folder / "canary.txt"
        canary.write_text(SECRET)
        canary.chmod(0o666)
        found = Outside(canary, 0)
        with listening(found):
            yield found
        canary.unlink()
        folder.rmdir()


def test_the_file_can_be_reached_without_a_sandbox(outside: Outside) -> None:
    """So that the attacks could succeed: an account may read and write it, and connect."""
    assert outside.canary.read_text() == SECRET
    assert outside.canary.stat().st_mode & 0o777 == 0o666
    socket.create_connection(("127.0.0.1", outside.port)).close()
    deadline_s = time.monotonic() + PATIENCE_S
    while not outside.reached and time.monotonic() < deadline_s:
        time.sleep(0.01)
    assert outside.reached == ["port"]
    outside.reached.clear()


@pytest.mark.parametrize("attack", [*written(), *drawn(DRAWN)], ids=lambda attack: attack.name)
async def test_it_has_no_effect_outside(sandbox: Sandbox, outside: Outside, attack: Attack) -> None:
    """The file is as it was and its words are unknown, nobody has called, no process is left, and this one runs."""
    attack = attack.on(
        {"canary": outside.canary, "folder": outside.canary.parent, "port": outside.port, "pid": os.getpid()}
    )
    before = outside.state()
    tools = Toolbox(Sandbox(sandbox.folder, USER, BOUNDS))
    await tools.run(read_call("bash", json.dumps({"command": attack.before or "true"})))
    call = read_call(attack.tool, attack.arguments)
    shown, result = await tools.preview(call), await tools.run(call)
    assert outside.state() == before
    assert SECRET not in shown.output + result.output + result.feedback
    assert outside.reached == []
    await until(lambda: not left_behind())  # a killed process is gone in its own time


def test_there_are_a_hundred() -> None:
    """No two alike."""
    attacks = [*written(), *drawn(DRAWN)]
    assert len({(attack.tool, attack.arguments, attack.before) for attack in attacks}) >= 100
    assert len(written()) >= 40


def left_behind() -> list[int]:
    """The processes of attacks that still run."""
    found = psutil.process_iter(["cmdline"])
    return [process.pid for process in found if (process.info["cmdline"] or [""])[-1] == "4717"]
