"""One life of vLLM: the calls into it, and how its death is noticed.

Invariants: one call into the worker at a time, because queued calls run back to back without a decode step between; a
call into an engine that has died, or that does not answer in time, ends with EngineRestarting.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from engine.errors import EngineRestarting
from engine.worker.watchdog import ProcessId, end_all

DYING_S = 10.0  # from the first sign of an engine's death until vLLM says so, on a busy machine
HEALTH_INTERVAL_S = 0.25  # how often the host checks that the engine still lives


@dataclass(eq=False)
class RunningEngine:
    """One life of vLLM, with what is known about it and lost with it."""

    llm: Any
    rpc_timeout_s: float
    on_death: "Callable[[RunningEngine], None]"  # called as soon as a call finds the engine dead or stuck
    children: list[ProcessId] = field(default_factory=list)
    vocab_size: int = 0
    loaded: set[int] = field(default_factory=set)  # lora_int_ids vLLM has been given
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def is_dead(self) -> bool:
        """Return True if vLLM has said that its engine is dead."""
        return bool(self.llm.errored)

    async def rpc(self, method: str, *args: Any) -> dict[str, Any]:
        """Call a `heed_*` method of the trainer and return its record. Raises EngineRestarting."""
        results = await self.alone(self.llm.collective_rpc, method, args=args)
        record: dict[str, Any] = results[0]
        return record

    async def alone(self, method: Callable[..., Coroutine[Any, Any, Any]], *args: Any, **kwargs: Any) -> Any:
        """Call into the worker while no other call runs, and return the result. Raises EngineRestarting."""
        async with self._lock:
            return await self.answer(method(*args, **kwargs))

    async def answer(self, call: Coroutine[Any, Any, Any]) -> Any:
        """Await a call into the engine and return its result. Raises EngineRestarting.

        vLLM leaves a call waiting whose engine dies meanwhile, so its death is looked for here.
        """
        answer = asyncio.ensure_future(call)
        with self.watched():
            try:
                async with asyncio.timeout(self.rpc_timeout_s):
                    while not (await asyncio.wait([answer], timeout=HEALTH_INTERVAL_S))[0]:
                        if self.is_dead:
                            raise self.llm.dead_error
                return await self._outcome(answer)
            finally:
                answer.cancel()

    async def _outcome(self, answer: "asyncio.Future[Any]") -> Any:
        """Return the result of a call. A dying engine fails it with any error before it says that it is dead."""
        from vllm.v1.engine.exceptions import EngineDeadError

        try:
            return answer.result()
        except EngineDeadError:
            raise
        except Exception as error:
            with suppress(TimeoutError):
                async with asyncio.timeout(DYING_S):
                    while not self.is_dead:  # noqa: ASYNC110 - vLLM has no event for it
                        await asyncio.sleep(HEALTH_INTERVAL_S)
            if self.is_dead:
                raise self.llm.dead_error from error
            raise

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Turn the engine's death, and a call that hangs, into EngineRestarting, and report it to `on_death`."""
        from vllm.v1.engine.exceptions import EngineDeadError

        try:
            yield
        except EngineDeadError as error:
            self.on_death(self)
            raise EngineRestarting("The model process died and is being restarted. Ask again.") from error
        except TimeoutError as error:
            end_all(self.children)
            self.on_death(self)
            raise EngineRestarting("The model process does not answer and is being restarted. Ask again.") from error
