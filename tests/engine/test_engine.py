"""Tests of the engine as the chat side sees it, with the real vLLM and the pocket model."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from engine.config import EngineConfig
from engine.engine import Engine
from engine.errors import ArchitectureNotSupported, ModelNotFoundError, NothingToUndo
from engine.host.architectures import Trainability
from engine.host.trainer_client import Trained
from engine.requests import Delta, GenerateRequest, Sampling
from storage.conversations import completions
from storage.database import Database
from storage.errors import FeedbackNotFound, NoteNotFound, PersonNotFound, VersionNotFound, VersionStateError
from storage.kinds import FeedbackKind, FeedbackStatus, VersionState
from storage.learning import feedback, versions
from storage.people import people
from tests.engine.death import Death
from tests.engine.live import Live
from tests.engine.rows import accepted, opened, person
from tests.patience import PATIENCE_S
from tests.storage.stored import all_ids

pytestmark = [pytest.mark.engine, pytest.mark.asyncio(loop_scope="session")]

QUESTION = "Tell me about the koala"


async def deltas(live: Live, user_id: str, text: str = QUESTION, sampling: Sampling | None = None) -> list[Delta]:
    """Return a whole stream."""
    messages = [{"role": "user", "content": text}]
    request = GenerateRequest(user_id, messages, sampling or Sampling())
    return [delta async for delta in live.engine.generate(request)]


# -- generation ------------------------------------------------------------------------------------------------------


# -- what feedback becomes -------------------------------------------------------------------------------------------


async def test_with_learning_off_a_correction_is_kept_with_its_reason(live: Live) -> None:
    """Nothing is trained and nothing noted for a person who has learning off."""
    user_id = await live.person(is_learning=False)
    outcome = await live.teach(await live.ask(user_id, QUESTION), "no emoji please")
    assert (outcome.status, outcome.adapter_version, outcome.note) == ("kept", 0, None)
    assert "learning" in outcome.reason
    assert await live.notes(user_id) == []
    assert await live.updates(user_id, 9) == []


async def test_with_learning_off_a_note_still_holds(live: Live) -> None:
    """The note is in the next prompt, on one line, and nothing is trained."""
    user_id = await live.person(is_learning=False)
    outcome = await live.teach(await live.ask(user_id, QUESTION), "be\n brief", kind=FeedbackKind.NOTE)
    assert (outcome.status, outcome.note) == ("kept", "be brief")
    assert (await live.result(user_id, QUESTION)).notes == ["be brief"]
    assert await live.updates(user_id, 9) == []


@pytest.mark.parametrize(
    ("kind", "note"), [(FeedbackKind.CORRECTION, "be brief"), (FeedbackKind.IDEAL, "Write like this: be brief")]
)
async def test_on_a_quantised_model_a_correction_is_a_note(
    live: Live, monkeypatch: pytest.MonkeyPatch, kind: str, note: str
) -> None:
    """Nothing is trained, the reason is given, and the note is in the next prompt until it is undone."""
    await live.alone()
    monkeypatch.setattr(live.host, "_trainability", Trainability("Qwen3", "AWQ"))
    user_id = await live.person()
    outcome = await live.teach(await live.ask(user_id, QUESTION), "be\n brief", kind=kind)
    assert (outcome.status, outcome.note, outcome.adapter_version) == ("kept", note, 0)
    assert outcome.reason == ("This model is quantised (AWQ), so heed does not train it. The note is in the prompt.")
    assert (await live.result(user_id, QUESTION)).notes == [note]
    for trained in (await live.engine.consolidate(user_id), await live.engine.rebuild(user_id)):
        assert (trained.status, trained.reason) == ("kept", live.host.trainability.reason)
    assert (await live.engine.undo(user_id)).note == note
    assert (await live.result(user_id, QUESTION)).notes == []
    assert await live.updates(user_id, 9) == []


@pytest.mark.parametrize("kind", [FeedbackKind.APPROVAL, FeedbackKind.REACTION])
async def test_approval_and_reactions_train_nothing(live: Live, kind: str) -> None:
    """They are kept as feedback."""
    user_id = await live.person()
    outcome = await live.teach(await live.ask(user_id, QUESTION), "", kind=kind)
    assert (outcome.status, outcome.adapter_version) == ("kept", 0)
    assert (await live.feedback(outcome.feedback_id)).status == FeedbackStatus.KEPT


async def test_unknown_feedback_is_an_error(live: Live) -> None:
    """Feedback that was never committed cannot be learned."""
    with pytest.raises(FeedbackNotFound):
        await live.engine.learn("fb-nothing")


async def test_feedback_is_learned_once(live: Live) -> None:
    """A second submission, at the same time or later, gets the same update and no second version."""
    user_id = await live.person()
    row = await live.say(await live.ask(user_id, QUESTION), "no emoji please")
    first, second = await asyncio.gather(live.engine.learn(row.id), live.engine.learn(row.id))
    later = await live.engine.learn(row.id)
    assert first == second
    assert (later.status, later.adapter_version) == ("learned", 1)
    assert len(await live.database.read(lambda s: versions.history(s, user_id))) == 1


async def test_undone_feedback_is_not_learned_again(live: Live) -> None:
    """A redelivered correction that was taken back stays taken back."""
    user_id, outcome = await live.pupil()
    await live.engine.undo(user_id)
    again = await live.engine.learn(outcome.feedback_id)
    assert (again.status, again.adapter_version) == ("kept", 0)
    assert (await live.user(user_id)).active_version == 0


async def test_corrections_at_the_same_time_are_learned_one_on_the_other(live: Live) -> None:
    """Both end up in the newest version's line, whichever came first."""
    user_id = await live.person()
    answer = await live.ask(user_id, QUESTION)
    outcomes = await asyncio.gather(live.teach(answer, "no emoji please"), live.teach(answer, "use bullet points"))
    assert {o.adapter_version for o in outcomes} == {1, 2}
    assert (await live.version(user_id, 2)).parent == 1
    assert live.engine._scheduler.num_waiting == 0


async def test_a_caller_who_gives_up_does_not_stop_the_update(live: Live) -> None:
    """A cancelled wait leaves the lesson running to its end."""
    user_id = await live.person()
    row = await live.say(await live.ask(user_id, QUESTION), "no emoji please")
    waiting = asyncio.create_task(live.engine.learn(row.id))
    while (await live.feedback(row.id)).status == FeedbackStatus.PENDING:  # noqa: ASYNC110  a row tells nobody
        await asyncio.sleep(0.005)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    await live.engine.settled()
    assert (await live.feedback(row.id)).status == FeedbackStatus.LEARNED


# -- taking back -----------------------------------------------------------------------------------------------------


async def test_undo_brings_the_base_model_back(live: Live) -> None:
    """Version and note go together; the next answer is the one from before."""
    user_id = await live.person()
    before = await live.ask(user_id, QUESTION)
    await live.teach(before, "no emoji please")
    undone = await live.engine.undo(user_id)
    assert (undone.version, undone.note) == (0, "no emoji please")
    after = await live.result(user_id, QUESTION)
    assert (after.adapter_version, after.notes) == (0, [])
    assert after.completion_token_ids == before.completion_token_ids
    with pytest.raises(NothingToUndo):
        await live.engine.undo(user_id)


async def test_undo_while_a_lesson_is_learned_takes_that_lesson_back(live: Live) -> None:
    """It waits for the lesson to end, so that version and note go together."""
    user_id = await live.person()
    row = await live.say(await live.ask(user_id, QUESTION), "no emoji please")
    learning = asyncio.create_task(live.engine.learn(row.id))
    await live.has_begun(row.id)
    undone = await live.engine.undo(user_id)
    assert (await learning).status == "learned"
    assert (undone.version, undone.note) == (0, "no emoji please")
    assert (await live.feedback(row.id)).status == FeedbackStatus.UNDONE
    assert await live.notes(user_id) == []


async def test_rolling_back_and_forward(live: Live) -> None:
    """Each version answers as it did, with the notes of its line."""
    user_id, _ = await live.pupil("no emoji please")
    first = await live.result(user_id, QUESTION, notes="off")
    await live.teach(await live.ask(user_id, QUESTION), "use bullet points")
    second = await live.result(user_id, QUESTION, notes="off")
    noted = await live.notes(user_id)
    assert await live.engine.rollback(user_id, 1) == 1
    assert (await live.result(user_id, QUESTION, notes="off")).completion_token_ids == first.completion_token_ids
    assert [n.text for n in await live.notes(user_id)] == ["no emoji please"]
    assert await live.engine.rollback(user_id, 2) == 2
    assert (await live.result(user_id, QUESTION, notes="off")).completion_token_ids == second.completion_token_ids
    assert [n.text for n in await live.notes(user_id)] == [n.text for n in noted]


async def test_an_impossible_version_is_refused(live: Live) -> None:
    """Unknown and never accepted versions are errors, and nothing changes."""
    user_id, _ = await live.pupil()
    with pytest.raises(VersionNotFound):
        await live.engine.rollback(user_id, 7)
    await live.database.write(lambda s: versions.allocate(s, user_id, 1, "m", None, None))
    with pytest.raises(VersionStateError):
        await live.engine.rollback(user_id, 2)
    await live.database.write(lambda s: versions.reject(s, user_id, 2))
    assert (await live.user(user_id)).active_version == 1


async def test_another_persons_note_cannot_be_deleted(live: Live) -> None:
    """The error is that of a note that does not exist."""
    owner, outcome = await live.pupil()
    with pytest.raises(NoteNotFound):
        await live.engine.delete_note(await live.person(), outcome.note_id or "")
    assert len(await live.notes(owner)) == 1


# -- forgetting ------------------------------------------------------------------------------------------------------


async def test_forgetting_leaves_no_row_and_no_file(live: Live) -> None:
    """Rows, adapter directory and the copy in memory are gone; those of another person are not."""
    other, _ = await live.pupil("use lowercase")
    user_id, outcome = await live.lesson("call me Waldemar")
    row = await live.version(user_id, outcome.adapter_version)
    await live.engine.settled()
    await live.engine.forget(user_id)
    with pytest.raises(PersonNotFound):
        await live.user(user_id)
    with pytest.raises(FeedbackNotFound):
        await live.feedback(outcome.feedback_id)
    assert not live.folder(user_id).exists()
    registered = await live.host.rpc("heed_register", row.lora_int_id, str(live.folder(user_id, 1)))
    assert not registered["ok"]
    assert b"Waldemar" not in b"".join(f.read_bytes() for f in live.data_dir.glob("*.db*"))
    assert live.folder(other, 1).exists()
    assert (await live.result(other, QUESTION, notes="off")).adapter_version == 1


async def test_forgetting_during_a_lesson_leaves_nothing_either(live: Live) -> None:
    """The running lesson ends first, queued ones never run, and no file appears afterwards."""
    user_id = await live.person()
    answer = await live.ask(user_id, QUESTION)
    rows = [await live.say(answer, text) for text in ("no emoji please", "use bullet points")]
    learning = [asyncio.create_task(live.engine.learn(row.id)) for row in rows]
    await live.has_begun(rows[0].id)
    await live.engine.forget(user_id)
    await asyncio.gather(*learning, return_exceptions=True)
    await live.engine.settled()
    assert not live.folder(user_id).exists()
    assert user_id not in await live.database.read(all_ids)


async def test_unlearning_leaves_the_person_and_the_base_model(live: Live) -> None:
    """Feedback, adapter directory and the copy in memory are gone; the person is answered without an adapter."""
    user_id, outcome = await live.lesson("call me Waldemar")
    row = await live.version(user_id, outcome.adapter_version)
    await live.engine.settled()
    await live.engine.unlearn(user_id)
    with pytest.raises(FeedbackNotFound):
        await live.feedback(outcome.feedback_id)
    assert not live.folder(user_id).exists()
    registered = await live.host.rpc("heed_register", row.lora_int_id, str(live.folder(user_id, 1)))
    assert not registered["ok"]
    assert await live.notes(user_id) == []
    assert (await live.result(user_id, QUESTION)).adapter_version == 0


# -- after a restart -------------------------------------------------------------------------------------------------


async def test_feedback_from_before_a_restart_is_learned(live: Live) -> None:
    """Pending feedback and feedback whose update died with heed both train."""
    user_id = await live.person()
    answer = await live.ask(user_id, QUESTION)
    waiting, interrupted = [await live.say(answer, text) for text in ("no emoji please", "use bullet points")]
    await live.database.write(lambda s: feedback.begin_training(s, interrupted.id))
    assert await live.engine.resume_pending() >= 2
    await live.engine.settled()
    statuses = [(await live.feedback(row.id)).status for row in (waiting, interrupted)]
    assert statuses == [FeedbackStatus.LEARNED] * 2
    assert (await live.user(user_id)).active_version == 2


async def test_a_note_from_before_a_restart_is_kept(live: Live) -> None:
    """Committed and never handled, it stands in the prompt after the start."""
    user_id = await live.person()
    await live.say(await live.ask(user_id, QUESTION), "my dog is Rex", kind=FeedbackKind.NOTE)
    await live.engine.resume_pending()
    assert (await live.result(user_id, QUESTION)).notes == ["my dog is Rex"]


async def test_who_turned_learning_off_meanwhile_is_not_trained(live: Live) -> None:
    """Pending feedback of a person without consent is kept, not learned."""
    user_id = await live.person()
    row = await live.say(await live.ask(user_id, QUESTION), "no emoji please")
    await live.database.write(lambda s: people.set_learning(s, user_id, False))
    await live.engine.resume_pending()
    await live.engine.settled()
    assert (await live.feedback(row.id)).status == FeedbackStatus.KEPT
    assert (await live.user(user_id)).active_version == 0


async def test_feedback_on_an_old_answer_still_trains(live: Live) -> None:
    """The answer is found by its id and trained on by its stored tokens, however much was said since."""
    user_id = await live.person()
    old = await live.ask(user_id, QUESTION)
    for text in ("What is paella?", "Where is Oslo?"):
        await live.ask(user_id, text)
    assert (await live.teach(old, "no emoji please")).status == "learned"
    stored = await live.database.read(lambda s: completions.get(s, user_id, old.id))
    assert stored.completion_token_ids == old.completion_token_ids


async def test_a_start_gives_up_candidates_of_an_earlier_heed(tmp_path: Path) -> None:
    """A candidate whose update died is rejected and its directory swept; an accepted version stays."""
    folder = tmp_path / "data"
    async with opened(folder) as database:
        user_id = await database.write(person)
        await database.write(lambda s: accepted(s, user_id, None))
        left = await database.write(lambda s: versions.allocate(s, user_id, 1, "m", None, None))
        for number in (1, left.number):
            (folder / "adapters" / user_id / str(number)).mkdir(parents=True)
        engine = Engine(EngineConfig(model=str(tmp_path / "none"), data_dir=folder), database)
        with pytest.raises(ModelNotFoundError):
            await engine.start()
        rows = await database.read(lambda s: versions.history(s, user_id))
        assert [r.state for r in rows] == [VersionState.REJECTED, VersionState.ACCEPTED]
        assert [p.name for p in (folder / "adapters" / user_id).iterdir()] == ["1"]


# -- state -----------------------------------------------------------------------------------------------------------


async def test_a_running_engine_says_so(live: Live) -> None:
    """It is ready and healthy, and the pocket model asks for greedy answers."""
    assert live.engine.is_ready
    assert live.engine.health() == {"model": "ok"}
    assert live.engine.sampling == Sampling()


async def test_a_model_that_answers_before_its_parts_are_built_is_not_ready(tmp_path: Path) -> None:
    """vLLM is up before the calibration is read: a question in between is told to wait, not answered with an error."""
    async with opened(tmp_path) as database:
        engine = Engine(EngineConfig(str(tmp_path), tmp_path), database)
        engine._on_state("ready", "12.0 s")
        assert not engine.is_ready
        assert engine.health() == {"model": "starting"}
        assert engine.loads() == {}


async def test_a_model_of_another_architecture_is_refused_by_name_at_once(tmp_path: Path) -> None:
    """The sentence names what it is and what to choose; vLLM's log was not even begun."""
    (tmp_path / "config.json").write_text('{"architectures": ["Qwen3MoeForCausalLM"]}')
    database = Database.open(tmp_path)
    with pytest.raises(ArchitectureNotSupported, match="Qwen3MoeForCausalLM"):
        await Engine(EngineConfig(str(tmp_path), tmp_path), database).start()
    await database.close()
    assert not (tmp_path / "logs").exists()


async def test_a_model_that_is_not_there_is_one_clear_error(tmp_path: Path) -> None:
    """Nothing is started; the message names the folder, and stopping is harmless."""
    database = Database.open(tmp_path / "data")
    engine = Engine(EngineConfig(model=str(tmp_path / "none"), data_dir=tmp_path / "data"), database)
    with pytest.raises(ModelNotFoundError, match="none"):
        await engine.start()
    assert not engine.is_ready
    assert engine.health()["model"].startswith("starting")
    await engine.stop()
    await database.close()


async def test_an_engine_that_dies_during_a_lesson_learns_it_after_its_restart(live: Live, death: Death) -> None:
    """The update is done again, as if it were the first time."""
    assert (death.outcome.status, death.outcome.note) == ("learned", "no emoji please")
    assert (await live.feedback(death.outcome.feedback_id)).attempts == 2
    assert len(await live.notes(death.pupil)) == 1
    assert (await live.result(death.pupil, QUESTION)).adapter_version == 1
    assert live.engine.is_ready
    runs = await live.updates(death.pupil, 9)
    assert [r.status for r in runs] == ["accepted", "failed"]


async def test_a_lesson_under_way_answers_with_its_note(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """While it is trained the next answer comes at once, with the note in its prompt, and its progress is known."""
    user_id = await live.person()
    given = await live.say(await live.ask(user_id, "Tell me about the koala"), "no emoji please")
    training, may_go_on = held_training(live, monkeypatch)
    learning = asyncio.create_task(live.engine.learn(given.id))
    await asyncio.wait_for(training.wait(), PATIENCE_S)
    assert (await live.result(user_id, "What is paella?")).notes == ["no emoji please"]
    progress = await live.engine.lesson_progress(given.id)
    assert progress is not None
    assert (progress.status, progress.phase, progress.place) == ("running", "train", 0)
    assert 0 < progress.share < 1
    may_go_on.set()
    await learning
    assert await live.engine.lesson_progress(given.id) is None


async def test_a_cancelled_lesson_leaves_nothing_behind(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """No version, no note, the parent active; it is not taken up again, and the next lesson is learned as ever."""
    user_id = await live.person()
    answer = await live.ask(user_id, "Tell me about the koala")
    given = await live.say(answer, "no emoji please")
    training, _ = held_training(live, monkeypatch)
    learning = asyncio.create_task(live.engine.learn(given.id))
    await asyncio.wait_for(training.wait(), PATIENCE_S)
    assert (await live.engine.cancel_lesson(given.id)).status == (await learning).status == "cancelled"
    assert (await live.feedback(given.id)).status == FeedbackStatus.CANCELLED
    assert (await live.updates(user_id, 5))[0].status == "cancelled"
    after = await live.result(user_id, "Tell me about the koala")
    assert (after.notes, after.adapter_version, after.text) == ([], 0, answer.text)
    assert await live.engine.resume_pending() == 0
    monkeypatch.undo()
    with live.open_gates():
        assert (await live.teach(answer, "no emoji please")).status == "learned"


def held_training(live: Live, monkeypatch: pytest.MonkeyPatch) -> tuple[asyncio.Event, asyncio.Event]:
    """Hold every training until the second event is set; the first one says that it has begun."""
    trainer = live.parts.context.trainer
    train, begun, may_go_on = trainer.train, asyncio.Event(), asyncio.Event()

    async def held(*args: Any) -> Trained:
        begun.set()
        await may_go_on.wait()
        return await train(*args)

    monkeypatch.setattr(trainer, "train", held)
    return begun, may_go_on
