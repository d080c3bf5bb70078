"""engine.host.fork_server: a fork has the server's imports and heed's environment, and the server ends with heed."""

import asyncio
import os
import sys
from pathlib import Path

import psutil
import pytest

from engine.host import fork_server
from tests.engine.live import Live
from tests.patience import until

PROGRAM = """
import json, logging, os, sys, time
from pathlib import Path
from engine.host import fork_server, vllm_settings


def tell(path):
    logging.getLogger("vllm").warning("from a fork")
    module = sys.modules.get("tabnanny")
    with open(path, "w") as file:
        print(os.environ.get("HEED_NEW"), "HEED_OLD" in os.environ, module is not None, os.getppid(), file=file)


if __name__ == "__main__":
    fork_server.PRELOADED = "tabnanny"
    os.environ["HEED_OLD"] = "1"
    fork_server.begin()
    fork_server.begin()  # harmless to repeat
    del os.environ["HEED_OLD"]
    os.environ["HEED_NEW"] = "2"
    log_file = Path(sys.argv[1]).with_name("vllm.log")
    os.environ[vllm_settings.LOGGING] = str(log_file.with_name("logging"))
    log_file.with_name("logging").write_text(json.dumps(vllm_settings.logging_config("WARNING", log_file)))
    for _ in range(2):
        fork = fork_server._Forks().Process(target=tell, name="told", kwargs={"path": sys.argv[1]})
        fork.start()
        fork.join()
        print("tabnanny" in sys.modules, fork.exitcode, open(sys.argv[1]).read(), end="", flush=True)
        sys.stdin.readline()
    time.sleep(600)
"""


async def test_a_fork_has_the_servers_imports_and_our_environment(tmp_path: Path) -> None:
    """What was set since the server began is there, what was removed is not, and records go to heed's log.

    A server that died has another behind it. Killed, heed leaves no server behind.
    """
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    environment = os.environ | {"PYTHONPATH": str(Path.cwd())}
    heed = await asyncio.create_subprocess_exec(
        sys.executable, program, tmp_path / "told", stdin=-1, stdout=-1, env=environment
    )
    assert heed.stdin is not None
    assert heed.stdout is not None
    servers = []
    for _ in range(2):
        *told, server = (await heed.stdout.readline()).split()
        assert told == [b"False", b"0", b"2", b"False", b"True"]
        servers.append(psutil.Process(int(server)))
        assert servers[-1].ppid() == heed.pid
        if len(servers) == 1:
            servers[0].kill()
            await until(lambda: servers[0].status() == psutil.STATUS_ZOMBIE)
        heed.stdin.write(b"\n")
    assert servers[0] != servers[1]
    logged = (tmp_path / "vllm.log").read_text().splitlines()
    assert [line.partition("WARNING ")[2] for line in logged] == ["vllm: from a fork"] * 2
    heed.kill()
    await heed.wait()
    await until(lambda: not servers[1].is_running())


def test_with_a_gpu_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """vLLM starts its EngineCore there as it does by itself."""
    monkeypatch.setattr(fork_server, "has_gpu", lambda: True)
    monkeypatch.setattr("multiprocessing.forkserver.ensure_running", lambda: pytest.fail("a server was begun"))
    fork_server.begin()


@pytest.mark.asyncio(loop_scope="session")
async def test_engine_core_is_a_fork_of_the_server(live: Live) -> None:
    """Worker and EngineCore belong to heed; the server that is their ancestor stays when they are ended."""
    worker, core = live.host._running.children  # type: ignore[union-attr]
    server = psutil.Process(core.pid).parent()
    assert psutil.Process(worker.pid).ppid() == core.pid
    assert server is not None
    assert (server.ppid(), "forkserver" in "".join(server.cmdline())) == (os.getpid(), True)
