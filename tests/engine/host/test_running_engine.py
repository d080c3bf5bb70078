"""engine.host.running_engine: calls into one life of vLLM, and its death."""

import asyncio
import signal
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from vllm.v1.engine.exceptions import EngineDeadError

from engine.errors import EngineRestarting
from engine.host import running_engine
from engine.host.running_engine import RunningEngine
from engine.worker.watchdog import ProcessId
from tests.patience import PATIENCE_S


async def failing(error: Exception) -> Any:
    """Fail as a call into vLLM does."""
    raise error


async def hanging() -> Any:
    """Never answer."""
    await asyncio.Event().wait()


class Dying:
    """A vLLM that has said that it is dead, or has not said it yet."""

    def __init__(self, errored: bool) -> None:
        self.errored = errored
        self.dead_error = EngineDeadError()

    def shutdown(self) -> None:
        """Stop nothing."""


@pytest.mark.parametrize("is_late", [False, True])
async def test_an_error_of_a_dying_engine_is_its_death(is_late: bool) -> None:
    """The error is EngineRestarting, even if vLLM fails the call before it says that it is dead."""
    llm, deaths = Dying(errored=not is_late), list[RunningEngine]()
    error = Exception("Call to collective_rpc method failed: cancelled")
    if is_late:
        asyncio.get_running_loop().call_later(0.05, setattr, llm, "errored", True)
    with pytest.raises(EngineRestarting):
        await RunningEngine(llm, PATIENCE_S, deaths.append).answer(failing(error))
    assert len(deaths) == 1


async def test_an_error_of_a_living_engine_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error of the call is raised once it is clear that the engine lives."""
    deaths = list[RunningEngine]()
    monkeypatch.setattr(running_engine, "DYING_S", 0.01)
    error = ValueError("no such method")
    with pytest.raises(ValueError, match="no such method"):
        await RunningEngine(Dying(errored=False), PATIENCE_S, deaths.append).answer(failing(error))
    assert deaths == []


async def test_a_call_that_outlives_its_engine_ends() -> None:
    """vLLM leaves such a call waiting, and its death is noticed beside it."""
    deaths = list[RunningEngine]()
    with pytest.raises(EngineRestarting, match="died"):
        await RunningEngine(Dying(errored=True), PATIENCE_S, deaths.append).answer(hanging())
    assert len(deaths) == 1


async def test_a_call_that_hangs_ends_the_engine() -> None:
    """An engine that does not answer in time counts as dead."""
    deaths = list[RunningEngine]()
    with pytest.raises(EngineRestarting, match="does not answer"):
        await RunningEngine(Dying(errored=False), 0.01, deaths.append).answer(hanging())
    assert len(deaths) == 1


async def test_one_call_into_the_worker_at_a_time() -> None:
    """A second call begins after the first has ended."""
    log = list[str]()

    async def call(name: str) -> str:
        log.append(f"{name} begins")
        await asyncio.sleep(0)
        log.append(f"{name} ends")
        return name

    running = RunningEngine(Dying(errored=False), PATIENCE_S, lambda _: None)
    assert await asyncio.gather(running.alone(call, "a"), running.alone(call, "b")) == ["a", "b"]
    assert log == ["a begins", "a ends", "b begins", "b ends"]


@pytest.fixture
def commands() -> Iterator[list["subprocess.Popen[bytes]"]]:
    """Two processes in the place of worker and EngineCore."""
    started = [subprocess.Popen(["sleep", "600"]) for _ in range(2)]
    yield started
    for command in started:
        command.kill()
        command.wait()


async def test_an_engine_whose_worker_ends_is_dead_before_vllm_says_so(
    commands: list["subprocess.Popen[bytes]"],
) -> None:
    """A lost process is found by looking at them; what is left of the engine is ended, so that vLLM notices, too."""
    worker, core = (ProcessId.of(command.pid) for command in commands)
    assert worker is not None
    assert core is not None
    llm = Dying(errored=False)
    running = RunningEngine(llm, PATIENCE_S, lambda _: None, [worker, core])
    assert not running.has_ended()
    commands[0].kill()
    commands[0].wait()
    assert running.has_ended()
    assert running.is_dead
    asyncio.get_running_loop().call_later(0.05, setattr, llm, "errored", True)
    await running.stop()
    assert commands[1].wait() == -signal.SIGKILL
    assert llm.errored
