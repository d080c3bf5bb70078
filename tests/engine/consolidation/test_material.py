"""Tests of the material: what is taken in, what is rehearsed, and how much it weighs."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.config import ConsolidationConfig, EngineConfig
from engine.consolidation.material import DISLIKED, Material, gather, steps_of, weight_of
from engine.prompts.hindsight import Hindsight
from storage.conversations import completions
from storage.database import Session
from storage.kinds import FeedbackStatus, NoteState
from storage.learning import feedback, notes, signals
from storage.tables import Chat, Completion, Feedback
from tests.engine.rows import completion, opened, person, said, taught

T = TypeVar("T")
CONFIG = ConsolidationConfig()
ENGINE = EngineConfig(model="m", data_dir=Path("data"))


def kept(s: Session, user_id: str, completion_id: str | None, kind: str, value: str = "") -> Feedback:
    """Store feedback that trains nothing at once."""
    row, _ = feedback.add(s, Feedback(user_id=user_id, completion_id=completion_id, kind=kind, value=value))
    return feedback.set_status(s, row.id, FeedbackStatus.KEPT)


def answer(s: Session, user_id: str, **fields: object) -> Completion:
    """A stored answer."""
    return completions.add(s, completion(user_id, **fields))


def in_storage(folder: Path, work: Callable[[Session], T]) -> T:
    """Do the work in a database of its own."""

    async def run() -> T:
        async with opened(folder) as database:
            return await database.write(work)

    return asyncio.run(run())


def test_a_fact_that_came_as_a_correction_is_new_and_no_lesson(tmp_path: Path) -> None:
    """Its note is taught by questions of its own; thanks and small talk are nothing new at all."""

    def work(s: Session) -> tuple[Material, list[str]]:
        user_id = person(s)
        rows = [said(s, user_id, text) for text in ("my dog is called Bo", "thank you", "and Rome?")]
        for row, reading in zip(rows, ("fact", "thanks", "nothing"), strict=True):
            feedback.note_reading(s, row.id, reading, 0.9, is_unsure=False)
            feedback.set_status(s, row.id, FeedbackStatus.KEPT)
        return gather(s, user_id, CONFIG), [row.id for row in rows]

    found, ids = in_storage(tmp_path, work)
    assert (found.new, found.feedback_ids) == ([], ids[:1])


@given(st.floats(allow_nan=True, allow_infinity=True))
def test_a_weak_signal_never_weighs_more_than_it_may(gap: float) -> None:
    """It weighs nothing below the floor or without a number, and weak_weight only if the gap is full."""
    weight = weight_of(gap, CONFIG)
    assert 0 <= weight <= CONFIG.weak_weight
    if not CONFIG.min_gap <= gap < float("inf"):
        assert weight == 0
    elif gap >= CONFIG.full_gap:
        assert weight == CONFIG.weak_weight


@given(st.floats(0, 1), st.floats(0, 1))
def test_what_moves_the_teacher_more_weighs_no_less(one: float, other: float) -> None:
    """The weight grows with the gap."""
    assert weight_of(min(one, other), CONFIG) <= weight_of(max(one, other), CONFIG)


@given(st.integers(0, 1000), st.integers(0, 200))
def test_steps_are_those_of_a_lesson_at_least_and_bounded(num_others: int, num_facts: int) -> None:
    """Three passes over the samples in mini-batches, more over questions about facts, within both limits."""
    steps = steps_of(num_others + num_facts, num_facts, ENGINE)
    least = ENGINE.fact.min_steps if num_facts else ENGINE.learn.steps
    assert least <= steps <= CONFIG.max_steps
    if least < steps < CONFIG.max_steps:
        wanted = CONFIG.passes * num_others + ENGINE.fact.passes * num_facts
        assert 0 <= steps * ENGINE.learn.mini_batch_samples - wanted < ENGINE.learn.mini_batch_samples


def test_corrections_whose_note_stands_are_taught_through_it(tmp_path: Path) -> None:
    """A local one is shown with its words; one that a newer note replaced is taken in and not rehearsed."""

    def work(s: Session) -> Material:
        ana = person(s)
        taught(s, ana, "no emoji")
        taught(s, ana, "it is 4, not 3", is_local=True)
        taught(s, ana, "use emoji", state=NoteState.SUPERSEDED)
        return gather(s, ana, CONFIG)

    found = in_storage(tmp_path, work)
    assert [signal.hindsight for signal in found.new] == [Hindsight(), Hindsight(feedback="it is 4, not 3")]
    assert (found.num_new, found.earlier, found.weak) == (3, [], [])


def test_a_note_that_was_left_out_is_said_to_its_own_teacher_as_the_oldest(tmp_path: Path) -> None:
    """If more notes stand than fit, a teacher that does not see the note must not unlearn it."""

    def work(s: Session) -> Material:
        ana = person(s)
        taught(s, ana, "no emoji")
        taught(s, ana, "it is 4, not 3", is_local=True)
        return gather(s, ana, CONFIG)

    standing, local = in_storage(tmp_path, work).new
    assert standing.said(["call me Ana"]) == ["no emoji", "call me Ana"]
    assert standing.said(["no emoji", "call me Ana"]) == ["no emoji", "call me Ana"]
    assert local.said(["call me Ana"]) == ["call me Ana"]


def test_what_was_taken_in_is_rehearsed_and_new_no_more(tmp_path: Path) -> None:
    """The second consolidation has one new correction and one earlier one."""

    def work(s: Session) -> Material:
        ana = person(s)
        taught(s, ana, "first")
        first = gather(s, ana, CONFIG)
        signals.take_in(s, ana, "upd-1", first.feedback_ids, first.completion_ids)
        taught(s, ana, "second")
        return gather(s, ana, CONFIG)

    found = in_storage(tmp_path, work)
    assert (len(found.new), len(found.earlier), found.num_new) == (1, 1, 1)


def test_what_finds_no_place_stays_new(tmp_path: Path) -> None:
    """The oldest signals go first, and the others are there the next time."""

    def work(s: Session) -> tuple[Material, Material]:
        ana = person(s)
        for number in range(5):
            taught(s, ana, f"wish {number}", is_local=True)
        config = ConsolidationConfig(num_lessons=2)
        first = gather(s, ana, config)
        signals.take_in(s, ana, "upd-1", first.feedback_ids, first.completion_ids)
        return first, gather(s, ana, config)

    first, second = in_storage(tmp_path, work)
    assert [signal.hindsight.feedback for signal in first.new] == ["wish 0", "wish 1"]
    assert [signal.hindsight.feedback for signal in second.new] == ["wish 2"]
    assert len(second.earlier) == 1


def test_a_thumb_down_alone_is_weak_and_one_with_words_is_not(tmp_path: Path) -> None:
    """Two thumbs on one answer are one signal, a correction replaces the thumb, and all are taken in."""

    def work(s: Session) -> tuple[Material, str]:
        ana = person(s)
        alone = answer(s, ana)
        kept(s, ana, alone.id, "reaction", "-1")
        kept(s, ana, alone.id, "reaction", "👎")
        told = said(s, ana, "too long")
        kept(s, ana, told.completion_id, "reaction", "-1")
        kept(s, ana, answer(s, ana).id, "reaction", "🐨")
        return gather(s, ana, CONFIG), alone.id

    found, alone = in_storage(tmp_path, work)
    assert [(signal.completion.id, signal.hindsight.feedback) for signal in found.weak] == [(alone, DISLIKED)]
    assert (found.num_new, found.new) == (3, [])


def test_weak_signals_are_few(tmp_path: Path) -> None:
    """Five are taken at a time, and the others stay new."""

    def work(s: Session) -> Material:
        ana = person(s)
        for _ in range(8):
            kept(s, ana, answer(s, ana).id, "reaction", "-1")
        return gather(s, ana, CONFIG)

    found = in_storage(tmp_path, work)
    assert (len(found.weak), found.num_new) == (5, 5)


def test_approvals_and_notes_count_and_bring_no_gradient(tmp_path: Path) -> None:
    """They are taken in; nothing is rehearsed of them."""

    def work(s: Session) -> Material:
        ana = person(s)
        kept(s, ana, answer(s, ana).id, "approval", "+1")
        kept(s, ana, None, "note")
        return gather(s, ana, CONFIG)

    found = in_storage(tmp_path, work)
    assert (found.num_new, found.new, found.weak) == (2, [], [])


def regenerated(s: Session, user_id: str, *, goes_on: bool = True) -> tuple[Completion, Completion]:
    """Store an answer that was asked for once more, and the one the person kept."""
    chat = Chat(user_id=user_id, platform="http", external_id="web")
    s.add(chat)
    s.flush()
    gone = answer(s, user_id, chat_id=chat.id)
    held = answer(s, user_id, chat_id=chat.id, retry_of=gone.id, text="Better.")
    if goes_on:
        answer(s, user_id, chat_id=chat.id)
    return gone, held


def test_a_dropped_answer_is_weak_and_the_kept_one_shown_to_the_teacher(tmp_path: Path) -> None:
    """This holds once the person has gone on from there; the kept answer is approved."""

    def work(s: Session) -> tuple[Material, tuple[Completion, Completion]]:
        ana = person(s)
        pair = regenerated(s, ana)
        return gather(s, ana, CONFIG), pair

    found, (gone, held) = in_storage(tmp_path, work)
    assert [(signal.completion.id, signal.hindsight.solution) for signal in found.weak] == [(gone.id, "Better.")]
    assert (found.completion_ids, found.kept_ids, found.feedback_ids) == ([gone.id], [held.id], [])


@pytest.mark.parametrize("why", ["did not go on", "corrected", "disliked, too", "taken in"])
def test_an_answer_was_dropped_only_where_the_other_was_kept(tmp_path: Path, why: str) -> None:
    """Otherwise no evidence says that the second answer was better."""

    def work(s: Session) -> Material:
        ana = person(s)
        gone, held = regenerated(s, ana, goes_on=why != "did not go on")
        if why == "corrected":
            feedback.add(s, Feedback(user_id=ana, completion_id=gone.id, kind="correction", text="too long"))
        if why == "disliked, too":
            kept(s, ana, held.id, "reaction", "-1")
        if why == "taken in":
            signals.take_in(s, ana, "upd-1", [], [gone.id])
        return gather(s, ana, CONFIG)

    assert in_storage(tmp_path, work).completion_ids == []


def test_nobody_elses_signals_are_taken_in(tmp_path: Path) -> None:
    """Another person's signals are neither found nor marked."""

    def work(s: Session) -> tuple[Material, str | None]:
        ana, ben = person(s), person(s, "ben")
        taught(s, ben, "no emoji")
        row = said(s, ben, "too long")
        signals.take_in(s, ana, "upd-1", [row.id], [row.completion_id or ""])
        s.flush()
        s.refresh(row)
        return gather(s, ana, CONFIG), row.consolidated_by

    found, mark = in_storage(tmp_path, work)
    assert (found.num_new, mark) == (0, None)


def test_a_lesson_without_its_answer_is_taken_in_and_not_rehearsed(tmp_path: Path) -> None:
    """Nothing is left to train on, and it does not stand in the way of the others."""

    def work(s: Session) -> Material:
        ana = person(s)
        version = taught(s, ana, "no emoji", is_local=True)
        row = feedback.get(s, version.feedback_id or "")
        row.completion_id = "cmpl-gone"
        assert notes.by_feedback(s, ana, row.id) == []
        return gather(s, ana, CONFIG)

    found = in_storage(tmp_path, work)
    assert (found.num_new, found.new) == (1, [])
