"""The engine as a gateway has it: the same calls, made at the engines of a cluster.

A question goes to the first engine of its person and, where that one is gone before it said anything, to the next. A
lesson, an undo and every other change of a person goes to the holder of their lease, which a first engine becomes;
where another one holds it, that one is asked, and where that one is gone, the call waits until the lease ends.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from engine.adapters.zip_format import AdapterPackage
from engine.cluster.cluster_engine import ClusterEngine
from engine.cluster.fleet import EngineIdentity, Fleet, Known
from engine.config import ConsolidationConfig, EngineConfig
from engine.engine import Engine, Progress
from engine.errors import EngineError, EngineGone, EngineRestarting
from engine.requests import (
    ConsolidationOutcome,
    Delta,
    EngineLoad,
    GenerateRequest,
    GenerateResult,
    LearnOutcome,
    LessonProgress,
    Likelihood,
    ModelLearning,
    ModelSkills,
    Sampling,
    UndoResult,
)
from storage import leases
from storage.database import Database, Session
from storage.errors import LeaseHeld, StorageError
from storage.learning import feedback, signals
from storage.lease_keeper import DURATION_S
from storage.tables import Feedback, Note

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")
Method = Callable[Concatenate[Any, P], Awaitable[T]]  # of an engine

MARGIN_S = 20.0  # beyond a lease's time: for which a call waits for somebody to do it
PAUSE_S = 0.2
MOST_AT_ONE = 8  # answers of one person at one engine, where there is another


class RemoteEngine(Engine):
    """Generation and learning for all people, by the engines of a fleet. Not one part of a local engine is built."""

    def __init__(self, config: EngineConfig, database: Database, fleet: Fleet, lease_s: float = DURATION_S) -> None:
        self.config = config
        self._database = database
        self.fleet = fleet
        self._patience_s = lease_s + MARGIN_S
        self._watching: list[asyncio.Task[None]] = []
        self._taking_up: dict[str, asyncio.Task[None]] = {}  # by person
        self._num_answers = Counter[str]()  # that are being written, by person
        self._is_paused = False
        fleet.welcome = self._welcome

    async def start(self, progress: Progress = lambda _line: None) -> None:
        """Look for engines, and return once one answers."""
        self._watching.append(asyncio.create_task(self.fleet.watch(), name="heed-fleet"))
        progress("waiting for an engine")
        await self.fleet.met.wait()
        found = self._identity.config
        self.config = replace(self.config, learn=found.learn, gate=found.gate, is_calibrated=found.is_calibrated)

    async def stop(self) -> None:
        """End the looking; the engines go on."""
        ending = [*self._watching, *self._taking_up.values()]
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, return_exceptions=True)

    async def calibrate(self, progress: Progress) -> Path:
        """Raise EngineRestarting: a model is calibrated on one machine."""
        raise EngineRestarting("calibrate the model on one machine, and start the engines with its file")

    async def settled(self) -> None:
        """Return when every engine has nothing to do."""
        await asyncio.gather(*(self._at(known, Engine.settled) for known in self.fleet.all()))

    async def resume_pending(self) -> int:
        """Have engines take up the people for whom something waits, now and from time to time; return how many."""
        self._watching.append(asyncio.create_task(self._look_after(), name="people nobody has"))
        return await self._take_up_all()

    async def _look_after(self) -> None:
        """Look for people whose engine is gone, and who do not come back by themselves, until cancelled."""
        while True:
            await asyncio.sleep(self.config.sleep.look_every_s)
            try:
                if not self._is_paused:
                    await self._take_up_all()
            except StorageError as error:  # a named edge: the next look finds them, too
                logger.warning("looking for people whom no engine has failed: %s", error)

    async def _take_up_all(self) -> int:
        """Begin to have people taken up whom no engine has, though lessons or a consolidation wait for them.

        Those whose engine is gone wait for the end of its lease meanwhile.
        """
        waiting = await self._database.read(lambda s: people_waiting(s, self.config.sleep))
        for user_id in waiting - self._taking_up.keys():
            self._taking_up[user_id] = asyncio.create_task(self._wait_to_take_up(user_id), name="waiting lessons")
            self._taking_up[user_id].add_done_callback(lambda _, user_id=user_id: self._taking_up.pop(user_id))  # type: ignore[misc]
        return len(waiting)

    async def _wait_to_take_up(self, user_id: str) -> None:
        try:
            await self._by_holder(user_id, ClusterEngine.take_up, user_id)
        except (EngineError, StorageError) as error:  # a named edge: their next lesson takes up the others
            logger.warning("a person's waiting lessons are not taken up: %s", error)

    # -- any engine ----------------------------------------------------------------------------------------------------

    async def generate(self, request: GenerateRequest) -> AsyncGenerator[Delta, None]:
        """See Engine. Raises EngineRestarting where the engine goes in the middle of an answer."""
        with self._answering(request.user_id) as engines:
            async with aclosing(self._first_of(engines, request)) as deltas:
                async for delta in deltas:
                    yield delta

    @contextmanager
    def _answering(self, user_id: str) -> Iterator[list[Known]]:
        """Provide the engines to ask in turn for an answer to a person.

        Someone who has many answers written at once is answered by further engines, too: any engine answers from the
        version that is active in the database, only changes are one engine's alone.
        """
        place = self._num_answers[user_id] // MOST_AT_ONE
        self._num_answers[user_id] += 1
        try:
            ranked = self.fleet.ranked(user_id)
            first = place % len(ranked)
            yield ranked[first:] + ranked[:first]
        finally:
            self._num_answers -= Counter([user_id])  # also forgets those who have none

    async def _first_of(self, engines: Sequence[Known], request: GenerateRequest) -> AsyncGenerator[Delta, None]:
        for known in engines:
            has_begun = False
            try:
                async with aclosing(self._stream(known, request)) as deltas:
                    async for delta in deltas:
                        has_begun = True
                        yield delta
            except EngineGone as error:
                self.fleet.give_up(known.name)
                if has_begun:
                    raise EngineRestarting("the engine that answered is gone") from error
            else:
                return
        raise EngineRestarting("no engine answers")

    async def prepare(self, user_id: str) -> None:
        """See Engine: at the one that will be asked."""
        await self._anywhere(user_id, Engine.prepare, user_id)

    async def score(self, request: GenerateRequest, answer: str) -> Likelihood:
        """See Engine."""
        return await self._anywhere(request.user_id, Engine.score, request, answer)

    async def adopt(self, request: GenerateRequest, text: str) -> GenerateResult:
        """See Engine."""
        return await self._anywhere(request.user_id, Engine.adopt, request, text)

    async def export_adapter(self, user_id: str, version: int) -> bytes:
        """See Engine."""
        return await self._anywhere(user_id, Engine.export_adapter, user_id, version)

    async def export_batch(self, user_id: str, version: int) -> bytes:
        """See Engine."""
        return await self._anywhere(user_id, Engine.export_batch, user_id, version)

    async def check_adapter(self, content: bytes) -> AdapterPackage:
        """See Engine."""
        return await self._anywhere("", Engine.check_adapter, content)

    async def prompt_notes(self, live: Sequence[Note], version: int) -> list[Note]:
        """See Engine."""
        return await self._anywhere("", Engine.prompt_notes, live, version)

    async def note_size(self, text: str) -> tuple[int, int]:
        """See Engine."""
        return await self._anywhere("", Engine.note_size, text)

    # -- the holder of a person's lease --------------------------------------------------------------------------------

    async def learn(self, feedback_id: str) -> LearnOutcome:
        """See Engine."""
        return await self._by_holder(await self._person_of(feedback_id), Engine.learn, feedback_id)

    async def cancel_lesson(self, feedback_id: str) -> LearnOutcome:
        """See Engine."""
        return await self._by_holder(await self._person_of(feedback_id), Engine.cancel_lesson, feedback_id)

    async def lesson_progress(self, feedback_id: str) -> LessonProgress | None:
        """See Engine; None, too, where another engine than the first one has the person."""
        first = self.fleet.ranked(await self._person_of(feedback_id))[0]
        return await self._at(first, Engine.lesson_progress, feedback_id)

    async def consolidate(self, user_id: str) -> ConsolidationOutcome:
        """See Engine."""
        return await self._by_holder(user_id, Engine.consolidate, user_id)

    async def rebuild(self, user_id: str) -> ConsolidationOutcome:
        """See Engine."""
        return await self._by_holder(user_id, Engine.rebuild, user_id)

    async def undo(self, user_id: str) -> UndoResult:
        """See Engine."""
        return await self._by_holder(user_id, Engine.undo, user_id)

    async def take_back(self, complaint: Feedback, version: int, reason: str) -> UndoResult | None:
        """See Engine."""
        return await self._by_holder(complaint.user_id, Engine.take_back, complaint, version, reason)

    async def rollback(self, user_id: str, version: int) -> int:
        """See Engine."""
        return await self._by_holder(user_id, Engine.rollback, user_id, version)

    async def delete_note(self, user_id: str, note_id: str) -> None:
        """See Engine."""
        await self._by_holder(user_id, Engine.delete_note, user_id, note_id)

    async def forget(self, user_id: str) -> None:
        """See Engine."""
        await self._by_holder(user_id, Engine.forget, user_id)

    async def unlearn(self, user_id: str) -> None:
        """See Engine."""
        await self._by_holder(user_id, Engine.unlearn, user_id)

    async def import_adapter(self, user_id: str, package: AdapterPackage) -> int:
        """See Engine."""
        return await self._by_holder(user_id, Engine.import_adapter, user_id, package)

    # -- state ---------------------------------------------------------------------------------------------------------

    async def pause_consolidation(self, is_paused: bool) -> None:
        """See Engine: every engine's, also of those that come later."""
        self._is_paused = is_paused
        everywhere = [self._at(known, Engine.pause_consolidation, is_paused) for known in self.fleet.all()]
        await asyncio.gather(*everywhere, return_exceptions=True)

    async def _welcome(self, known: Known) -> None:
        """Tell an engine that comes, or comes back, that learning is paused."""
        if self._is_paused:
            await self._at(known, Engine.pause_consolidation, True)

    @property
    def is_ready(self) -> bool:
        """True if an engine answers."""
        return any(known.state.is_ready for known in self.fleet.all())

    @property
    def sampling(self) -> Sampling:
        """See Engine."""
        return Sampling() if self.fleet.identity is None else self.fleet.identity.sampling

    @property
    def skills(self) -> ModelSkills:
        """See Engine."""
        return self._identity.skills

    @property
    def learning(self) -> ModelLearning:
        """See Engine."""
        return ModelLearning() if self.fleet.identity is None else self.fleet.identity.learning

    def health(self) -> dict[str, str]:
        """Engine -> "ok", "starting" or "down: why"."""
        parts = {known.name: "ok" for known in self.fleet.all()}
        parts |= {name: f"down: {reason}" for name, reason in self.fleet.problems.items() if name not in parts}
        return parts or {"engines": "down: none is there"}

    def loads(self) -> dict[str, EngineLoad]:
        """See Engine, of each engine that answers."""
        return {known.name: known.state.load for known in self.fleet.all()}

    # -- ways ----------------------------------------------------------------------------------------------------------

    @property
    def _identity(self) -> EngineIdentity:
        assert self.fleet.identity is not None, "no engine has answered yet"
        return self.fleet.identity

    async def _person_of(self, feedback_id: str) -> str:
        return (await self._database.read(lambda s: feedback.get(s, feedback_id))).user_id

    async def _anywhere(self, user_id: str, method: Method[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        """Call the first engine of a person, or the next where that one is gone."""
        for known in self.fleet.ranked(user_id):
            try:
                return await self._at(known, method, *arguments, **named)
            except EngineGone:
                self.fleet.give_up(known.name)
        raise EngineRestarting("no engine answers")

    async def _by_holder(self, user_id: str, method: Method[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        """Call the engine that holds a person's lease, which the first one takes if it is free.

        Waits for the end of the lease of an engine that is gone. Raises EngineRestarting where none does it in time.
        """
        deadline_s, holder = time.monotonic() + self._patience_s, ""
        while time.monotonic() < deadline_s:
            try:
                known = self.fleet.named(holder) or self.fleet.ranked(user_id)[0]
                return await self._at(known, method, *arguments, **named)
            except LeaseHeld as error:
                holder = error.owner.partition("/")[0]
            except EngineGone:
                self.fleet.give_up(known.name)
                holder = ""
            except EngineRestarting:
                holder = ""
            await asyncio.sleep(PAUSE_S)
        raise EngineRestarting("no engine has this person")

    async def _at(self, known: Known, method: Method[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        assert not named, "methods of an engine are called by position"
        return await _unless_gone(known, lambda: known.handle.call(method.__name__, *arguments))

    async def _stream(self, known: Known, request: GenerateRequest) -> AsyncGenerator[Delta, None]:
        async with aclosing(known.handle.generate(request)) as deltas:
            while True:
                try:
                    yield await _unless_gone(known, lambda: anext(deltas))
                except StopAsyncIteration:
                    return


def people_waiting(s: Session, config: ConsolidationConfig) -> set[str]:
    """Return the people whose lessons wait, and whose consolidation does although no engine has them."""
    asleep = signals.waiting(s, config.min_new) if config.is_nightly else []
    return {*feedback.people_waiting(s), *({person.user_id for person in asleep} - leases.people(s))}


async def _unless_gone(known: Known, call: Callable[[], Awaitable[T]]) -> T:
    """Return what a call to an engine does. Raises EngineGone as soon as the engine is given up."""
    doing = asyncio.ensure_future(call())
    either: set[asyncio.Future[Any]] = {doing, known.gone}
    try:
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not doing.done():
            raise EngineGone(f"{known.name} is gone")
        return doing.result()
    finally:
        doing.cancel()
        await asyncio.wait({doing})  # a stream that is still being read cannot be closed
