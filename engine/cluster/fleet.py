"""The engines that live, as a gateway sees them: who they are, whether they answer, and whose they are.

Invariants: an engine of another heed or of another model is never asked anything about a person; a call to an engine
that is gone ends at once, however silent it is.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from engine.cluster.placement import ranked
from engine.config import EngineConfig
from engine.errors import EngineError, EngineRestarting
from engine.requests import Delta, EngineLoad, GenerateRequest, ModelLearning, ModelSkills, Sampling

logger = logging.getLogger(__name__)

LOOK_EVERY_S = 1.0
ANSWER_WITHIN_S = 5.0  # an engine that does not say how it is for so long is gone; one that died is known at once


@dataclass(frozen=True)
class EngineIdentity:
    """An engine's; two of one cluster have the same heed and the same model."""

    heed: str  # the version
    base_model: str  # the fingerprint
    config: EngineConfig  # with the settings of its model's calibration
    sampling: Sampling
    skills: ModelSkills
    learning: ModelLearning
    machine: str
    pid: int


@dataclass(frozen=True)
class EngineState:
    """How an engine is just now."""

    is_ready: bool
    line: str  # "ok", or how far its start is, or why it has none
    has_failed: bool  # to start
    weight: float  # its share of the people; 0 while it is being emptied
    load: EngineLoad = field(default_factory=EngineLoad)


class EngineHandle(Protocol):
    """The way to one engine. Every call raises what the engine raised, and EngineGone."""

    async def identity(self) -> EngineIdentity:
        """Return who it is."""

    async def state(self) -> EngineState:
        """Return how it is."""

    async def call(self, method: str, *arguments: Any) -> Any:
        """Call a method of its ClusterEngine."""

    def generate(self, request: GenerateRequest) -> AsyncGenerator[Delta, None]:
        """Stream an answer; an end of the request's `stop` reaches the engine."""


@dataclass
class Known:
    """An engine that was seen. `gone` is done once it is given up."""

    name: str
    handle: EngineHandle
    identity: EngineIdentity
    state: EngineState
    gone: "asyncio.Future[None]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())


Discover = Callable[[], Awaitable[dict[str, EngineHandle]]]
Welcome = Callable[[Known], Awaitable[None]]


class Fleet:
    """The engines of one cluster. `heed` is the version of this gateway."""

    def __init__(self, discover: Discover, heed: str) -> None:
        self._discover = discover
        self._heed = heed
        self._known: dict[str, Known] = {}
        self.problems: dict[str, str] = {}  # by engine: why it is not asked
        self.identity: EngineIdentity | None = None  # of the first engine, which the others have to match
        self.met = asyncio.Event()  # set once an engine has been seen
        self.welcome: Welcome = _nothing  # tells an engine what it has to know before anything is asked of it

    async def watch(self) -> None:
        """Look every second, until cancelled."""
        while True:
            try:
                await self.look()
            except Exception:  # a named edge: one look that fails must not be the last one
                logger.warning("looking for engines failed", exc_info=True)
            await asyncio.sleep(LOOK_EVERY_S)

    async def look(self) -> None:
        """Ask every engine how it is; take in those that are new, give up those that do not answer."""
        there = await self._discover()
        for name in set(self._known) - set(there):
            self.give_up(name)
        await asyncio.gather(*(self._ask(name, handle) for name, handle in there.items()))

    def give_up(self, name: str) -> None:
        """Take an engine for gone: its calls end, and its people are asked about elsewhere."""
        known = self._known.pop(name, None)
        if known is not None and not known.gone.done():
            logger.warning("%s is gone", name)
            known.gone.set_result(None)

    def named(self, name: str) -> Known | None:
        """Return an engine that lives, None if it does not."""
        return self._known.get(name)

    def ranked(self, user_id: str) -> list[Known]:
        """Return the engines that answer, in the order in which a person is theirs. Raises EngineRestarting."""
        ready = {name: known.state.weight for name, known in self._known.items() if known.state.is_ready}
        found = [self._known[name] for name in ranked(user_id, ready)]
        if not found:
            raise EngineRestarting("no engine answers")
        return found

    def all(self) -> list[Known]:
        """Return the engines that live, by name."""
        return [self._known[name] for name in sorted(self._known)]

    async def _ask(self, name: str, handle: EngineHandle) -> None:
        try:
            async with asyncio.timeout(ANSWER_WITHIN_S):
                state = await handle.state()
                if name not in self._known:
                    await self._meet(name, handle, state)
        except (TimeoutError, EngineError) as error:
            self.problems[name] = f"does not answer: {error}" if str(error) else "does not answer"
            self.give_up(name)
        else:
            if name in self._known:
                self._known[name].state = state

    async def _meet(self, name: str, handle: EngineHandle, state: EngineState) -> None:
        if not state.is_ready:
            self.problems[name] = state.line
            return
        identity = await handle.identity()
        self.identity = self.identity or identity
        self.problems.pop(name, None)
        if identity.heed != self._heed:
            self.problems[name] = f"is heed {identity.heed}, and this gateway is {self._heed}"
        elif identity.base_model != self.identity.base_model:
            self.problems[name] = f"has another model ({identity.base_model}, not {self.identity.base_model})"
        else:
            known = Known(name, handle, identity, state)
            await self.welcome(known)
            self._known[name] = known
            self.met.set()


async def _nothing(_known: Known) -> None:
    """Tell an engine nothing."""
