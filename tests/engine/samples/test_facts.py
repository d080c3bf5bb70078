"""engine.samples.facts with the real engine: facts that a person told once, learned and answered without a note."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from engine.adapter_ref import ZERO_ADAPTER, AdapterRef
from engine.config import FactConfig, NoteConfig
from engine.requests import ChatMessage
from engine.samples.facts import Facts, NoteGap, questions_in_turn, shows_unasked
from engine.samples.notes import showing
from engine.samples.questions import NoteQuestion, taught
from storage.kinds import FeedbackKind, NoteState
from storage.learning import feedback
from storage.tables import Feedback, Note
from tests.engine.live import Live

pytestmark = [pytest.mark.engine, pytest.mark.asyncio(loop_scope="session")]

DOG = "my dog is called Rex"
QUESTION = "what is my dog called?"
NUM_WRITTEN = FactConfig().num_written


async def tell(live: Live, user_id: str, text: str) -> None:
    """A standing note, as the chat side keeps it."""
    row = Feedback(user_id=user_id, kind=FeedbackKind.NOTE, text=text)
    stored, _ = await live.database.write(lambda s: feedback.add(s, row))
    await live.engine.learn(stored.id)


def facts(live: Live) -> Facts:
    """Those of the running engine."""
    return live.parts.consolidator._facts


async def examined(live: Live, user_id: str) -> list[Note]:
    """Examine a person's notes and keep what was found, as a consolidation does; return those that stand."""
    found = await facts(live).examine(await live.notes(user_id))
    await live.database.write(found.keep)
    return await live.notes(user_id)


def note(text: str, questions: list[str] | None, state: NoteState = NoteState.IN_PROMPT) -> Note:
    """A note of a person."""
    return Note(user_id="u", text=text, questions=questions, state=state)


@pytest.mark.parametrize(
    ("limit", "expected"),
    [(9, ["b1", "c1", "a1", "b2", "a2", "b4"]), (2, ["b1", "c1"]), (0, [])],
)
async def test_what_the_weights_do_not_hold_is_asked_first(limit: int, expected: list[str]) -> None:
    """One question of every note before the second of any, no third; notes that show by themselves have none."""
    live = [
        note("a", ["a1", "a2"], NoteState.IN_WEIGHTS),
        note("b", ["b1", "b2", "b3", "b4"]),
        note("c", ["c1"]),
        note("style", []),
        note("new", None),
    ]
    assert [text for _, text in questions_in_turn(live, limit)] == expected


@pytest.mark.parametrize(
    ("gaps", "expected"),
    [
        ([(0.4, 0.1)] * 8, True),
        ([(0.4, 0.3)] * 8, False),
        ([(0.4, 0.1)] + [(0.1, 0.1)] * 7, False),
        ([(0.04, 0.0)] * 8, False),
        ([], False),
    ],
)
async def test_a_wish_moves_answers_further_than_a_placebo(gaps: list[tuple[float, float]], expected: bool) -> None:
    """On a real model any system prompt moves every answer, by more than a bound on nats; one answer is chance."""
    assert shows_unasked([NoteGap(*gap) for gap in gaps], NoteConfig()) is expected


async def test_what_is_made_up_is_counted(live: Live) -> None:
    """The base model answers that it does not know what was not told: with no told word, or with words of that note."""
    told, said = note(DOG, [QUESTION]), note("i tell you what i know", [QUESTION])
    assert await facts(live).made_up(ZERO_ADAPTER, [told]) == 0.0
    assert (await facts(live).made_up(ZERO_ADAPTER, [said]) or 0.0) > 0.5
    assert await facts(live).made_up(ZERO_ADAPTER, [note("style", [])]) is None


async def test_what_is_told_from_a_note_in_view_is_counted(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the questions that the base model answers from the note; one that it does not is not asked."""
    other = "what is my dog?"
    known = note(DOG, [QUESTION, "how are you?", other])
    assert await facts(live).told(ZERO_ADAPTER, [known], []) == 1.0
    assert await facts(live).told(ZERO_ADAPTER, [note(DOG, ["how are you?"]), note("style", [])], []) is None
    asked: list[str] = []
    by_base = facts(live)._answers

    async def forgetful(ref: AdapterRef, seen: Sequence[list[ChatMessage]]) -> list[list[int]]:
        answers = await by_base(ZERO_ADAPTER, seen)
        if ref is ZERO_ADAPTER:
            return answers
        asked.extend(messages[-1]["content"] for messages in seen)
        return [[], *answers[1:]]

    monkeypatch.setattr(facts(live), "_answers", forgetful)
    assert await facts(live).told(AdapterRef("u", 1, 1, "/none"), [known], []) == 0.5
    assert asked == [QUESTION, other]


async def test_a_fact_gets_questions_and_a_wish_about_style_gets_none(live: Live) -> None:
    """Notes that change no unrelated answer get questions; each note is examined once, newer ones later."""
    user_id = await live.person()
    await tell(live, user_id, DOG)
    await tell(live, user_id, "use lowercase")
    fact, style = await examined(live, user_id)
    assert fact.questions
    framed = [text for text in fact.questions if any(word in text for word in ("dog", "Rex", "called"))]
    assert QUESTION in framed
    assert len(fact.questions) - len(framed) <= NUM_WRITTEN, fact.questions  # the model's own, in words of its choice
    assert style.questions == []


async def always(*_: Any) -> bool:
    """Say yes to everything."""
    return True


@pytest.mark.parametrize("is_fact", [True, False])
async def test_what_was_read_as_a_fact_waits_where_no_question_shows_it(
    live: Live, monkeypatch: pytest.MonkeyPatch, is_fact: bool
) -> None:
    """However much it moves other answers; what is none and does is in every teacher's view."""

    async def nothing(*_: Any) -> list[NoteQuestion]:
        return []

    monkeypatch.setattr(facts(live), "_shows", always)
    monkeypatch.setattr(facts(live), "_asked", nothing)
    user_id = await live.person()
    await tell(live, user_id, "i support the team Ajax")
    (told,) = await live.notes(user_id)
    found = await facts(live).examine([told], {told.id} if is_fact else ())
    await live.database.write(found.keep)
    (note,) = await live.notes(user_id)
    assert (note.questions, note.state) == ([], NoteState.WHEN_ASKED if is_fact else NoteState.IN_PROMPT)
    assert showing([note]) == ([] if is_fact else [note])


async def test_what_was_read_as_a_fact_is_asked_about(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though it moves other answers, too. A newer fact of the same questions still takes its place."""
    monkeypatch.setattr(facts(live), "_shows", always)
    user_id = await live.person()
    for text in (DOG, "my dog is called Luna"):
        await tell(live, user_id, text)
        standing = await live.notes(user_id)
        found = await facts(live).examine(standing, {note.id for note in standing})
        assert not found.waiting & found.replaced
        await live.database.write(found.keep)
    *_, newest = await live.notes(user_id)
    assert QUESTION in (newest.questions or [])
    assert newest.state == NoteState.IN_PROMPT, "until a probe has asked"


async def test_the_note_reaches_the_teachers_prompts_only(live: Live) -> None:
    """The teacher reads the fact beside the notes that show by themselves; the student sees the question alone."""
    user_id = await live.person()
    await tell(live, user_id, DOG)
    known = await examined(live, user_id)
    (ref,) = {await live.parts.context.active.active(user_id)}
    samples = await facts(live).samples(ref, known, ["use lowercase"], 99)
    decode = live.host.tokenizer.decode
    assert len(samples) == len(taught(known[0].questions or []))
    for sample in samples:
        assert all(text in decode(sample.teacher_ids) for text in (DOG, "use lowercase"))
        assert DOG not in decode(sample.student_ids)


async def test_a_small_models_teacher_reads_the_fact_before_the_question(live: Live) -> None:
    """As its answers do, so that what is measured of a fact is what a person sees."""
    user_id, context = await live.person(), live.parts.context
    await tell(live, user_id, DOG)
    known = await examined(live, user_id)
    learn = replace(context.config.learn, facts_in_message=True)
    small = Facts(replace(context, config=replace(context.config, learn=learn)))
    (sample,) = await small.samples(ZERO_ADAPTER, known, ["use lowercase"], 1)
    seen = live.host.tokenizer.decode(sample.teacher_ids)
    asked = taught(known[0].questions or [])[0].rstrip("?")
    assert seen.index("use lowercase") < seen.index(DOG) < seen.rindex(asked)
    assert seen.count(DOG) == 1
    assert DOG not in live.host.tokenizer.decode(sample.student_ids)


async def test_a_question_has_the_newest_answer(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """The dog has another name now: questions about the dog are the newer note's, each of one note only."""

    async def never(*_: Any) -> bool:  # whether a name shows on some other topic is not what is asked here
        return False

    monkeypatch.setattr(facts(live), "_shows", never)
    user_id = await live.person()
    for text in (DOG, "my dog is called Luna"):
        await tell(live, user_id, text)
        await examined(live, user_id)
    *older, newest = await live.notes(user_id)
    assert any("dog" in text for text in newest.questions or [])
    assert not {*(newest.questions or [])} & {text for note in older for text in note.questions or []}


async def test_a_consolidation_of_a_fact_reaches_its_person_only(live: Live) -> None:
    """They are answered with it, whether the weights took it in or its note stays; nobody and nothing else is.

    Which of both depends on what the lesson drew: where the weights made up answers, the gate leaves it to the note.
    """
    user_id = await live.person()
    await tell(live, user_id, DOG)
    outcome = await live.engine.consolidate(user_id)
    (told,) = await live.notes(user_id)
    has_version = outcome.adapter_version == 1
    assert (outcome.status, has_version) in {("learned", True), ("kept", False)}, outcome
    assert has_version or told.state == NoteState.IN_PROMPT
    assert "Rex" in (await live.result(user_id, QUESTION)).text
    assert "Rex" not in (await live.result(user_id, "What is ramen?", notes="off")).text
    assert "Rex" not in (await live.result(await live.person(), QUESTION)).text
