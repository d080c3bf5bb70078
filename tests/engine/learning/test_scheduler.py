"""engine.learning.scheduler: which update runs next, and what happens to one that fails."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from engine.errors import EngineRestarting, TrainerError
from engine.learning.scheduler import MAX_ATTEMPTS, TaskKind, UpdateScheduler
from engine.requests import LearnOutcome
from storage.errors import DatabaseLost, StorageFull


class Work:
    """Work for the scheduler, recorded in the order in which it is done.

    A lesson or task named in `gates` waits for its gate; one in `failures` raises the next error in its list.
    """

    def __init__(self) -> None:
        self.done: list[str] = []
        self.begun: list[str] = []
        self.cancelled: list[str] = []
        self.has_rest = False
        self._starts: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self.gates: dict[str, asyncio.Event] = {}
        self.failures: dict[str, list[Exception]] = {}

    async def prepare(self) -> None:
        """Record the preparation."""
        await self._do("prepare")

    async def learn(self, feedback_id: str) -> LearnOutcome:
        """One update."""
        await self._do(feedback_id)
        return LearnOutcome(feedback_id, "learned", 1)

    async def deepen(self) -> None:
        """Teach the rest of a lesson, if there is one."""
        if self.has_rest:
            self.has_rest = False
            await self._do("deepen")

    async def settle(self, user_id: str) -> None:
        """A task."""
        await self._do(f"settle {user_id}")

    async def rebuild(self, user_id: str) -> None:
        """Another task."""
        await self._do(f"rebuild {user_id}")

    async def consolidate(self, user_id: str) -> None:
        """The last task."""
        await self._do(f"consolidate {user_id}")

    async def calibrate(self, owner: str) -> None:
        """A task of no person."""
        await self._do(f"calibrate {owner}")

    async def park(self, feedback_id: str, reason: str) -> LearnOutcome:
        """The end of an update that cannot be done."""
        await self._do(f"park {feedback_id}: {reason}")
        return LearnOutcome(feedback_id, "rejected", 0, reason=reason)

    async def give_up(self, feedback_id: str) -> LearnOutcome:
        """The end of an update that somebody cancelled."""
        await self._do(f"give up {feedback_id}")
        return LearnOutcome(feedback_id, "cancelled", 0)

    async def _do(self, name: str) -> None:
        self.begun.append(name)
        self._starts[name].set()
        try:
            if name in self.gates:
                await self.gates[name].wait()
            else:
                await asyncio.sleep(0)
        except asyncio.CancelledError:
            self.cancelled.append(name)
            raise
        if self.failures.get(name):
            raise self.failures[name].pop(0)
        self.done.append(name)

    def gate(self, name: str) -> asyncio.Event:
        """Holds a piece of work until the event is set."""
        return self.gates.setdefault(name, asyncio.Event())

    async def has_begun(self, name: str) -> None:
        """Returns once a piece of work has begun."""
        await self._starts[name].wait()


def scheduler_of(work: Work) -> UpdateScheduler:
    """A scheduler that is not started."""
    tasks: dict[TaskKind, Callable[[str], Awaitable[None]]] = {
        "settle": work.settle,
        "rebuild": work.rebuild,
        "consolidate": work.consolidate,
        "calibrate": work.calibrate,
    }
    return _of(work, tasks, retry_after_s=0.0)


def _of(work: Work, tasks: dict[TaskKind, Callable[[str], Awaitable[None]]], retry_after_s: float) -> UpdateScheduler:
    ends = work.park, work.give_up
    return UpdateScheduler(work.prepare, work, tasks, *ends, retry_after_s=retry_after_s)  # type: ignore[arg-type]


@pytest.fixture
def work() -> Work:
    """Fresh work, nothing done yet."""
    return Work()


@pytest.fixture
async def scheduler(work: Work) -> AsyncIterator[UpdateScheduler]:
    """A scheduler at work."""
    scheduler = scheduler_of(work)
    scheduler.start()
    yield scheduler
    await scheduler.stop()


async def test_a_lesson_is_learned_and_its_person_settled(work: Work, scheduler: UpdateScheduler) -> None:
    """The outcome comes back, and the tasks follow behind."""
    assert (await scheduler.submit("ana", "f1")).status == "learned"
    await scheduler.idle()
    assert work.done == ["prepare", "f1", "settle ana"]
    assert scheduler.num_waiting == 0


async def test_lessons_run_in_order_and_before_tasks(work: Work, scheduler: UpdateScheduler) -> None:
    """Everybody's lessons come first, in the order in which they were handed in; then the tasks."""
    gate = work.gate("f1")
    futures = [scheduler.submit(user, name) for user, name in (("ana", "f1"), ("ben", "f2"), ("ana", "f3"))]
    scheduler.submit_task("eva")
    assert scheduler.num_waiting == 3
    gate.set()
    await asyncio.gather(*futures)
    await scheduler.idle()
    assert work.done == ["prepare", "f1", "f2", "f3", "settle eva", "settle ben", "settle ana"]


async def test_one_update_runs_at_a_time(work: Work, scheduler: UpdateScheduler) -> None:
    """While one is learned the next has not begun."""
    gate = work.gate("f1")
    first, second = scheduler.submit("ana", "f1"), scheduler.submit("ben", "f2")
    await work.has_begun("f1")
    for _ in range(20):
        await asyncio.sleep(0)
    assert "f2" not in work.begun
    gate.set()
    await asyncio.gather(first, second)


async def test_what_is_prepared_comes_before_the_first_lesson(work: Work) -> None:
    """A lesson handed in while the first update is prepared waits for that."""
    gate = work.gate("prepare")
    scheduler = scheduler_of(work)
    scheduler.start()
    future = scheduler.submit("ana", "f1")
    await work.has_begun("prepare")
    assert work.begun == ["prepare"]
    gate.set()
    await future
    await scheduler.stop()
    assert work.done[:2] == ["prepare", "f1"]


async def test_a_failed_preparation_does_not_stop_learning(work: Work) -> None:
    """It is counted, and lessons are learned all the same."""
    work.failures["prepare"] = [EngineRestarting("gone")]
    scheduler = scheduler_of(work)
    scheduler.start()
    assert (await scheduler.submit("ana", "f1")).status == "learned"
    assert scheduler.num_failures == 1
    await scheduler.stop()


async def test_the_same_feedback_twice_is_one_update(work: Work, scheduler: UpdateScheduler) -> None:
    """A second submission waits for the update that is queued already."""
    gate = work.gate("f1")
    first, second = scheduler.submit("ana", "f1"), scheduler.submit("ana", "f1")
    gate.set()
    assert await first is await second
    await scheduler.idle()
    assert work.done.count("f1") == 1


async def test_a_task_gives_way_to_a_lesson_and_is_done_again(work: Work, scheduler: UpdateScheduler) -> None:
    """A running task is cancelled when a lesson comes, and starts anew behind it."""
    gate = work.gate("settle ana")
    scheduler.submit_task("ana")
    await work.has_begun("settle ana")
    await scheduler.submit("ben", "f1")
    gate.set()
    await scheduler.idle()
    assert work.cancelled == ["settle ana"]
    assert work.begun == ["prepare", "settle ana", "f1", "settle ana", "settle ben"]
    assert work.done == ["prepare", "f1", "settle ana", "settle ben"]
    assert scheduler.num_failures == 0


async def test_settling_comes_behind_rebuilding(work: Work, scheduler: UpdateScheduler) -> None:
    """A rebuild asked for after a settling that still waits moves before it; the settling is done once."""
    gate = work.gate("f1")
    scheduler.submit("ben", "f1")
    await work.has_begun("f1")
    scheduler.submit_task("ana")
    scheduler.submit_task("ana", "rebuild")
    gate.set()
    await scheduler.idle()
    assert [name for name in work.done if "ana" in name] == ["rebuild ana", "settle ana"]


async def test_a_failing_task_is_counted_and_let_go(work: Work, scheduler: UpdateScheduler) -> None:
    """It is not tried again by itself, and the next lesson is learned."""
    work.failures["settle ana"] = [TrainerError("odd")]
    scheduler.submit_task("ana")
    await scheduler.idle()
    assert scheduler.num_failures == 1
    assert (await scheduler.submit("ana", "f1")).status == "learned"


async def test_a_retryable_failure_is_tried_again(work: Work, scheduler: UpdateScheduler) -> None:
    """When the engine died under an update, the update is done again and learned."""
    work.failures["f1"] = [EngineRestarting("gone")] * (MAX_ATTEMPTS - 1)
    assert (await scheduler.submit("ana", "f1")).status == "learned"
    assert work.begun.count("f1") == MAX_ATTEMPTS
    assert scheduler.num_failures == MAX_ATTEMPTS - 1


async def test_a_retryable_failure_of_storage_is_tried_again(work: Work, scheduler: UpdateScheduler) -> None:
    """Storage says itself which of its errors pass by."""
    work.failures["f1"] = [StorageFull("no room")]
    assert (await scheduler.submit("ana", "f1")).status == "learned"


async def test_a_database_that_is_away_is_waited_for(work: Work, scheduler: UpdateScheduler) -> None:
    """However long it takes: nothing is wrong with the lesson, and no attempt is used up."""
    work.failures["f1"] = [DatabaseLost("gone")] * (3 * MAX_ATTEMPTS)
    assert (await scheduler.submit("ana", "f1")).status == "learned"


async def test_between_two_attempts_there_is_a_pause(work: Work) -> None:
    """The pauses grow, so that a dying engine is noticed before the attempts are used up."""
    tasks: dict[TaskKind, Callable[[str], Awaitable[None]]] = {"settle": work.settle, "rebuild": work.rebuild}
    scheduler = UpdateScheduler(work.prepare, work, tasks, work.park, work.give_up, retry_after_s=0.05)  # type: ignore[arg-type]
    work.failures["f1"] = [EngineRestarting("gone")] * 2
    scheduler.start()
    started_s = asyncio.get_running_loop().time()
    await scheduler.submit("ana", "f1")
    assert asyncio.get_running_loop().time() - started_s >= 0.15
    await scheduler.stop()


async def test_an_update_that_keeps_failing_is_parked(work: Work, scheduler: UpdateScheduler) -> None:
    """After the last attempt it is given up with the reason, and the next one runs."""
    work.failures["f1"] = [EngineRestarting("gone")] * 9
    assert (await scheduler.submit("ana", "f1")).reason == "gone"
    assert work.begun.count("f1") == MAX_ATTEMPTS
    assert (await scheduler.submit("ana", "f2")).status == "learned"


async def test_a_failure_that_will_not_pass_is_parked_at_once(work: Work, scheduler: UpdateScheduler) -> None:
    """An error that the same call would meet again is not tried again."""
    work.failures["f1"] = [TrainerError("a sample has no response")]
    assert (await scheduler.submit("ana", "f1")).status == "rejected"
    assert work.begun.count("f1") == 1


async def test_an_update_that_cannot_even_be_parked_ends_with_its_error(work: Work, scheduler: UpdateScheduler) -> None:
    """The caller gets the error, and the worker goes on with the next update."""
    work.failures = {"f1": [TrainerError("odd")], "park f1: odd": [StorageFull("no room")]}
    with pytest.raises(StorageFull):
        await scheduler.submit("ana", "f1")
    assert (await scheduler.submit("ana", "f2")).status == "learned"
    assert scheduler.num_failures == 2


async def test_a_person_who_is_gone_is_dropped(work: Work, scheduler: UpdateScheduler) -> None:
    """Their queued lessons and tasks are never begun; other people's are."""
    gate = work.gate("f1")
    scheduler.submit("ben", "f1")
    await work.has_begun("f1")
    dropped = scheduler.submit("ana", "f2")
    scheduler.submit_task("ana", "rebuild")
    scheduler.drop("ana")
    gate.set()
    await scheduler.idle()
    assert dropped.cancelled()
    assert scheduler.num_waiting == 0
    assert not [name for name in work.begun if name == "f2" or "ana" in name]


async def test_a_running_task_of_a_person_who_is_gone_ends(work: Work, scheduler: UpdateScheduler) -> None:
    """It is cancelled and not done again."""
    work.gate("settle ana")
    scheduler.submit_task("ana")
    await work.has_begun("settle ana")
    scheduler.drop("ana")
    await scheduler.idle()
    assert work.cancelled == work.begun[1:] == ["settle ana"]


@pytest.mark.parametrize("name", ["f1", "rebuild ana"])
async def test_a_persons_turn_lasts_as_long_as_their_versions_change(
    work: Work, scheduler: UpdateScheduler, name: str
) -> None:
    """An undo waits for the lesson or rebuild that runs, and goes before the next one."""
    gate = work.gate(name)
    if name == "f1":
        scheduler.submit("ana", "f1")
    else:
        scheduler.submit_task("ana", "rebuild")
    await work.has_begun(name)
    undo = asyncio.create_task(taken_back(work, scheduler, "ana"))
    await asyncio.sleep(0)
    assert not undo.done()
    gate.set()
    await undo
    assert work.done[-1] == "undo ana"
    await scheduler.submit("ana", "f2")
    assert work.done.index(name) < work.done.index("undo ana") < work.done.index("f2")


async def taken_back(work: Work, scheduler: UpdateScheduler, user_id: str) -> None:
    """Hold the turn as an undo does."""
    async with scheduler.turn(user_id):
        work.done.append(f"undo {user_id}")


async def test_nobody_waits_for_another_persons_turn(work: Work, scheduler: UpdateScheduler) -> None:
    """While Ana's lesson runs Ben can take his back."""
    gate = work.gate("f1")
    future = scheduler.submit("ana", "f1")
    await work.has_begun("f1")
    await taken_back(work, scheduler, "ben")
    gate.set()
    await future


async def test_stopping_ends_what_runs_and_whoever_waits(work: Work) -> None:
    """No task is left running and no caller waits for ever; the feedback stays open in storage."""
    work.gate("f1")
    scheduler = scheduler_of(work)
    scheduler.start()
    running, queued = scheduler.submit("ana", "f1"), scheduler.submit("ana", "f2")
    await work.has_begun("f1")
    await scheduler.stop()
    assert work.cancelled == ["f1"]
    assert running.cancelled()
    assert queued.cancelled()
    assert "f2" not in work.begun


async def test_idle_waits_for_lessons_and_tasks(work: Work, scheduler: UpdateScheduler) -> None:
    """It returns at once when there is nothing to do, and otherwise when the last task has ended."""
    await scheduler.idle()
    gate = work.gate("settle ana")
    await scheduler.submit("ana", "f1")
    idle = asyncio.create_task(scheduler.idle())
    await work.has_begun("settle ana")
    assert not idle.done()
    gate.set()
    await idle


async def test_a_consolidation_waits_for_every_lesson_and_every_other_task(
    work: Work, scheduler: UpdateScheduler
) -> None:
    """Corrections, notes, consolidations; those in order of asking, each with its person settled behind it."""
    gate = work.gate("f1")
    scheduler.submit("ana", "f1")
    await work.has_begun("f1")
    for user_id in ("eva", "ben"):
        scheduler.submit_task(user_id, "consolidate")
    scheduler.submit_task("ben", "rebuild")
    scheduler.submit("ben", "f2")
    gate.set()
    await scheduler.idle()
    rest = work.done[work.done.index("f2") :]
    tasks = ["rebuild ben", "settle ana", "settle ben", "consolidate eva", "settle eva", "consolidate ben"]
    assert rest == ["f2", *tasks, "settle ben"]


async def test_a_consolidation_gives_way_to_a_lesson_and_is_done_again(work: Work, scheduler: UpdateScheduler) -> None:
    """It is broken off; the lesson and its tasks come first."""
    gate = work.gate("consolidate ana")
    scheduler.submit_task("ana", "consolidate")
    await work.has_begun("consolidate ana")
    await scheduler.submit("ben", "f1")
    gate.set()
    await scheduler.idle()
    assert work.cancelled == ["consolidate ana"]
    assert work.done == ["prepare", "f1", "settle ben", "consolidate ana", "settle ana"]


async def test_a_consolidation_holds_its_persons_turn(work: Work, scheduler: UpdateScheduler) -> None:
    """An undo of the same person waits for it."""
    gate = work.gate("consolidate ana")
    scheduler.submit_task("ana", "consolidate")
    await work.has_begun("consolidate ana")
    assert scheduler.turn("ana").locked()
    gate.set()
    await scheduler.idle()
    assert not scheduler.turn("ana").locked()


async def test_while_it_is_held_no_consolidation_runs(work: Work, scheduler: UpdateScheduler) -> None:
    """The one that runs is broken off, lessons go on, and when it is released it is done."""
    gate = work.gate("consolidate ana")
    scheduler.submit_task("ana", "consolidate")
    await work.has_begun("consolidate ana")
    scheduler.hold(True)
    assert (await scheduler.submit("ben", "f1")).status == "learned"
    await scheduler.idle()
    assert (work.cancelled, work.begun.count("consolidate ana")) == (["consolidate ana"], 1)
    gate.set()
    scheduler.hold(False)
    await scheduler.idle()
    assert work.done[-2:] == ["consolidate ana", "settle ana"]


async def test_holding_leaves_other_tasks_alone(work: Work, scheduler: UpdateScheduler) -> None:
    """A hold stops consolidations and no other task."""
    gate = work.gate("settle ana")
    scheduler.submit_task("ana")
    await work.has_begun("settle ana")
    scheduler.hold(True)
    gate.set()
    await scheduler.idle()
    assert (work.cancelled, work.done[-1]) == ([], "settle ana")


async def test_a_task_that_this_model_has_not_is_never_queued(work: Work) -> None:
    """A model that cannot learn has no tasks; the queue is idle all the same."""
    scheduler = UpdateScheduler(work.prepare, work, {}, work.park, work.give_up)
    scheduler.start()
    for kind in ("settle", "rebuild", "consolidate"):
        scheduler.submit_task("ana", kind)  # type: ignore[arg-type]
    async with asyncio.timeout(10):
        await scheduler.idle()
    await scheduler.stop()
    assert work.done in ([], ["prepare"])


async def test_a_lesson_that_waits_is_cancelled(work: Work, scheduler: UpdateScheduler) -> None:
    """It is given up at once and never begun; the lessons beside it go on."""
    gate = work.gate("f1")
    first, second = scheduler.submit("ana", "f1"), scheduler.submit("ben", "f2")
    await work.has_begun("f1")
    assert await scheduler.cancel("f2") == await second == LearnOutcome("f2", "cancelled", 0)
    gate.set()
    assert (await first).status == "learned"
    await scheduler.idle()
    assert "f2" not in work.begun


async def test_a_lesson_that_runs_is_cancelled(work: Work, scheduler: UpdateScheduler) -> None:
    """It is broken off, then given up, and the next one begins."""
    work.gate("f1")
    first, second = scheduler.submit("ana", "f1"), scheduler.submit("ben", "f2")
    await work.has_begun("f1")
    assert await scheduler.cancel("f1") == await first == LearnOutcome("f1", "cancelled", 0)
    assert (await second).status == "learned"
    assert work.cancelled == ["f1"]
    assert work.done.index("give up f1") < work.done.index("f2")
    assert scheduler.num_waiting == 0


async def test_a_lesson_that_is_tried_again_is_cancelled_in_its_pause(work: Work) -> None:
    """No further attempt is made."""
    scheduler = scheduler_of(work)
    scheduler._retry_after_s = 60.0
    work.failures["f1"] = [EngineRestarting("away")]
    scheduler.start()
    outcome = scheduler.submit("ana", "f1")
    while scheduler.num_failures == 0:  # noqa: ASYNC110  a counter is what is waited for
        await asyncio.sleep(0)
    assert (await scheduler.cancel("f1"), work.begun.count("f1")) == (await outcome, 1)
    await scheduler.stop()


async def test_what_is_not_here_cannot_be_cancelled(work: Work, scheduler: UpdateScheduler) -> None:
    """Neither what was never handed in nor what has ended; its outcome stays."""
    assert (await scheduler.submit("ana", "f1")).status == "learned"
    assert await scheduler.cancel("f1") is None
    assert await scheduler.cancel("f2") is None
    assert work.cancelled == []


async def test_a_lesson_that_cannot_be_given_up_says_so(work: Work, scheduler: UpdateScheduler) -> None:
    """A full disk keeps it open in storage; the worker goes on."""
    work.gate("f1")
    work.failures["give up f1"] = [StorageFull("no room")]
    outcome = scheduler.submit("ana", "f1")
    await work.has_begun("f1")
    with pytest.raises(StorageFull):
        await scheduler.cancel("f1")
    with pytest.raises(StorageFull):
        await outcome
    assert (await scheduler.submit("ben", "f2")).status == "learned"


async def test_the_place_in_the_queue_is_known(work: Work, scheduler: UpdateScheduler) -> None:
    """The running lesson is at place zero, the others behind it; one that has ended has none."""
    gate = work.gate("f1")
    futures = [scheduler.submit("ana", name) for name in ("f1", "f2", "f3")]
    await work.has_begun("f1")
    places = [scheduler.place(name) for name in ("f1", "f2", "f3", "f4")]
    assert [place and place[0] for place in places] == [0, 1, 2, None]
    gate.set()
    await asyncio.gather(*futures)
    assert scheduler.place("f1") is None


async def test_calibrating_comes_last_gives_way_and_is_held(work: Work, scheduler: UpdateScheduler) -> None:
    """It is a task like a consolidation, with nothing to settle behind it."""
    gate = work.gate("calibrate ")
    scheduler.submit_task("", "calibrate")
    await work.has_begun("calibrate ")
    await scheduler.submit("ana", "f1")
    scheduler.hold(True)
    assert work.cancelled[0] == "calibrate "
    assert "calibrate " not in work.done
    gate.set()
    scheduler.hold(False)
    await scheduler.idle()
    assert work.done[-1] == "calibrate "


@pytest.mark.parametrize("kind", ["settle", "consolidate"])
async def test_a_task_that_is_asked_for_while_it_runs_runs_again(
    work: Work, scheduler: UpdateScheduler, kind: TaskKind
) -> None:
    """What changed meanwhile, an undo say, the running one has not seen."""
    gate = work.gate(f"{kind} ana")
    scheduler.submit_task("ana", kind)
    await work.has_begun(f"{kind} ana")
    scheduler.submit_task("ana", kind)
    gate.set()
    await scheduler.idle()
    assert work.done.count(f"{kind} ana") == 2


async def test_a_waiting_lesson_is_given_up_even_if_the_one_who_cancels_it_leaves(
    work: Work, scheduler: UpdateScheduler
) -> None:
    """A connection that closes cancels its handler; the lesson ends, and nothing waits for it for ever."""
    running, giving_up = work.gate("f1"), work.gate("give up f2")
    scheduler.submit("ana", "f1")
    await work.has_begun("f1")
    outcome = scheduler.submit("ana", "f2")
    leaving = asyncio.create_task(scheduler.cancel("f2"))
    await work.has_begun("give up f2")
    leaving.cancel()
    await asyncio.gather(leaving, return_exceptions=True)
    giving_up.set()
    assert (await outcome).status == "cancelled"
    assert scheduler.place("f2") is None
    running.set()


async def test_stopping_waits_until_a_running_task_has_recorded_its_end(work: Work) -> None:
    """The engine below goes on existing until the task has cleaned up."""
    begun, ended = asyncio.Event(), []

    async def slow_to_end(_: str) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.01)
            ended.append("settle")

    work.settle = slow_to_end  # type: ignore[method-assign]
    scheduler = scheduler_of(work)
    scheduler.start()
    scheduler.submit_task("ana")
    await begun.wait()
    await scheduler.stop()
    assert ended == ["settle"]


async def test_the_rest_of_a_lesson_comes_before_all_else(work: Work, scheduler: UpdateScheduler) -> None:
    """Its outcome is known by then; the next lesson and the tasks wait."""
    work.has_rest = True
    gate = work.gate("deepen")
    first = scheduler.submit("ana", "f1")
    assert (await first).status == "learned"
    await work.has_begun("deepen")
    second = scheduler.submit("ben", "f2")
    assert not second.done()
    gate.set()
    await second
    await scheduler.idle()
    assert work.done[:4] == ["prepare", "f1", "deepen", "f2"]


@pytest.mark.parametrize("person", ["ana", "ben"])
async def test_a_change_that_a_person_asks_for_breaks_off_the_rest_of_their_lesson(
    work: Work, scheduler: UpdateScheduler, person: str
) -> None:
    """And of no one else's."""
    work.has_rest = True
    gate = work.gate("deepen")
    await scheduler.submit("ana", "f1")
    await work.has_begun("deepen")
    async with scheduler.change(person):
        assert work.cancelled == (["deepen"] if person == "ana" else [])
    gate.set()
    await scheduler.idle()
    assert scheduler.num_failures == 0


async def test_the_rest_of_a_lesson_that_fails_is_counted_and_ends_nothing(
    work: Work, scheduler: UpdateScheduler
) -> None:
    """The lesson stays as it ended, and the worker goes on."""
    work.has_rest = True
    work.failures["deepen"] = [TrainerError("out of memory")]
    assert (await scheduler.submit("ana", "f1")).status == "learned"
    assert (await scheduler.submit("ana", "f2")).status == "learned"
    await scheduler.idle()
    assert scheduler.num_failures == 1
