"""One life of vLLM: the calls into it, and how its death is noticed.

Invariants: one call into the worker at a time, because queued calls run back to back without a decode step between; a
call into an engine that has died, or that does not answer in time, ends with EngineRestarting.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from engine.errors import EngineRestarting, RequestRefused
from engine.worker.watchdog import ProcessId, end_all

logger = logging.getLogger(__name__)

STOP_TIMEOUT_S = 10.0  # vLLM's children get this long before they are killed
DYING_S = 10.0  # from the first sign of an engine's death until vLLM says so, on a busy machine
MAX_REASON_CHARS = 300  # of vLLM's own words
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
    _has_lost_child: bool = False
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def is_dead(self) -> bool:
        """Return True if vLLM has said that its engine is dead, or a process of it was found to have ended."""
        return bool(self.llm.errored) or self._has_lost_child

    def has_ended(self) -> bool:
        """Look if every process of the engine still runs: vLLM takes seconds to say so if only its worker has ended."""
        self._has_lost_child = self._has_lost_child or not all(child.is_alive() for child in self.children)
        return self.is_dead

    async def stop(self) -> None:
        """Stop vLLM and its children; the streams in flight of a dead engine are told before."""
        if self.has_ended():
            end_all(self.children)
            with suppress(TimeoutError):
                await self._noticed(lambda: bool(self.llm.errored))
        try:
            async with asyncio.timeout(STOP_TIMEOUT_S):
                await asyncio.to_thread(self.llm.shutdown)
        except TimeoutError:
            logger.warning("vLLM did not stop in %s s", STOP_TIMEOUT_S)
        self.llm.shutdown = lambda: None  # its __del__ would call it again, when the interpreter is half gone
        await asyncio.to_thread(end_all, self.children)

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
                await self._noticed(self.has_ended)
            if self.is_dead:
                raise self.llm.dead_error from error
            raise

    async def _noticed(self, is_so: Callable[[], bool]) -> None:
        """Wait until a death shows, for a time. Raises TimeoutError."""
        async with asyncio.timeout(DYING_S):
            while not is_so():  # noqa: ASYNC110 - vLLM has no event for it
                await asyncio.sleep(HEALTH_INTERVAL_S)

    @contextmanager
    def watched(self, form_field: str | None = None) -> Iterator[None]:
        """Turn the engine's death, and a call that hangs, into EngineRestarting, and report it to `on_death`.

        A request that vLLM refuses is RequestRefused, by the field that vLLM names, else by `form_field`.
        """
        from vllm.exceptions import VLLMClientError
        from vllm.v1.engine.exceptions import EngineDeadError

        try:
            yield
        except EngineDeadError as error:
            self.on_death(self)
            raise EngineRestarting("The model process died and is being restarted. Ask again.") from error
        except VLLMClientError as error:
            reason = str(error).partition("\n")[0][:MAX_REASON_CHARS].rstrip(".")
            field = getattr(error, "parameter", None) or form_field
            raise RequestRefused(f"The model cannot answer this request: {reason}.", field) from error
        except TimeoutError as error:
            end_all(self.children)
            self.on_death(self)
            raise EngineRestarting("The model process does not answer and is being restarted. Ask again.") from error
