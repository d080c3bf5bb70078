"""engine.cluster.remote_engine: which engine does what is asked of a gateway."""

import asyncio
import inspect
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from engine.cluster import fleet as fleet_module
from engine.cluster import remote_engine
from engine.cluster.fleet import Fleet
from engine.cluster.remote_engine import MOST_AT_ONE, RemoteEngine, people_waiting
from engine.config import ConsolidationConfig, EngineConfig, LearnConfig
from engine.engine import Engine
from engine.errors import EngineGone, EngineRestarting, NothingToUndo
from engine.requests import Delta, EngineLoad, GenerateRequest
from storage import leases
from storage.database import Database, Session
from storage.errors import LeaseHeld, StorageError
from storage.kinds import FeedbackKind, FeedbackStatus
from storage.learning import feedback
from storage.tables import Feedback
from tests.engine import rows
from tests.engine.cluster.test_fleet import IDENTITY, FakeHandle, fleet_of
from tests.patience import PATIENCE_S

REQUEST = GenerateRequest("ana", [{"role": "user", "content": "Hello."}])
SAID = Delta("Hello", [1], [-0.5])


@dataclass
class Gateway:
    """A gateway of two engines; `first` is the first one of ana."""

    engine: RemoteEngine
    fleet: Fleet
    first: FakeHandle
    second: FakeHandle
    names: list[str]


@pytest.fixture
async def gateway(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Gateway]:
    """It looks for engines once, and asks anew at once."""
    monkeypatch.setattr(remote_engine, "PAUSE_S", 0.0)
    monkeypatch.setattr(remote_engine, "MARGIN_S", PATIENCE_S)
    monkeypatch.setattr(fleet_module, "LOOK_EVERY_S", 12 * PATIENCE_S)
    handles = {"one": FakeHandle(), "two": FakeHandle()}
    fleet = await fleet_of(**handles)
    names = [known.name for known in fleet.ranked("ana")]
    engine = RemoteEngine(EngineConfig("m", Path()), cast(Database, None), fleet, lease_s=0.5)
    await engine.start()
    yield Gateway(engine, fleet, handles[names[0]], handles[names[1]], names)
    await engine.stop()


async def answer(engine: Engine) -> list[Delta]:
    """All of an answer to ana."""
    async with aclosing(engine.generate(REQUEST)) as deltas:
        return [delta async for delta in deltas]


def test_every_call_of_an_engine_is_made_at_one_of_the_cluster() -> None:
    """But for those which only read rows, or nothing."""
    here = {"teacher_view"}
    calls = {name for name in vars(Engine) if not name.startswith("_")} - here
    assert calls <= set(vars(RemoteEngine))
    for name in calls:
        own, wanted = vars(RemoteEngine)[name], vars(Engine)[name]
        if callable(wanted):
            assert inspect.signature(own).parameters.keys() == inspect.signature(wanted).parameters.keys(), name


async def test_a_question_goes_to_the_persons_first_engine(gateway: Gateway) -> None:
    """The other one hears nothing of it."""
    gateway.first.answers = [SAID, SAID]
    assert await answer(gateway.engine) == [SAID, SAID]
    assert gateway.second.asked == []


async def test_a_question_goes_on_to_the_next_engine_where_the_first_is_gone(gateway: Gateway) -> None:
    """Nobody sees an error, and the one that is gone is asked no more."""
    gateway.first.answers, gateway.second.answers = [EngineGone("it ended")], [SAID]
    assert await answer(gateway.engine) == [SAID]
    assert gateway.fleet.named(gateway.names[0]) is None


async def test_someone_with_many_answers_at_once_is_answered_by_further_engines(gateway: Gateway) -> None:
    """The first ones are the first engine's, and so is the next once those have ended."""
    streams = [gateway.engine.generate(REQUEST) for _ in range(MOST_AT_ONE + 1)]
    for number, stream in enumerate(streams):
        (gateway.first if number < MOST_AT_ONE else gateway.second).answers = [SAID, SAID]
        assert await anext(stream) == SAID
    assert (len(gateway.first.asked), len(gateway.second.asked)) == (MOST_AT_ONE, 1)
    for stream in streams:
        await stream.aclose()
    gateway.first.answers = [SAID]
    assert await answer(gateway.engine) == [SAID]
    assert (len(gateway.first.asked), len(gateway.second.asked)) == (MOST_AT_ONE + 1, 1)


async def test_an_adapter_is_made_ready_where_its_person_is_answered(gateway: Gateway) -> None:
    """Or at the next engine, where that one is gone."""
    gateway.first.answers, gateway.second.answers = [None, EngineGone("it ended")], [None]
    await gateway.engine.prepare("ana")
    assert (gateway.first.asked, gateway.second.asked) == ([("prepare", ("ana",))], [])
    await gateway.engine.prepare("ana")
    assert gateway.second.asked == [("prepare", ("ana",))]


async def test_each_engine_says_what_it_does(gateway: Gateway) -> None:
    """What it said at the last look; one that is gone says nothing."""
    busy = EngineLoad(num_people=2, num_lessons=1)
    gateway.first.now = replace(gateway.first.now, load=busy)
    gateway.second.is_silent = True
    await gateway.fleet.look()
    assert gateway.engine.loads() == {gateway.names[0]: busy}


async def test_an_answer_that_has_begun_is_not_begun_again(gateway: Gateway) -> None:
    """What was said cannot be taken back: the caller asks again."""
    gateway.first.answers, gateway.second.answers = [SAID, EngineGone("it ended")], [SAID]
    with pytest.raises(EngineRestarting):
        await answer(gateway.engine)
    assert gateway.second.asked == []


async def test_a_lesson_goes_to_the_holder_of_the_lease(gateway: Gateway) -> None:
    """Wherever that is; the first engine says who has it."""
    gateway.first.answers, gateway.second.answers = [LeaseHeld("held", f"{gateway.names[1]}/x")], [3]
    assert await gateway.engine.rollback("ana", 3) == 3
    assert gateway.second.asked == [("rollback", ("ana", 3))]


async def test_a_call_waits_for_the_end_of_a_lease(gateway: Gateway) -> None:
    """The holder is gone: the first engine is asked until it may."""
    gone = LeaseHeld("held", "three/x")
    gateway.first.answers = [gone, gone, 3]
    assert await gateway.engine.rollback("ana", 3) == 3
    assert len(gateway.first.asked) == 3


async def test_a_lease_that_never_ends_is_said(gateway: Gateway) -> None:
    """As something to try again."""
    gateway.engine._patience_s = 1.0
    gateway.first.answers = [LeaseHeld("held", "three/x") for _ in range(100_000)]
    with pytest.raises(EngineRestarting, match="no engine has this person"):
        await gateway.engine.rollback("ana", 3)


async def test_an_engine_that_goes_during_a_lesson_is_left_for_the_next(gateway: Gateway) -> None:
    """The next one takes the person over."""
    gateway.first.answers, gateway.second.answers = [EngineGone("it ended")], [3]
    assert await gateway.engine.rollback("ana", 3) == 3


async def test_what_an_engine_refuses_is_refused(gateway: Gateway) -> None:
    """Its own error, and no other engine is tried."""
    gateway.first.answers = [NothingToUndo("nothing")]
    with pytest.raises(NothingToUndo):
        await gateway.engine.undo("ana")
    assert gateway.second.asked == []


async def test_a_call_to_a_silent_engine_ends_when_it_is_given_up(gateway: Gateway) -> None:
    """However long its machine keeps the connection."""
    never: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    async def silent(_method: str, *_arguments: Any) -> Any:
        return await never

    gateway.first.call = silent  # type: ignore[method-assign]
    gateway.second.answers = [3]
    asking = asyncio.create_task(gateway.engine.rollback("ana", 3))
    await asyncio.sleep(0)
    gateway.fleet.give_up(gateway.names[0])
    assert await asyncio.wait_for(asking, 60) == 3


async def test_an_answer_of_a_silent_engine_is_the_next_engines(gateway: Gateway) -> None:
    """A stream of which nothing has come is given up, too."""
    never: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    async def silent(_request: GenerateRequest) -> AsyncIterator[Delta]:
        yield await never

    gateway.first.generate = silent  # type: ignore[assignment, method-assign]
    gateway.second.answers = [SAID]
    asking = asyncio.create_task(answer(gateway.engine))
    await asyncio.sleep(0)
    gateway.fleet.give_up(gateway.names[0])
    assert await asyncio.wait_for(asking, 60) == [SAID]


class WaitingPeople:
    """A database in which something waits for ana."""

    async def read(self, _work: Any) -> set[str]:
        """The one question that is asked."""
        return {"ana"}


async def test_what_waits_is_taken_up_once_the_lease_of_a_lost_engine_has_ended(gateway: Gateway) -> None:
    """A whole cluster was ended in the middle of lessons; nobody has to say anything."""
    gateway.engine._database = cast(Database, WaitingPeople())
    gateway.first.answers = [LeaseHeld("held", "three/x"), None]
    assert await gateway.engine.resume_pending() == 1
    await asyncio.gather(*gateway.engine._taking_up.values())
    assert gateway.first.asked == [("take_up", ("ana",))] * 2


async def test_who_is_left_behind_later_is_taken_up_too(monkeypatch: pytest.MonkeyPatch, gateway: Gateway) -> None:
    """An engine ends for good, and its people say nothing; while learning is paused they wait."""
    gateway.engine.config = replace(gateway.engine.config, sleep=ConsolidationConfig(look_every_s=0.05))
    found: list[set[str]] = [set(), {"ana"}, set()]
    looks = asyncio.Event()

    async def read(_work: Any) -> set[str]:
        if len(found) == 1:
            looks.set()
        return found.pop(0) if len(found) > 1 else found[0]

    gateway.engine._database = cast(Database, SimpleNamespace(read=read))
    gateway.first.answers, gateway.second.answers = [None, None], [None, None]
    await gateway.engine.pause_consolidation(is_paused=True)
    assert await gateway.engine.resume_pending() == 0
    await asyncio.sleep(0.2)
    assert len(found) == 2
    await gateway.engine.pause_consolidation(is_paused=False)
    await asyncio.wait_for(looks.wait(), 60)
    await asyncio.gather(*gateway.engine._taking_up.values())
    assert [asked for asked in gateway.first.asked if asked[0] == "take_up"] == [("take_up", ("ana",))]


async def test_whose_consolidation_waits_is_left_to_the_engine_that_has_them(tmp_path: Path) -> None:
    """One whom nobody has is taken up for it, and everybody whose lessons wait."""
    config = ConsolidationConfig(min_new=1)

    def said(s: Session, user_id: str, text: str) -> Feedback:
        return feedback.add(s, Feedback(user_id=user_id, kind=FeedbackKind.NOTE, text=text, idempotency_key=text))[0]

    async with rows.opened(tmp_path) as database:
        ana, ben = await database.write(lambda s: (rows.person(s), rows.person(s, "ben")))
        for user_id in (ana, ben):
            row = await database.write(lambda s, user_id=user_id: said(s, user_id, user_id))  # type: ignore[misc]
            await database.write(lambda s, row=row: feedback.set_status(s, row.id, FeedbackStatus.LEARNED))  # type: ignore[misc]
        assert await database.read(lambda s: people_waiting(s, config)) == {ana, ben}
        await database.write(lambda s: leases.take(s, f"person/{ana}", "engine-1", 60.0, ana))
        assert await database.read(lambda s: people_waiting(s, config)) == {ben}
        assert await database.read(lambda s: people_waiting(s, replace(config, is_nightly=False))) == set()
        await database.write(lambda s: said(s, ana, "long"))
        assert await database.read(lambda s: people_waiting(s, config)) == {ana, ben}


async def test_what_cannot_be_taken_up_is_written_down(gateway: Gateway, caplog: pytest.LogCaptureFixture) -> None:
    """Their next lesson takes it up."""
    gateway.engine._database = cast(Database, WaitingPeople())
    gateway.first.answers = [StorageError("the database is away")]
    assert await gateway.engine.resume_pending() == 1
    await asyncio.gather(*gateway.engine._taking_up.values())
    assert "are not taken up" in caplog.text


async def test_a_pause_reaches_every_engine(gateway: Gateway) -> None:
    """One that does not answer keeps the others from nothing."""
    gateway.first.answers, gateway.second.answers = [EngineGone("it ended")], [None]
    await gateway.engine.pause_consolidation(is_paused=True)
    assert gateway.second.asked == [("pause_consolidation", (True,))]


async def test_an_engine_that_comes_back_is_told_of_the_pause(gateway: Gateway) -> None:
    """Before anything is asked of it; without a pause there is nothing to tell."""
    gateway.second.answers = [None]
    await gateway.engine.pause_consolidation(is_paused=True)
    gateway.fleet.give_up(gateway.names[0])
    gateway.first.asked.clear()
    gateway.first.answers = [None]
    await gateway.fleet.look()
    assert gateway.first.asked == [("pause_consolidation", (True,))]
    assert gateway.fleet.named(gateway.names[0]) is not None


async def test_a_gateway_says_which_engines_it_has(gateway: Gateway) -> None:
    """And what an engine is that is not asked."""
    gateway.fleet.problems["three"] = "starting"
    assert gateway.engine.health() == {"one": "ok", "two": "ok", "three": "down: starting"}
    assert gateway.engine.is_ready
    for name in ("one", "two"):
        gateway.fleet.give_up(name)
    gateway.fleet.problems.clear()
    assert gateway.engine.health() == {"engines": "down: none is there"}
    assert not gateway.engine.is_ready


async def test_a_gateway_learns_with_the_settings_of_its_engines() -> None:
    """Those of the model's calibration, which it has not itself."""
    calibrated = EngineConfig("m", Path("/elsewhere"), learn=LearnConfig(learning_rate=0.5), is_calibrated=True)
    fleet = await fleet_of(one=FakeHandle(identity=replace(IDENTITY, config=calibrated)))
    engine = RemoteEngine(EngineConfig("m", Path("/here")), cast(Database, None), fleet)
    assert (engine.sampling, engine.learning) == (IDENTITY.sampling, IDENTITY.learning)
    await engine.start()
    await engine.stop()
    assert (engine.config.learn.learning_rate, engine.config.is_calibrated) == (0.5, True)
    assert engine.config.data_dir == Path("/here")
    assert engine.skills is IDENTITY.skills


async def test_a_model_is_calibrated_on_one_machine(gateway: Gateway) -> None:
    """Said as an error, as is everything when no engine is there."""
    with pytest.raises(EngineRestarting, match="calibrate"):
        await gateway.engine.calibrate(lambda _line: None)
