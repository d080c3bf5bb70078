"""Tests of the consolidator with the real engine: one consolidation, and the state after one that breaks off."""

import asyncio
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import pytest_asyncio

from engine.adapter_ref import ZERO_ADAPTER, AdapterRef
from engine.config import ConsolidationConfig
from engine.consolidation.consolidator import Consolidator
from engine.consolidation.schedule import PAUSED
from engine.errors import EngineRestarting, TrainerError
from engine.gates.candidate import Verdict
from storage.conversations import completions
from storage.kinds import FeedbackKind, FeedbackStatus, NoteState, VersionState
from storage.learning import feedback, signals, updates, versions
from storage.tables import Feedback, UpdateRun
from tests.engine.footprint import footprint
from tests.engine.live import Live
from tests.patience import PATIENCE_S, until

pytestmark = [pytest.mark.engine, pytest.mark.asyncio(loop_scope="session")]

LESSONS = (("Tell me about the koala", "no emoji please"), ("What is paella?", "use lowercase"))
HALF = {"learning_rate": 1.2e-3}  # what is taught so gently is better than before and does not hold yet
MAX_TRANSACTIONS = 6  # snapshot, one better answer, snapshot again, begin, version, record
MAX_ROOMS = 16  # of engine/ and storage/
MAX_MODULES = 52  # that any function is called of
MAX_WAY = 42  # of them that a reader follows (`tests.engine.footprint`)
NUM_SIGNALS = 4  # two lessons, an approval and a thumb down


def consolidator(live: Live) -> Consolidator:
    """Return the consolidator of the running engine."""
    return live.parts.consolidator


@pytest.fixture
def wide(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """Widen two gates: one candidate in twenty of this small model changes more than was asked."""
    for bound in ("max_unasked", "max_unasked_worst"):
        monkeypatch.setitem(vars(live.engine.config.gate), bound, 9.0)


@pytest.fixture
def lenient(live: Live, wide: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every text pass: one candidate in twenty loses a fact."""
    real = consolidator(live)._approved.judged

    async def passed(gold: Any, ref: AdapterRef, verdict: Verdict) -> Verdict:
        return replace(await real(gold, ref, verdict), is_accepted=True, reason="")

    monkeypatch.setattr(consolidator(live)._approved, "judged", passed)


@pytest.fixture
def brief(live: Live, lenient: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Train a few steps and open every gate, for tests that do not look at the lesson."""
    monkeypatch.setitem(vars(live.engine.config.sleep), "max_steps", 4)
    with live.open_gates():
        yield


async def react(live: Live, user_id: str, text: str, kind: str, value: str) -> None:
    """Store a reaction to a new answer as the chat side does."""
    answer = await live.ask(user_id, text)
    row = Feedback(user_id=user_id, completion_id=answer.id, kind=kind, value=value)
    stored, _ = await live.database.write(lambda s: feedback.add(s, row))
    await live.database.write(lambda s: feedback.set_status(s, stored.id, FeedbackStatus.KEPT))
    if kind == "approval":
        await live.database.write(lambda s: completions.mark_gold(s, user_id, answer.id))


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def original(live: Live) -> str:
    """Return a person with two lessons, the second one half learned, one liked answer and one disliked."""
    user_id = await live.person()
    for (question, wish), training in zip(LESSONS, (None, HALF), strict=True):
        with live.open_gates():  # half a lesson is at their edge
            outcome = await live.teach(await live.ask(user_id, question), wish, training=training)
        assert outcome.status == "learned", outcome
    await react(live, user_id, "Tell me about the owl", "approval", "+1")
    await react(live, user_id, "What is sushi?", "reaction", "-1")
    await live.engine.settled()
    return user_id


@pytest_asyncio.fixture(loop_scope="session")
async def pupil(live: Live, original: str) -> str:
    """Return a new person with the same history."""
    return (await live.twin(original)).user_id


async def marks(live: Live, user_id: str) -> set[str | None]:
    """Return the updates that the person's feedback is marked with."""
    return {row.consolidated_by for row in await live.database.read(lambda s: feedback.history(s, user_id, 99))}


async def runs(live: Live, user_id: str) -> list[UpdateRun]:
    """Return the person's consolidations, newest first."""
    return await live.database.read(lambda s: signals.runs(s, user_id))


def held_once(live: Live, monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Hold the first training of a consolidation, which has a row then, until it is cancelled; say that it began."""
    candidates = consolidator(live)._candidates
    train, begun = candidates.train, asyncio.Event()

    async def held(*given: Any) -> Any:
        """Train, but for the first time."""
        if not begun.is_set():
            begun.set()
            await asyncio.Event().wait()
        return await train(*given)

    monkeypatch.setattr(candidates, "train", held)
    return begun


@pytest.mark.usefixtures("lenient")
async def test_what_is_new_becomes_one_version_on_top_of_the_active_one(live: Live, pupil: str) -> None:
    """The candidate passes every gate, those on texts included; each signal is marked and no longer new."""
    before = (await live.user(pupil)).active_version
    outcome = await live.engine.consolidate(pupil)
    assert (outcome.status, outcome.num_new, outcome.adapter_version) == ("learned", NUM_SIGNALS, before + 1), outcome
    assert (await live.version(pupil, outcome.adapter_version)).parent == before
    assert {"entities kept", "nothing invented", "form kept"} <= outcome.gate["checks"].keys()
    assert outcome.gate["figures"]["divergence_after"] < 0.5 * outcome.gate["figures"]["divergence_before"]
    (run,) = await runs(live, pupil)
    assert (run.id, run.status, run.version) == (outcome.update_id, "accepted", outcome.adapter_version)
    assert await marks(live, pupil) == {run.id}
    answer = await live.result(pupil, "What is ramen?", notes="off")
    assert answer.adapter_version == outcome.adapter_version
    again = await live.engine.consolidate(pupil)
    assert (again.status, again.num_new, again.adapter_version) == ("kept", 0, outcome.adapter_version)


@pytest.mark.usefixtures("brief")
@pytest.mark.parametrize(("gate", "shares"), [("made_up", (0.5, 0.0)), ("told", (0.5,))])
async def test_facts_that_mislead_a_candidate_stay_notes(
    live: Live, pupil: str, monkeypatch: pytest.MonkeyPatch, gate: str, shares: Sequence[float]
) -> None:
    """It is refused if it answers what was never told, or no longer what was; the lessons are trained without facts."""
    row = Feedback(user_id=pupil, kind=FeedbackKind.NOTE, text="my dog is called Rex")
    stored, _ = await live.database.write(lambda s: feedback.add(s, row))
    await live.engine.learn(stored.id)
    found = list(shares)
    taught, by_teacher = 0, live.parts.context.rollouts.by_teacher
    seen: list[int] = []

    async def teaching(*words: Any) -> list[list[int]]:
        nonlocal taught
        taught += 1
        return await by_teacher(*words)

    async def counted(*_: Any) -> float:
        seen.append(taught)
        return float(found.pop(0))

    async def nothing(*_: Any) -> None: ...

    for name in ("made_up", "told"):
        monkeypatch.setattr(consolidator(live)._facts, name, counted if name == gate else nothing)
    monkeypatch.setattr(live.parts.context.rollouts, "by_teacher", teaching)
    outcome = await live.engine.consolidate(pupil)
    assert (outcome.status, found) == ("learned", []), outcome
    assert seen[0] == taught > 0  # the second try trains on the answers that the first one was made of
    assert outcome.gate["checks"].get(gate, True) is True
    assert len(await runs(live, pupil)) == 1
    assert next(n for n in await live.notes(pupil) if n.text == row.text).state != NoteState.IN_WEIGHTS


@pytest.mark.usefixtures("brief")
async def test_what_is_kept_after_a_refusal_says_nothing_of_the_refused_candidate(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Told nothing but facts, made up: no candidate is left, so neither the outcome nor the log has its steps."""
    user_id = await live.person()
    row = Feedback(user_id=user_id, kind=FeedbackKind.NOTE, text="my dog is called Rex")
    stored, _ = await live.database.write(lambda s: feedback.add(s, row))
    await live.engine.learn(stored.id)

    async def counted(_ref: AdapterRef, _live: Any) -> float:
        return 0.5

    monkeypatch.setattr(consolidator(live)._facts, "made_up", counted)
    outcome = await live.engine.consolidate(user_id)
    assert (outcome.status, outcome.steps) == ("kept", 0), outcome
    assert "stays in your notes" in outcome.reason
    (run,) = await runs(live, user_id)
    assert (run.status, run.steps, run.divergence_before) == ("skipped", 0, 0.0)


@pytest.mark.usefixtures("brief")
async def test_one_consolidation_is_six_transactions_at_most(
    live: Live, pupil: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One consolidation, a better answer included, takes at most six transactions, and enters no more than it did.

    It reads first, everything at once, and writes last.
    """
    await live.engine.settled()
    with footprint(live.database) as counted:
        outcome = await consolidator(live).consolidate(pupil)
    with capsys.disabled():
        print(f"\none consolidation: {counted}")
    assert outcome.status == "learned"
    assert len(counted.transactions) <= MAX_TRANSACTIONS, counted
    assert (counted.transactions[0], counted.transactions[-1]) == ("read", "write")
    assert len(counted.rooms) <= MAX_ROOMS, sorted(counted.rooms)
    assert len(counted.modules) <= MAX_MODULES, sorted(counted.modules)
    assert len(counted.way) <= MAX_WAY, sorted(counted.way)


@pytest.mark.usefixtures("brief")
async def test_earlier_corrections_are_rehearsed(live: Live, pupil: str) -> None:
    """The next consolidation takes in the new signal and teaches the earlier two once more."""
    await live.engine.consolidate(pupil)
    await live.teach(await live.ask(pupil, "Tell me about the koala"), "call me Ana")
    outcome = await live.engine.consolidate(pupil)
    assert (outcome.num_new, outcome.num_rehearsed) == (1, len(LESSONS)), outcome


async def test_a_person_without_signals_or_with_learning_off_gets_none(live: Live) -> None:
    """The outcome gives the reason, and nothing is written."""
    for is_learning, reason in ((True, "nothing new"), (False, "Learning is off")):
        user_id = await live.person(is_learning=is_learning)
        outcome = await live.engine.consolidate(user_id)
        assert (outcome.status, reason in outcome.reason, await runs(live, user_id)) == ("kept", True, [])


async def test_approvals_alone_train_nothing_and_are_taken_in(live: Live) -> None:
    """Approvals bring no gradient, and are not looked at again the next night."""
    user_id = await live.person()
    await react(live, user_id, "Tell me about the owl", "approval", "+1")
    outcome = await live.engine.consolidate(user_id)
    assert (outcome.status, outcome.num_new, outcome.steps, outcome.adapter_version) == ("kept", 1, 0, 0)
    assert await marks(live, user_id) == {outcome.update_id}
    assert [run.status for run in await runs(live, user_id)] == ["skipped"]


@pytest.mark.usefixtures("wide")
async def test_a_candidate_that_spoils_approved_answers_never_answers(
    live: Live, pupil: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is tried twice, refused, removed from vLLM and kept apart, and every signal stays new."""
    before = await live.result(pupil, "What is ramen?", notes="off")
    seen: list[AdapterRef] = []

    async def judged(_gold: Any, ref: AdapterRef, verdict: Verdict) -> Verdict:
        seen.append(ref)
        return Verdict(False, "Answers you liked would have lost facts.", dict(verdict.checks))

    monkeypatch.setattr(consolidator(live)._approved, "judged", judged)
    with live.open_gates():  # so that nothing else refuses one of them first
        outcome = await live.engine.consolidate(pupil)
    assert (outcome.status, outcome.reason) == ("rejected", "Answers you liked would have lost facts.")
    assert len(seen) == 2
    for ref in seen:
        assert (await live.version(pupil, ref.number)).state == VersionState.REJECTED
        assert not live.folder(pupil, ref.number).exists()
        assert (live.data_dir / "rejected" / pupil / str(ref.number)).is_dir()
        assert live.host._running is not None
        assert ref.lora_int_id not in live.host._running.loaded
    assert await marks(live, pupil) == {None}
    after = await live.result(pupil, "What is ramen?", notes="off")
    assert (after.adapter_version, after.completion_token_ids) == (before.adapter_version, before.completion_token_ids)


@pytest.mark.usefixtures("brief")
async def test_one_that_breaks_off_anywhere_leaves_the_parent(
    live: Live, pupil: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is marked, no candidate is left, the run is parked, and the next one takes everything in."""
    monkeypatch.setitem(vars(live.engine.config.sleep), "max_failures", 99)
    candidates = consolidator(live)._candidates
    before = await live.result(pupil, "What is ramen?", notes="off")
    points: list[tuple[Any, str]] = [
        (candidates, "train"), (candidates._adapters, "write"), (candidates._active, "publish"), (versions, "accept"),
        (candidates, "activate"),
    ]  # fmt: skip
    for number, (owner, point) in enumerate(points, 1):
        with monkeypatch.context() as patch:
            patch.setattr(owner, point, broken)
            outcome = await live.engine.consolidate(pupil)
        assert (outcome.status, "broken here" in outcome.reason) == ("rejected", True), (point, outcome)
        assert [run.status for run in await runs(live, pupil)] == ["parked"] * number, point
        assert await marks(live, pupil) == {None}, point
        assert await live.database.read(versions.unfinished) == [], point
        after = await live.result(pupil, "What is ramen?", notes="off")
        assert after.adapter_version == before.adapter_version, point
        assert after.completion_token_ids == before.completion_token_ids, point
    again = await live.engine.consolidate(pupil)
    assert (again.status, again.num_new) == ("learned", NUM_SIGNALS)


def broken(*_args: Any, **_options: Any) -> Any:
    """Raise in place of a step."""
    raise TrainerError("broken here")


@pytest.mark.usefixtures("brief")
async def test_one_that_broke_off_is_done_again_and_trains_once(
    live: Live, pupil: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the engine dies under the first attempt, the second starts from the same parent."""
    parent = (await live.user(pupil)).active_version
    real = consolidator(live)._candidates.activate
    attempts = [0]

    async def dying(*args: Any, **options: Any) -> Any:
        attempts[0] += 1
        if attempts[0] == 1:
            raise EngineRestarting("gone")
        return await real(*args, **options)

    monkeypatch.setattr(consolidator(live)._candidates, "activate", dying)
    outcome = await live.engine.consolidate(pupil)
    assert outcome.status == "learned"
    assert [run.status for run in await runs(live, pupil)] == ["accepted", "failed"]
    assert (await live.version(pupil, outcome.adapter_version)).parent == parent
    assert await marks(live, pupil) == {outcome.update_id}


@pytest.mark.usefixtures("lenient")
async def test_pausing_stops_it_and_afterwards_it_is_done(
    live: Live, pupil: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It breaks off at once, a request meanwhile gets the reason, and it is done after the pause."""
    before = (await live.user(pupil)).active_version
    training = held_once(live, monkeypatch)
    asked = asyncio.create_task(live.engine.consolidate(pupil))
    await asyncio.wait_for(training.wait(), PATIENCE_S)
    await live.engine.pause_consolidation(True)
    try:
        await live.engine.settled()
        assert [run.status for run in await runs(live, pupil)] == ["postponed"]
        assert ((await live.user(pupil)).active_version, await marks(live, pupil)) == (before, {None})
        assert await live.database.read(versions.unfinished) == []
        assert (await live.engine.consolidate(pupil)).reason == PAUSED
    finally:
        await live.engine.pause_consolidation(False)
    assert (await asked).status == "learned"


async def test_pausing_while_its_row_is_written_leaves_no_row_that_says_running(
    live: Live, pupil: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The row is committed when the cancellation arrives, and its writer has not returned."""
    real = live.database.write
    was_paused: list[bool] = []

    async def slow(work: Any) -> Any:
        result = await real(work)
        if not was_paused and any(run.status == "running" for run in await runs(live, pupil)):
            was_paused.append(True)
            await live.engine.pause_consolidation(True)
            await asyncio.sleep(0.05)
        return result

    monkeypatch.setattr(live.database, "write", slow)
    asked = asyncio.create_task(live.engine.consolidate(pupil))
    try:
        await until(lambda: bool(was_paused))
        await live.engine.settled()
        assert [run.status for run in await runs(live, pupil)] == ["postponed"]
    finally:
        live.engine._schedule.drop(pupil)
        await live.engine.pause_consolidation(False)
    assert (await asked).status == "kept"


@pytest.mark.usefixtures("lenient")
async def test_one_gives_way_to_a_correction(live: Live, pupil: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The correction is learned first and then taken in with the rest."""
    training = held_once(live, monkeypatch)
    asked = asyncio.create_task(live.engine.consolidate(pupil))
    answer = await live.ask(pupil, "Tell me about the owl")
    await asyncio.wait_for(training.wait(), PATIENCE_S)
    lesson = await live.teach(answer, "call me Ana")
    assert not asked.done()
    outcome = await asked
    assert (lesson.status, outcome.num_new) == ("learned", NUM_SIGNALS + 1), outcome
    assert [run.status for run in await runs(live, pupil)][-1] == "postponed"


@pytest.mark.usefixtures("brief")
async def test_after_a_restart_of_heed_it_is_taken_up_again(live: Live, pupil: str) -> None:
    """The running row and the candidate that a killed heed leaves become one consolidation."""
    parent = (await live.user(pupil)).active_version
    row = UpdateRun(user_id=pupil, kind=signals.CONSOLIDATION, parent_version=parent)
    await live.database.write(lambda s: updates.start(s, row))
    await live.engine.resume_pending()
    await live.engine.settled()
    found = await runs(live, pupil)
    assert [run.status for run in found] == ["accepted", "failed"]
    assert await marks(live, pupil) == {found[0].id}


@pytest.mark.usefixtures("brief")
async def test_at_night_it_begins_by_itself_once_nobody_talks(
    live: Live, pupil: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits while an answer is recent; then the person with enough signals is found and consolidated."""
    for number in range(6):
        await react(live, pupil, f"Tell me about {number} owls", "approval", "+1")
    await live.alone()  # the probe behind an earlier test's lesson writes answers, too
    sleep = live.engine._schedule
    monkeypatch.setattr(sleep, "_config", ConsolidationConfig(min_new=NUM_SIGNALS + 6, window="00:00-24:00"))
    assert await sleep.due() is None
    monkeypatch.setattr(live.parts.generator, "_answered_s", -math.inf)
    assert await sleep.due() == pupil
    live.engine._submit_consolidation(pupil)
    await live.engine.settled()
    (run,) = await runs(live, pupil)
    assert run.status == "accepted"
    assert await marks(live, pupil) == {run.id}
    assert await sleep.due() is None


@pytest.mark.usefixtures("lenient")
async def test_a_rebuild_makes_the_adapter_again_from_zero(live: Live, pupil: str) -> None:
    """It trains on notes and replay, is compared with the old version, keeps the lessons and takes in new signals."""
    before = (await live.user(pupil)).active_version
    outcome = await live.engine.rebuild(pupil)
    assert (outcome.status, outcome.is_rebuild, outcome.adapter_version) == ("learned", True, before + 1), outcome
    assert (await live.version(pupil, outcome.adapter_version)).parent == 0
    assert {"earlier_drop", "drift"} <= outcome.gate["figures"].keys()
    assert "unasked" not in outcome.gate["figures"]  # no version comes before zero
    assert await marks(live, pupil) == {outcome.update_id}
    text = (await live.result(pupil, "What is ramen?", notes="off")).text
    assert text == text.lower()


async def test_a_rebuilt_adapter_that_is_worse_does_not_replace_the_old_one(
    live: Live, pupil: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is compared on the person's own answers and refused, and the old version goes on answering."""
    before = await live.result(pupil, "What is ramen?", notes="off")

    check = consolidator(live)._rebuild_check
    score = check._trainer.score

    async def forgetful(samples: Any, ref: AdapterRef) -> Any:
        scores = await score(samples, ref)
        if ref.number == before.adapter_version:  # what the teacher would rather have had there is there to be lost
            return [replace(one, is_preferred=[False] * len(one.is_preferred)) for one in scores]
        return [replace(one, student_logprobs=[9.0] * len(one.student_logprobs)) for one in scores]

    monkeypatch.setattr(check, "_trainer", SimpleNamespace(score=forgetful))
    outcome = await live.engine.rebuild(pupil)
    assert (outcome.status, outcome.gate["checks"]["earlier"]) == ("rejected", False), outcome
    after = await live.result(pupil, "What is ramen?", notes="off")
    assert (after.adapter_version, after.completion_token_ids) == (before.adapter_version, before.completion_token_ids)
    assert await marks(live, pupil) == {None}


@pytest.mark.usefixtures("brief")
async def test_who_has_drifted_is_made_again(live: Live, pupil: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The consolidation of a drifted adapter begins from zero and is logged and marked like any other."""
    rebase = consolidator(live)._rebuild_check
    assert not await rebase.has_drifted(await live.parts.context.active.active(pupil))

    async def far(_ref: AdapterRef) -> float:
        return live.engine.config.sleep.max_drift + 0.1

    monkeypatch.setattr(rebase, "_drift", far)
    assert not await rebase.has_drifted(ZERO_ADAPTER)
    monkeypatch.setattr(rebase, "compared", unchanged)
    outcome = await live.engine.consolidate(pupil)
    assert (outcome.status, outcome.is_rebuild) == ("learned", True), outcome
    assert [run.status for run in await runs(live, pupil)] == ["accepted"]


async def unchanged(_user_id: str, _notes: Any, _old: Any, _new: Any, verdict: Verdict) -> Verdict:
    """Return the verdict without a comparison."""
    return verdict


async def test_who_taught_nothing_is_answered_by_the_base_after_a_rebuild(live: Live) -> None:
    """There is nothing to make an adapter of; with learning off none is made either."""
    outcome = await live.engine.rebuild(await live.person())
    assert (outcome.status, outcome.adapter_version, outcome.steps) == ("kept", 0, 0)
    outcome = await live.engine.rebuild(await live.person(is_learning=False))
    assert "Learning is off" in outcome.reason
