"""Tests of better answers: how they are written, checked, stored and taught, and that a failure harms nothing else."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest

from engine.config import BetterAnswersConfig, ConsolidationConfig, EngineConfig
from engine.consolidation.better_answers import (
    BASE_MODEL,
    BetterAnswers,
    is_rested,
    look_at,
    newest_s,
    refusal,
    with_better_answers,
)
from engine.consolidation.material import Material, gather
from engine.consolidation.teacher_endpoint import Draft
from engine.prompts.hindsight import Hindsight
from storage.conversations import completions
from storage.database import Session
from storage.kinds import BetterState, ConsentChoice, FeedbackStatus, NoteState
from storage.learning import better_answers, feedback, notes
from storage.people import consent
from storage.tables import BetterAnswer, Completion, Consent, Feedback, Note
from tests.contract.teacher_server import MODEL, Fault, TeacherServer
from tests.engine.live import Live
from tests.engine.rows import completion, opened, person, said

T = TypeVar("T")
CONFIG = EngineConfig(model="pocket", data_dir=Path())
HOUR_S = 3600.0
MIN_PRESERVED = CONFIG.gate.min_preserved
ANSWER = "The koala lives in Australia and sleeps 20 hours a day."


def in_storage(folder: Path, work: Callable[[Session], T]) -> T:
    """Do the work in a database of its own."""

    async def run() -> T:
        async with opened(folder) as database:
            return await database.write(work)

    return asyncio.run(run())


def answered(s: Session, user_id: str, text: str = ANSWER, **fields: Any) -> Completion:
    """A stored answer."""
    return completions.add(s, completion(user_id, text=text, **fields))


def disliked(s: Session, user_id: str, answer: Completion) -> Feedback:
    """A thumb down without words."""
    row, _ = feedback.add(s, Feedback(user_id=user_id, completion_id=answer.id, kind="reaction", value="-1"))
    return feedback.set_status(s, row.id, FeedbackStatus.KEPT)


def written(s: Session, answer: Completion, **fields: Any) -> BetterAnswer:
    """A better answer that was accepted."""
    values: dict[str, Any] = {"text": "Better.", "source": BASE_MODEL, "notes": [], "state": BetterState.ACCEPTED}
    row = BetterAnswer(user_id=answer.user_id, completion_id=answer.id, **(values | fields))
    return better_answers.add(s, row)


@pytest.mark.parametrize(
    ("draft", "words"),
    [
        (Draft("Koalas live in Australia. They sleep 20 hours.", True), ""),
        (Draft("koalas live in australia and sleep 20 hours.", True), ""),
        (Draft("Koalas live in Australia.", True), "drops facts"),
        (Draft(ANSWER + " ", True), "answered already"),
        (Draft("Koalas live in Australia. They sleep 20 hours.", False), "no whole answer"),
        (Draft("", True), "no whole answer"),
        (Draft("Australia, 20 <|im_end|>", True), "no whole answer"),
        (Draft("Australia, 20 ```", True), "no whole answer"),
    ],
)
def test_a_draft_must_be_whole_new_and_keep_the_facts(draft: Draft, words: str) -> None:
    """Names count in any capitals, and a number counts by itself."""
    reason = refusal(ANSWER, draft, MIN_PRESERVED)
    assert (words in reason, bool(reason)) == (True, bool(words))


def test_only_answers_that_nobody_corrected_or_gave_again_are_looked_at(tmp_path: Path) -> None:
    """Answers corrected, retried, tried before, too long or another person's are left out; a thumb down is noted."""

    def work(s: Session) -> tuple[dict[str, bool], list[str]]:
        ana, ben = person(s), person(s, "ben")
        silent, bad = answered(s, ana), answered(s, ana)
        disliked(s, ana, bad)
        said(s, ana, "too long")
        dropped = answered(s, ana)
        again = answered(s, ana, retry_of=dropped.id)
        written(s, answered(s, ana), state=BetterState.REJECTED)
        answered(s, ana, prompt_token_ids=[1] * 600)
        answered(s, ana, completion_token_ids=[], logprobs=[])
        answered(s, ben)
        found = look_at(s, ana, CONFIG)
        return {e.completion_id: e.is_disliked for e in found.evidence}, [silent.id, bad.id, again.id]

    found, (silent, bad, again) = in_storage(tmp_path, work)
    assert found == {silent: False, bad: True, again: False}


def test_an_answer_is_held_against_the_approved_one_to_the_same_question(tmp_path: Path) -> None:
    """The answer has lost half of the facts of the approved one."""

    def work(s: Session) -> dict[str, float | None]:
        ana = person(s)
        answered(s, ana, is_gold=True)
        answered(s, ana, text="It lives in Australia.")
        other = answered(s, ana, messages=[{"role": "user", "content": "bye"}])
        preserved = {e.completion_id: e.preserved for e in look_at(s, ana, CONFIG).evidence}
        return {("other" if key == other.id else str(value)): value for key, value in preserved.items()}

    assert in_storage(tmp_path, work) == {"1.0": 1.0, "0.5": 0.5, "other": None}


@pytest.mark.parametrize(("age_s", "expected"), [(1.0, False), (21 * HOUR_S, True), (-9 * HOUR_S, True)])
def test_cycles_are_apart_also_where_the_clock_jumps(tmp_path: Path, age_s: float, expected: bool) -> None:
    """A cycle waits twenty hours after the newest try; a try in the future does not block it for good."""

    def work(s: Session) -> bool:
        ana = person(s)
        row = written(s, answered(s, ana))
        return is_rested(newest_s(s, ana), row.created_at + age_s, BetterAnswersConfig())

    assert in_storage(tmp_path, work) is expected


def test_a_better_answer_takes_the_place_of_the_thumb_down(tmp_path: Path) -> None:
    """The teacher sees the better answer as a solution, and the thumb down is taken in all the same."""

    def work(s: Session) -> tuple[Material, str, str]:
        ana = person(s)
        bad, worse = answered(s, ana), answered(s, ana)
        disliked(s, ana, bad)
        disliked(s, ana, worse)
        row = written(s, bad)
        return with_better_answers(s, ana, gather(s, ana, ConsolidationConfig()), CONFIG), row.id, worse.id

    found, better, worse = in_storage(tmp_path, work)
    assert (found.num_new, found.better_ids) == (2, [better])
    assert [signal.completion.id == worse for signal in found.weak] == [True, False]
    assert found.weak[1].hindsight == Hindsight(solution="Better.")
    assert found.weak[1].weight == CONFIG.curriculum.weight


@pytest.mark.parametrize("why", ["a note came", "a note went", "corrected since"])
def test_what_does_not_hold_any_more_is_taken_in_and_not_taught(tmp_path: Path, why: str) -> None:
    """A better answer checked against old notes, or corrected in words since, is taken in and not taught."""

    def work(s: Session) -> Material:
        ana = person(s)
        answer = answered(s, ana)
        note = notes.add(s, Note(user_id=ana, text="no emoji"))
        written(s, answer, notes=["no emoji"])
        if why == "a note came":
            notes.add(s, Note(user_id=ana, text="be brief"))
        elif why == "a note went":
            notes.set_state(s, note.id, NoteState.DELETED)
        else:
            feedback.add(s, Feedback(user_id=ana, completion_id=answer.id, kind="correction", text="too long"))
        return with_better_answers(s, ana, gather(s, ana, ConsolidationConfig()), CONFIG)

    found = in_storage(tmp_path, work)
    assert (found.weak, len(found.better_ids)) == ([], 1)


# -- with the real engine ----------------------------------------------------------------------------------------------

QUESTION, NOTE = "Tell me about the koala", "use lowercase"


def on_the_engine(test: T) -> T:
    """Mark a test that needs the running engine."""
    for mark in (pytest.mark.engine, pytest.mark.asyncio(loop_scope="session")):
        test = mark(test)
    return test


async def cycle(live: Live, user_id: str, **fields: Any) -> bool:
    """Run one cycle with the parts of the running engine and settings of its own."""
    context = live.parts.context
    config = replace(context.config, curriculum=BetterAnswersConfig(**fields))
    found, last_s = await live.database.read(lambda s: (look_at(s, user_id, config), newest_s(s, user_id)))
    return await BetterAnswers(replace(context, config=config)).cycle(found, last_s)


async def unhappy(live: Live) -> tuple[str, Completion]:
    """Return a new person who disliked an answer and then wrote a note."""
    user_id = await live.person()
    answer = await live.ask(user_id, QUESTION)
    await live.database.write(lambda s: disliked(s, user_id, answer))
    await live.database.write(lambda s: notes.add(s, Note(user_id=user_id, text=NOTE, num_tokens=5)))
    return user_id, answer


async def tries(live: Live, user_id: str) -> list[BetterAnswer]:
    """Return the better answers written for a person, newest first."""
    return await live.database.read(lambda s: better_answers.recent(s, user_id, 99))


@on_the_engine
async def test_the_base_model_writes_what_the_notes_want_and_a_consolidation_teaches_it(live: Live) -> None:
    """The better answer is stored with its source, checked and taught once; a second cycle has to wait."""
    user_id, answer = await unhappy(live)
    assert answer.text != answer.text.lower()
    outcome = await live.engine.consolidate(user_id)
    (row,) = await tries(live, user_id)
    assert (row.state, row.source, row.notes, row.completion_id) == ("accepted", BASE_MODEL, [NOTE], answer.id), row
    assert row.text == row.text.lower()
    assert row.preserved is not None
    assert row.preserved >= MIN_PRESERVED
    assert (outcome.status, outcome.num_new, outcome.num_weak, outcome.num_better) == ("learned", 1, 1, 1), outcome
    assert row.consolidated_by == outcome.update_id
    await live.database.write(lambda s: disliked(s, user_id, answer))
    again = await live.engine.consolidate(user_id)
    assert (again.num_better, len(await tries(live, user_id))) == (0, 1)


@on_the_engine
async def test_an_endpoint_writes_in_its_place(live: Live) -> None:
    """The endpoint sees conversation, notes and complaint, and its answer passes the same checks."""
    user_id, answer = await unhappy(live)
    async with TeacherServer(lambda _: answer.text.lower()) as server:
        await cycle(live, user_id, **server.settings())
        (call,) = server.calls
    (row,) = await tries(live, user_id)
    assert (row.state, row.source) == ("accepted", f"{MODEL} at 127.0.0.1"), row.reason
    assert NOTE in call["messages"][0]["content"]
    assert "I did not like this answer" in call["messages"][-1]["content"]


@on_the_engine
@pytest.mark.parametrize("how", ["against the note", "without the facts"])
async def test_what_fails_the_persons_checks_is_kept_with_its_reason_and_never_taught(live: Live, how: str) -> None:
    """A refused draft is stored with its reason, never taught and not tried again."""
    user_id, answer = await unhappy(live)
    text = answer.text.upper() if how == "against the note" else "it is a nice one."
    async with TeacherServer(lambda _: text) as server:
        await cycle(live, user_id, **server.settings())
        await cycle(live, user_id, cooldown_s=0.0, **server.settings())
        assert len(server.calls) == 1
    (row,) = await tries(live, user_id)
    assert row.state == "rejected"
    assert (NOTE if how == "against the note" else "drops facts") in row.reason
    assert await live.database.read(lambda s: better_answers.waiting(s, user_id)) == []


@on_the_engine
async def test_an_endpoint_that_is_gone_ends_the_cycle_and_nothing_else(
    live: Live, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing is stored, one log line gives the reason, and later cycles try the same answers within the limit."""
    user_id, answer = await unhappy(live)
    second = await live.ask(user_id, "Tell me about the owl")
    await live.database.write(lambda s: disliked(s, user_id, second))
    async with TeacherServer(lambda _: answer.text.lower()) as server:
        settings = server.settings()
        server.fail(Fault(503))
        with caplog.at_level(logging.WARNING):
            await cycle(live, user_id, **settings)
        assert (len(server.calls), await tries(live, user_id)) == (1, [])
        assert "status 503" in caplog.text
        for number in (1, 2):
            await cycle(live, user_id, max_answers=1, cooldown_s=0.0, **settings)
            assert len(await tries(live, user_id)) == number


@on_the_engine
async def test_rubbish_shortens_the_cycle_and_is_given_up_after_three_nights(live: Live) -> None:
    """Each try is on record, and after three the answer is left alone."""
    user_id, _ = await unhappy(live)
    async with TeacherServer() as server:
        for _ in range(4):
            server.fail(Fault(body=b"<html>"))
            await cycle(live, user_id, cooldown_s=0.0, **server.settings())
        assert len(server.calls) == 3
    assert [row.state for row in await tries(live, user_id)] == ["failed"] * 3


@on_the_engine
@pytest.mark.parametrize(("wording", "num_sent"), [("1", 0), ("1+teacher", 1)])
async def test_only_whom_the_words_told_is_sent_to_an_endpoint(live: Live, wording: str, num_sent: int) -> None:
    """The base model writes for people whose consent did not mention an endpoint."""
    user_id, answer = await unhappy(live)
    step = Consent(user_id=user_id, choice=ConsentChoice.YES, wording=wording, platform="telegram", place="5")
    await live.database.write(lambda s: consent.record(s, step, is_permitted=True))
    async with TeacherServer(lambda _: answer.text.lower()) as server:
        await cycle(live, user_id, **server.settings())
        assert len(server.calls) == num_sent
    (row,) = await tries(live, user_id)
    assert (row.source == BASE_MODEL) == (num_sent == 0)


@on_the_engine
async def test_what_goes_against_the_notes_is_found_without_a_word_about_it(live: Live) -> None:
    """An answer from before the note has the worst gain; one that follows the note is left alone; off means off."""
    user_id = await live.person()
    before = await live.ask(user_id, QUESTION)
    await live.database.write(lambda s: notes.add(s, Note(user_id=user_id, text=NOTE, num_tokens=5)))
    after = await live.ask(user_id, "Tell me about the owl")
    assert after.text == after.text.lower()
    await cycle(live, user_id, is_on=False)
    assert await tries(live, user_id) == []
    await cycle(live, user_id)
    assert [row.completion_id for row in await tries(live, user_id)] == [before.id]
