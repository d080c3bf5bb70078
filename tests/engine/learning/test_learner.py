"""engine.learning.learner: one update, from feedback to what was learned."""

import asyncio
import json
import math
from dataclasses import asdict, replace
from typing import Any

import pytest

from bot.agent.state import SYSTEM
from bot.agent.tools import definitions
from engine.adapter_ref import CONFIG_FILE, TENSORS_FILE, ZERO_ADAPTER
from engine.adapters.training_batch import BATCH_FILE
from engine.config import LearnConfig
from engine.errors import ConversationRefused
from engine.gates.candidate import Verdict
from engine.learning import candidates
from engine.learning import learner as learner_module
from engine.learning.intent import NUM_SHOWN
from engine.learning.learner import DEEPENING, QUIET_S, Learner
from engine.learning.update_state import UpdateState
from engine.prompts.builder import PromptBuilder
from engine.prompts.tool_messages import carried
from engine.requests import ChatMessage, Tool
from engine.sample import Sample
from engine.samples import lessons
from engine.samples.demonstrations import NUM_CHATS, OPENING_LENGTH
from storage.conversations import completions
from storage.kinds import FeedbackStatus, NoteState, Scope, VersionState
from storage.learning import feedback, updates, versions
from storage.people import people
from storage.tables import Completion, UpdateRun
from tests.engine.live import Live
from tests.patience import PATIENCE_S
from tests.storage.stored import directory_sha256

pytestmark = [pytest.mark.engine, pytest.mark.asyncio(loop_scope="session")]

QUESTION = "Tell me about the koala"


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The conversations that teachers read from now on, each in one text, those of the newest lesson first."""
    found: list[str] = []
    teacher_samples = lessons.teacher_samples

    def noted(asked: Any, shown: Any, responses: Any, prompts: Any) -> list[Sample]:
        found[:0] = [" ".join(str(m["content"]) for m in messages) for messages in shown]
        return teacher_samples(asked, shown, responses, prompts)

    monkeypatch.setattr(lessons, "teacher_samples", noted)
    return found


async def _call(live: Live, monkeypatch: pytest.MonkeyPatch) -> Completion:
    """Return the answer of a person's agent; the bank has tasks to show a wish on."""
    tasks = tuple((("user", f"Set host to {n} in app.cfg."),) for n in range(20))
    bank = replace(live.parts.context.bank, tasks=tasks, task_tools=("read",))
    monkeypatch.setattr(live.parts.context.rollouts, "_bank", bank)
    system: ChatMessage = {"role": "system", "content": SYSTEM}
    tools: tuple[Tool, ...] = tuple(definitions())
    return await live.ask(await live.person(), "Change host from low to high in app.cfg.", prior=(system,), tools=tools)


async def test_a_denied_call_has_a_version_of_its_own_before_the_whole_lesson(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It answers at once; the whole lesson goes on from the version before both, and takes its place."""
    answer = await _call(live, monkeypatch)
    with live.open_gates():
        outcome = await live.teach(answer, "use edit_lines, not edit", scope=Scope.ALWAYS)
        await live.engine.settled()
    assert (outcome.status, outcome.adapter_version) == ("learned", 1)
    assert outcome.steps == LearnConfig().work_first_steps
    whole, first = await live.updates(answer.user_id, 5)
    assert [(run.kind, run.status, run.version) for run in (first, whole)] == [
        ("correction", "accepted", 1),
        (DEEPENING, "accepted", 2),
    ]
    assert whole.parent_version == 0
    assert first.steps is not None
    assert whole.steps is not None
    assert whole.steps > 3 * first.steps
    assert [(await live.version(answer.user_id, n)).state for n in (1, 2)] == [
        VersionState.PRUNED,
        VersionState.ACCEPTED,
    ]
    assert (await live.engine.undo(answer.user_id)).version == 0
    assert (await live.feedback(outcome.feedback_id)).status == FeedbackStatus.UNDONE


async def test_a_whole_lesson_that_is_refused_leaves_the_first_version(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a second, gentler try."""
    verdicts = [Verdict(is_accepted=False, reason="went too far")] * 2
    judge = candidates.judge
    answer = await _call(live, monkeypatch)
    with live.open_gates():
        outcome = await live.teach(answer, "use edit_lines, not edit", scope=Scope.ALWAYS)
    assert (outcome.status, outcome.adapter_version) == ("learned", 1)
    monkeypatch.setattr(candidates, "judge", lambda *given: verdicts.pop() if verdicts else judge(*given))
    await live.engine.settled()
    runs = await live.updates(answer.user_id, 5)
    assert [(run.kind, run.status) for run in runs] == [(DEEPENING, "rejected")] * 2 + [("correction", "accepted")]
    assert (await live.feedback(outcome.feedback_id)).status == FeedbackStatus.LEARNED
    user = await live.database.read(lambda s: people.get(s, answer.user_id))
    assert user.active_version == 1


async def test_the_whole_lesson_waits_for_the_call_that_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """It begins when nothing has been answered for a moment, and goes on at last where answers never end."""

    class Host:
        num_running = 1

    learner = Learner.__new__(Learner)
    learner._host = host = Host()  # type: ignore[assignment]
    monkeypatch.setattr(learner_module, "LONGEST_TRY_S", PATIENCE_S)
    waiting = asyncio.create_task(learner._tried_again())
    await asyncio.sleep(2 * QUIET_S)
    assert not waiting.done()
    host.num_running = 0
    await asyncio.wait_for(waiting, PATIENCE_S)
    host.num_running = 1
    monkeypatch.setattr(learner_module, "LONGEST_TRY_S", QUIET_S)
    await asyncio.wait_for(learner._tried_again(), PATIENCE_S)


async def test_a_first_version_that_is_undone_stays_so(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole lesson is broken off, and never comes back."""
    answer = await _call(live, monkeypatch)
    with live.open_gates():
        outcome = await live.teach(answer, "use edit_lines, not edit", scope=Scope.ALWAYS)
    assert (await live.engine.undo(answer.user_id)).version == 0
    await live.engine.settled()
    assert [run.version for run in await live.updates(answer.user_id, 5) if run.status == "accepted"] == [1]
    assert (await live.feedback(outcome.feedback_id)).status == FeedbackStatus.UNDONE
    user = await live.database.read(lambda s: people.get(s, answer.user_id))
    assert user.active_version == 0


async def test_a_first_version_that_is_refused_leaves_the_whole_lesson(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then there is one version, and its outcome is the lesson's."""
    verdicts = [Verdict(is_accepted=False, reason="went too far")]
    judge = candidates.judge
    monkeypatch.setattr(candidates, "judge", lambda *given: verdicts.pop() if verdicts else judge(*given))
    answer = await _call(live, monkeypatch)
    with live.open_gates():
        outcome = await live.teach(answer, "use edit_lines, not edit", scope=Scope.ALWAYS)
    first = (await live.updates(answer.user_id, 5))[-1]
    assert (first.status, first.steps, first.error) == ("rejected", LearnConfig().work_first_steps, "went too far")
    assert outcome.status == "learned"
    assert outcome.steps > LearnConfig().work_first_steps
    await live.engine.settled()
    assert DEEPENING not in [run.kind for run in await live.updates(answer.user_id, 5)]


async def test_a_correction_at_work_is_shown_on_tasks(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """The teacher reads them behind the same system message and with the same tools; chats are only held."""
    asked: list[list[ChatMessage]] = []
    trained: list[list[Sample]] = []
    teacher_samples, train = lessons.teacher_samples, live.parts.learner._candidates.train

    def noted(conversations: Any, *others: Any) -> list[Sample]:
        asked.extend(conversations)
        return teacher_samples(conversations, *others)

    async def training(update_id: str, parent: Any, samples: list[Sample], learn: LearnConfig) -> Any:
        trained.append(samples)  # the newest is the lesson; a warm-up may come before
        return await train(update_id, parent, samples, learn)

    monkeypatch.setattr(lessons, "teacher_samples", noted)
    monkeypatch.setattr(live.parts.learner._candidates, "train", training)
    answer = await _call(live, monkeypatch)
    await live.teach(answer, "use edit_lines, not edit", scope=Scope.ALWAYS)
    await live.engine.settled()
    system, tools = answer.messages[0], definitions()
    whole = LearnConfig().at_work().num_teacher_rollouts
    assert 1 + whole <= len(asked) <= 1 + NUM_SHOWN + whole
    assert all(messages[0] == system and carried(messages) == tools for messages in asked)
    text = live.host.tokenizer.decode
    shown = [text(sample.student_ids) for sample in trained[-1] if sample.kind == "counterfactual"]
    held = [sample for sample in trained[-1] if sample.kind == "anchor" and sample.teacher == "current"]
    assert all(SYSTEM in prompt for prompt in shown)
    assert len(held) == NUM_CHATS
    assert not any(SYSTEM in text(sample.student_ids) for sample in held)


async def test_a_correction_makes_version_one_active(live: Live) -> None:
    """Learned, accepted by every gate, in the next answer, with its note, its files and its record."""
    user_id = await live.person()
    answer = await live.ask(user_id, QUESTION)
    outcome = await live.teach(answer, "no emoji please")
    assert (outcome.status, outcome.adapter_version, outcome.note) == ("learned", 1, "no emoji please")
    assert outcome.gate["accepted"] is True
    assert outcome.divergence_before is not None
    assert outcome.divergence_after is not None
    assert outcome.divergence_after < outcome.divergence_before
    assert (await live.result(user_id, QUESTION)).adapter_version == 1
    assert (await live.feedback(outcome.feedback_id)).status == FeedbackStatus.LEARNED
    run = (await live.updates(user_id, 5))[0]
    assert (run.id, run.status, run.version, run.parent_version) == (outcome.update_id, "accepted", 1, 0)
    assert run.phases_ms is not None
    assert run.phases_ms | {"activate": outcome.phases_ms["activate"]} == outcome.phases_ms
    assert run.notes == []
    assert run.curves == outcome.curves
    assert [len(outcome.curves[name]) for name in ("loss", "divergence")] == [outcome.steps] * 2
    assert outcome.curves["divergence"][-1] < outcome.curves["divergence"][0]


async def test_what_makes_a_version_active_also_says_that_its_feedback_is_learned(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one transaction: heed killed right after it must not find the feedback open and train on it once more."""
    flip, seen = live.parts.context.active.flip, []

    async def flipping(user_id: str, keep: int, accept: Any, replaced: int) -> None:
        await flip(user_id, keep, accept, replaced)
        told = await live.database.read(lambda s: feedback.history(s, user_id, 1))
        logged = await live.updates(user_id, 1)
        seen.append((told[0].status, logged[0].status, logged[0].version))

    monkeypatch.setattr(live.parts.context.active, "flip", flipping)
    await live.lesson()
    assert seen == [(FeedbackStatus.LEARNED, "accepted", 1)]


async def test_the_phases_add_up_to_the_duration(live: Live) -> None:
    """Every millisecond of an update is booked under a phase, but for the last row."""
    _, outcome = await live.pupil()
    assert {"rollouts", "reading", "train", "publish", "activate"} <= outcome.phases_ms.keys()
    assert 0 < outcome.duration_ms - sum(outcome.phases_ms.values()) < 0.2 * outcome.duration_ms + 20


async def test_a_version_on_disk_is_what_its_row_says(live: Live) -> None:
    """Its directory is a PEFT adapter with the row's SHA-256 and size."""
    user_id, _ = await live.pupil()
    row = await live.version(user_id, 1)
    folder = live.folder(user_id, 1)
    assert row.state == VersionState.ACCEPTED
    assert directory_sha256(folder) == row.sha256
    assert row.size_bytes == sum(f.stat().st_size for f in folder.iterdir())
    assert {f.name for f in folder.iterdir()} == {CONFIG_FILE, TENSORS_FILE, BATCH_FILE}
    assert json.loads((folder / CONFIG_FILE).read_text())["peft_type"] == "LORA"


async def test_the_heat_tells_which_tokens_the_correction_pushed(live: Live) -> None:
    """One value per token of the corrected answer, in its order, the unwanted emoji below zero."""
    user_id = await live.person()
    answer = await live.ask(user_id, QUESTION)
    outcome = await live.teach(answer, "no emoji please")
    texts = [live.host.tokenizer.decode([t]) for t in answer.completion_token_ids]
    assert [text for text, _ in outcome.heat] == texts
    assert all(math.isfinite(value) for _, value in outcome.heat)
    assert min(value for _, value in outcome.heat) < -1


async def test_the_very_next_answer_carries_the_note(live: Live) -> None:
    """The lesson stands in the prompt at once, and never in the student's conversation."""
    user_id, outcome = await live.lesson()
    answer = await live.result(user_id, QUESTION)
    assert answer.notes == [outcome.note]
    assert "no emoji please" in live.host.tokenizer.decode(answer.prompt_token_ids)
    assert answer.messages == [{"role": "user", "content": QUESTION}]


async def test_thanks_teach_nothing(live: Live) -> None:
    """Words that do not move the teacher make no version and no note, and the person is told."""
    user_id = await live.person()
    outcome = await live.teach(await live.ask(user_id, QUESTION), "thank you")
    assert (outcome.status, outcome.adapter_version, outcome.note) == ("kept", 0, None)
    assert outcome.reason
    assert (await live.feedback(outcome.feedback_id)).status == FeedbackStatus.KEPT
    assert await live.database.read(lambda s: versions.history(s, user_id)) == []
    assert (await live.updates(user_id, 5))[0].status == "skipped"


async def test_a_rewritten_answer_teaches_its_style(live: Live) -> None:
    """An ideal is learned like a correction; its note shows the text."""
    user_id = await live.person()
    ideal = "Sure, the koala is a mammal and weighs 10 kg."
    outcome = await live.teach(await live.ask(user_id, QUESTION), ideal, kind="ideal")
    assert (outcome.status, outcome.adapter_version) == ("learned", 1)
    assert outcome.note is None or ideal in outcome.note


async def test_a_teacher_may_read_a_correction_as_a_note_alone(live: Live, seen: list[str]) -> None:
    """Without hindsight a correction is read once, beside the notes; a rewritten answer is read as before."""
    for own in (True, False):
        seen.clear()
        answer = await live.ask(user_id := await live.person(), QUESTION)
        outcome = await live.teach(answer, "no emoji please", training={"reads_own_note": True, "reads_hindsight": own})
        assert outcome.status == "learned", user_id
        assert {text.count("no emoji please") for text in seen} == {2 if own else 1}
    ideal = "Sure, the koala is a mammal."
    seen.clear()
    answer = await live.ask(await live.person(), QUESTION)
    await live.teach(answer, ideal, kind="ideal", training={"reads_own_note": True, "reads_hindsight": False})
    assert seen
    assert all(ideal in text for text in seen)


async def test_a_request_chooses_the_words_around_its_feedback(live: Live, seen: list[str]) -> None:
    """And when there was nothing to learn."""
    answer = await live.ask(await live.person(), QUESTION)
    await live.teach(answer, "no emoji please", training={"hindsight_wording": "claas", "reads_own_note": False})
    assert seen
    assert all("## Hindsight context" in text for text in seen if "no emoji please" in text)
    outcome = await live.teach(answer, "no emoji please", training={"min_divergence": 100.0}, scope=Scope.ALWAYS)
    assert (outcome.status, outcome.adapter_version) == ("kept", 1)


async def test_a_teacher_reads_no_wish_that_the_new_one_replaces(live: Live, seen: list[str]) -> None:
    """The older note is superseded before the teacher answers, and the update's record says what was read."""
    user_id = await live.person()
    for text in ("keep it short", "Use emoji in your answer."):
        await live.teach(await live.ask(user_id, QUESTION), text, kind="note")
    outcome = await live.teach(await live.ask(user_id, QUESTION), "Use no emoji.")
    assert seen
    assert all("keep it short" in text and "Use emoji" not in text for text in seen)
    run = await live.database.read(lambda s: updates.get(s, user_id, outcome.update_id or ""))
    assert run.notes == ["keep it short"]


async def test_a_lesson_that_replaces_a_wish_goes_on_from_less_of_its_parent(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And says which; every other goes on from as much as ever, and is guided everywhere."""
    trained: list[tuple[float, bool]] = []
    train = live.parts.learner._candidates.train

    async def noted(run_id: str, parent: Any, samples: list[Sample], learn: LearnConfig) -> Any:
        trained.append((learn.parent_share, learn.guides_unsure))
        return await train(run_id, parent, samples, learn)

    monkeypatch.setattr(live.parts.learner._candidates, "train", noted)
    user_id = await live.person()
    replaced: list[list[str]] = []
    await live.teach(await live.ask(user_id, QUESTION), "Use emoji in your answer.", kind="note")
    for text in ("Use no emoji.", "Answer very briefly."):
        answer = await live.ask(user_id, QUESTION)
        outcome = await live.teach(answer, text, training={"replacing_share": 0.3}, scope=Scope.ALWAYS)
        replaced.append(outcome.replaced)
    assert trained == [(0.3, False), (0.75, True)]
    assert replaced == [["Use emoji in your answer."], []]


async def test_a_lesson_shows_how_answers_to_many_topics_begin(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """None unless asked for; at most as many as are asked for, short and of different prompts."""
    trained: list[list[Sample]] = []
    train = live.parts.learner._candidates.train

    async def noted(run_id: str, parent: Any, samples: list[Sample], learn: Any) -> Any:
        trained.append(samples)  # the newest is the lesson; a warm-up may come before
        return await train(run_id, parent, samples, learn)

    monkeypatch.setattr(live.parts.learner._candidates, "train", noted)
    lessons: list[list[Sample]] = []
    for count in (0, 6):
        answer = await live.ask(await live.person(), QUESTION)
        await live.teach(answer, "no emoji please", training={"num_openings": count})
        lessons.append(trained[-1])
    without, begun = ([s for s in samples if s.kind == "opening"] for samples in lessons)
    assert without == []
    assert len({tuple(s.student_ids) for s in begun}) == len(begun) <= 6
    assert begun
    assert all(0 < len(s.response_ids) <= OPENING_LENGTH for s in begun)
    assert all(len(s.teacher_ids) > len(s.student_ids) for s in begun)


BROKEN_NUMBERS = {"kl_to_base_weight": 1e300}  # beyond float32: the first loss is no number
FAR_TOO_FAR = {"learning_rate": 1.0, "steps": 40, "max_grad_norm": 1e9}


async def test_a_candidate_that_is_not_finite_never_becomes_active(live: Live) -> None:
    """Its gate says so, no file is written, what is told is plain numbers, and the base goes on serving."""
    user_id = await live.person()
    before = await live.ask(user_id, QUESTION)
    outcome = await live.teach(before, "no emoji please", training=BROKEN_NUMBERS)
    assert (outcome.status, outcome.adapter_version) == ("rejected", 0)
    assert outcome.gate["checks"]["finite"] is False
    assert outcome.reason
    assert json.dumps(asdict(outcome), allow_nan=False)
    assert (await live.version(user_id, 1)).state == VersionState.REJECTED
    assert not live.folder(user_id).exists()
    after = await live.result(user_id, QUESTION, notes="off")
    assert (after.adapter_version, after.completion_token_ids) == (0, before.completion_token_ids)


async def test_a_candidate_that_went_too_far_never_becomes_active(live: Live) -> None:
    """A huge step is rejected, and the version before goes on serving, token for token."""
    user_id, _ = await live.pupil()
    before = await live.result(user_id, QUESTION, notes="off")
    outcome = await live.teach(await live.ask(user_id, "What is paella?"), "too long", training=FAR_TOO_FAR)
    assert (outcome.status, outcome.adapter_version) == ("rejected", 1)
    for number in (2, 3):
        assert (await live.version(user_id, number)).state == VersionState.REJECTED
    assert not live.folder(user_id, 2).exists()
    after = await live.result(user_id, QUESTION, notes="off")
    assert (after.adapter_version, after.completion_token_ids) == (1, before.completion_token_ids)


async def test_a_refused_lesson_is_tried_once_more_and_gently(live: Live) -> None:
    """Two candidates, each with its own row, reason and figures; the person is told that both were refused."""
    user_id = await live.person()
    outcome = await live.teach(await live.ask(user_id, QUESTION), "no emoji please", training=FAR_TOO_FAR)
    second, first = await live.updates(user_id, 9)
    assert (second.id, first.status, second.status) == (outcome.update_id, "rejected", "rejected")
    assert "A gentler second try did no better." in outcome.reason
    assert "stays as a note" in outcome.reason
    assert second.gate["figures"]["update_norm"] < first.gate["figures"]["update_norm"]  # type: ignore[index]
    assert first.error
    assert first.error in outcome.reason or second.error == outcome.reason


async def test_a_gentler_try_that_passes_is_learned(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first candidate goes too far for a strict gate, the one at half the learning rate does not."""
    candidates = live.parts.learner._candidates
    _, usual = await live.pupil()
    strict = replace(candidates._config.gate, max_value_change=0.8 * usual.gate["figures"]["value_change"])
    monkeypatch.setattr(candidates, "_config", replace(candidates._config, gate=strict))
    pupil = await live.person()
    outcome = await live.teach(await live.ask(pupil, QUESTION), usual.note or "no emoji please")
    assert (outcome.status, outcome.adapter_version, outcome.reason) == ("learned", 2, "")
    assert (await live.version(pupil, 1)).state == VersionState.REJECTED
    assert [r.status for r in await live.updates(pupil, 9)] == ["accepted", "rejected"]


async def test_an_update_is_held_against_earlier_corrections_and_approved_answers(live: Live) -> None:
    """The second lesson's verdict has a figure for the first one and for an answer the person liked."""
    user_id, first = await live.pupil()
    assert "earlier_drop" not in first.gate["figures"]
    liked = await live.ask(user_id, "What is paella?")
    await live.database.write(lambda s: completions.mark_gold(s, user_id, liked.id))
    outcome = await live.teach(await live.ask(user_id, QUESTION), "use bullet points")
    assert "gold_drop" in outcome.gate["figures"]
    assert outcome.gate["checks"]["earlier"] is True


async def test_a_rejected_lesson_still_holds_as_a_note(live: Live) -> None:
    """A note that the weights could not take stays in the prompt."""
    user_id = await live.person()
    answer = await live.ask(user_id, QUESTION)
    outcome = await live.teach(answer, "no emoji please", training=FAR_TOO_FAR)
    assert outcome.status == "rejected"
    assert [(n.text, n.state) for n in await live.notes(user_id)] == [("no emoji please", NoteState.IN_PROMPT)]
    assert (await live.result(user_id, QUESTION)).notes == ["no emoji please"]


async def test_a_second_try_that_is_cancelled_as_it_begins_is_known() -> None:
    """Its row is stored all the same, and is the one whose failure is recorded."""
    may_write, stored = asyncio.Event(), UpdateRun(user_id="ana", kind="correction", parent_version=0)

    class SlowDatabase:
        async def write(self, _work: Any) -> UpdateRun:
            await may_write.wait()
            return stored

    learner = Learner.__new__(Learner)
    learner._database = SlowDatabase()  # type: ignore[assignment]
    first = UpdateRun(user_id="ana", kind="correction", parent_version=0)
    update = UpdateState(run=first, parent=ZERO_ADAPTER, learn=LearnConfig(), notes=[], facts=[])
    trying = asyncio.create_task(learner._begin_again(update, Verdict(is_accepted=False)))
    await asyncio.sleep(0)
    trying.cancel()
    await asyncio.sleep(0)
    may_write.set()
    with pytest.raises(asyncio.CancelledError):
        await trying
    assert update.run is stored


async def test_the_requests_training_values_win(live: Live) -> None:
    """Steps and learning rate of the feedback are the ones that train: three tiny steps hardly change anything."""
    user_id = await live.person()
    answer = await live.ask(user_id, QUESTION)
    outcome = await live.teach(answer, "no emoji please", training={"learning_rate": 1e-7, "steps": 3})
    assert outcome.steps == 3
    assert outcome.divergence_before is not None
    assert outcome.divergence_after == pytest.approx(outcome.divergence_before, rel=0.02)
    normal = await live.teach(await live.ask(user_id, QUESTION), "no emoji please")
    assert normal.steps > 3
    assert normal.divergence_before is not None
    assert normal.divergence_after is not None
    assert normal.divergence_after < 0.7 * normal.divergence_before


async def test_an_unknown_training_value_fails_the_update_and_nothing_else(live: Live) -> None:
    """The feedback is parked with the reason; no row says that an update still runs."""
    user_id = await live.person()
    outcome = await live.teach(await live.ask(user_id, QUESTION), "too long", training={"learning_rat": 1.0})
    assert outcome.status == "rejected"
    assert "learning_rat" in outcome.reason
    assert (await live.feedback(outcome.feedback_id)).status == FeedbackStatus.FAILED
    assert [r for r in await live.updates(user_id, 9) if r.status == "running"] == []


async def test_an_update_that_cannot_finish_leaves_no_candidate(live: Live) -> None:
    """A teacher that is not loaded: the update fails and its row says so."""
    user_id = await live.person()
    answer = await live.ask(user_id, QUESTION)
    outcome = await live.teach(answer, "too long", training={"teacher": "external"})
    assert outcome.status == "rejected"
    assert (await live.feedback(outcome.feedback_id)).status == FeedbackStatus.FAILED
    runs = await live.updates(user_id, 9)
    assert [r.status for r in runs] == ["failed"]
    assert runs[0].error
    assert await live.database.read(versions.unfinished) == []


async def test_one_persons_lesson_leaves_another_untouched(live: Live) -> None:
    """Ben's greedy answer, alone and with no cached prompt, and his adapter's hash are bit for bit the same."""
    ben, _ = await live.pupil("use lowercase")
    await live.alone()
    before = await live.result(ben, QUESTION, notes="off")
    sha256 = directory_sha256(live.folder(ben, 1))
    await live.pupil("answer in spanish")
    await live.alone()
    after = await live.result(ben, QUESTION, notes="off")
    assert after.completion_token_ids == before.completion_token_ids
    assert after.logprobs == before.logprobs
    assert after.num_cached_tokens == 0
    assert directory_sha256(live.folder(ben, 1)) == sha256 == (await live.version(ben, 1)).sha256


async def test_a_base_request_beside_adapters_is_answered_by_the_base(live: Live) -> None:
    """In one batch with three people's adapters the base model's answer is its own."""
    pupils = [(await live.pupil(text))[0] for text in ("use lowercase", "answer in spanish", "be formal")]
    alone = await live.result(pupils[0], QUESTION, adapter="base")
    base, *_ = await asyncio.gather(
        live.result(pupils[0], QUESTION, adapter="base"),
        *(live.result(user_id, QUESTION, notes="off") for user_id in pupils),
    )
    assert base.completion_token_ids == alone.completion_token_ids


async def test_deleting_the_only_learned_note_ends_at_the_base_model(live: Live) -> None:
    """With nothing left to hold, the adapter is given up."""
    user_id, _ = await live.pupil()
    (note,) = await live.notes(user_id)
    await live.engine.delete_note(user_id, note.id)
    await live.engine.settled()
    assert (await live.user(user_id)).active_version == 0
    assert await live.notes(user_id) == []


async def test_deleting_one_of_two_learned_notes_makes_the_adapter_again(live: Live) -> None:
    """A new version from the base model, taught by the other note, takes the place of the one that holds both."""
    user_id, _ = await live.pupil("no emoji please")
    await live.teach(await live.ask(user_id, QUESTION), "use lowercase")
    first, second = await live.notes(user_id)
    await live.engine.delete_note(user_id, first.id)
    await live.engine.settled()
    active = (await live.user(user_id)).active_version
    row = await live.version(user_id, active)
    assert (active, row.parent, row.feedback_id) == (3, 0, None)
    assert [n.text for n in await live.notes(user_id)] == [second.text]
    run = await live.database.read(lambda s: updates.get(s, user_id, row.update_id or ""))
    assert (run.kind, run.status) == ("rebuild", "accepted")
    assert run.gate is not None
    assert "drift" in run.gate["figures"]
    assert "unasked" not in run.gate["figures"]  # nothing of the person's came before


async def test_learning_while_others_read_disturbs_no_stream(live: Live) -> None:
    """Two streams that run through an update end with the same tokens as without one."""
    reader = await live.person()
    quiet = await live.result(reader, QUESTION)
    user_id = await live.person()
    answer = await live.ask(user_id, QUESTION)
    outcome, *during = await asyncio.gather(
        live.teach(answer, "no emoji please"), *(live.result(reader, QUESTION) for _ in range(2))
    )
    assert outcome.status == "learned"
    assert all(r.completion_token_ids == quiet.completion_token_ids for r in during)


async def test_an_adapter_has_its_persons_shape(live: Live) -> None:
    """From the first lesson on, and made again from zero."""
    user_id = await live.person()
    shape = {"lora_rank": 32, "lora_alpha": 64, "target_modules": ["q_proj", "v_proj", "down_proj"]}
    await live.database.write(lambda s: people.set_lora_shape(s, user_id, shape))
    outcome = await live.teach(await live.ask(user_id, "Tell me about the koala"), "no emoji please")
    assert outcome.status == "learned", outcome
    rebuilt = await live.engine.rebuild(user_id)
    numbers = [outcome.adapter_version] + [rebuilt.adapter_version] * (rebuilt.status == "learned")
    for number in numbers:
        config = json.loads((live.folder(user_id, number) / "adapter_config.json").read_text())
        assert (config["r"], config["lora_alpha"]) == (32, 64)
        assert sorted(config["target_modules"]) == ["down_proj", "q_proj", "v_proj"]
    assert (await live.ask(user_id, "Tell me about the tiger")).adapter_version == numbers[-1]


async def test_a_conversation_longer_than_training_reads_is_learned_from(live: Live) -> None:
    """The corrected one, and the person's other one that is taught beside it: both lose their oldest turns."""
    user_id, limit = await live.person(), 300
    turns = [{"role": role, "content": f"{role} says {i}"} for i in range(40) for role in ("user", "assistant")]
    other = await live.ask(user_id, "What is judo?", prior=tuple(turns), notes="off")
    answer = await live.ask(user_id, QUESTION, prior=tuple(turns), notes="off")
    assert min(len(other.prompt_token_ids), len(answer.prompt_token_ids)) > limit
    training = {"max_sequence_tokens": limit, "num_counterfactuals": 2}
    with live.open_gates():
        outcome = await live.teach(answer, "no emoji please", training=training, scope="always")
    assert outcome.status == "learned", outcome.reason
    batch = (live.folder(user_id, outcome.adapter_version) / BATCH_FILE).read_text().splitlines()[1:]
    samples = [json.loads(line) for line in batch]
    assert max(len(s["teacher_ids"]) + len(s["response_ids"]) for s in samples) <= limit
    shown = [live.host.tokenizer.decode(s["student_ids"]) for s in samples if s.get("behaviour_logprobs") is None]
    assert any("user says 39" in text and "user says 0" not in text and QUESTION in text for text in shown)
    assert any("user says 39" in text and "What is judo?" in text for text in shown)


async def test_a_conversation_that_the_template_refuses_is_left_out_of_a_lesson(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wish is taught on other prompts; a remark, which is about nothing else, ends with the reason and is not tried
    again.
    """
    user_id = await live.person()
    answer = await live.ask(user_id, QUESTION)
    templated = PromptBuilder._templated

    def refusing(prompts: PromptBuilder, messages: Any, *tools: Any) -> str:
        if any("koala" in message["content"] for message in messages):
            raise ConversationRefused("no koalas")
        return templated(prompts, messages, *tools)

    monkeypatch.setattr(PromptBuilder, "_templated", refusing)
    outcome = await live.teach(answer, "no emoji please", scope="answer")
    assert outcome.status == "kept"
    assert "refuses this conversation: no koalas" in outcome.reason
    assert (await live.feedback(outcome.feedback_id)).status == FeedbackStatus.KEPT
    assert len(await live.updates(user_id, 5)) == 1
    with live.open_gates():
        assert (await live.teach(answer, "no emoji please", scope="always")).status == "learned"
