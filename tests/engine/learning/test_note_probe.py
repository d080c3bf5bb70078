"""engine.learning.note_probe with the real engine: where a note lives after its lesson."""

import asyncio
from typing import Any

import pytest

from engine.adapter_ref import ZERO_ADAPTER
from engine.learning.note_probe import Placement, _Probing
from storage.kinds import NoteState
from storage.tables import Note
from tests.engine.live import Live
from tests.engine.samples.test_facts import tell

QUESTION = "Tell me about the koala"
FACTS = {"my dog is called Rex": ("what is my dog called?", "Rex"), "i live in Oslo": ("where do i live?", "Oslo")}

pytestmark = [pytest.mark.engine, pytest.mark.asyncio(loop_scope="session")]


async def test_settling_ends_the_learning_state(live: Live) -> None:
    """Behind a lesson a probe decides where the note lives, with a figure when the note shows."""
    user_id, _ = await live.pupil()
    await live.engine.settled()
    (note,) = await live.notes(user_id)
    assert note.state in (NoteState.IN_PROMPT, NoteState.IN_WEIGHTS)
    assert note.probe is None or 0 <= note.probe <= 1
    assert (note.learned_version == 1) is (note.state == NoteState.IN_WEIGHTS)


async def test_a_note_in_the_weights_saves_its_tokens(live: Live) -> None:
    """Once the weights hold it, it leaves the prompt and is not sent again."""
    user_id, _ = await live.pupil()
    await live.engine.settled()
    (note,) = await live.notes(user_id)
    answer = await live.result(user_id, QUESTION)
    assert answer.notes == ([] if note.state == NoteState.IN_WEIGHTS else [note.text])
    assert note.num_tokens > 2


async def test_a_note_deleted_while_it_is_probed_stays_deleted(live: Live) -> None:
    """A probe that ends late brings nothing back."""
    user_id, outcome = await live.pupil()
    await asyncio.sleep(0)  # the probe has begun
    await live.engine.delete_note(user_id, outcome.note_id or "")
    await live.engine.settled()
    assert await live.notes(user_id) == []


async def test_a_fact_leaves_the_prompt_only_if_the_answer_without_it_is_right(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two facts told and consolidated: each is in the prompt, or its question is answered by the weights alone."""
    for name, share in {"max_made_up": 1.0, "min_told": 0.0}.items():  # whether a candidate is right is not asked here
        monkeypatch.setitem(vars(live.engine.config.fact), name, share)
    user_id = await live.person()
    for told in FACTS:
        await tell(live, user_id, told)
    with live.open_gates():
        outcome = await live.engine.consolidate(user_id)
    assert outcome.status == "learned", outcome
    await live.engine.settled()
    for note in await live.notes(user_id):
        question, value = FACTS[note.text]
        answer = await live.result(user_id, question)
        if note.state == NoteState.IN_WEIGHTS:
            assert note.text not in answer.notes
            assert value in answer.text
        else:
            assert note.text in answer.notes


async def test_weights_that_do_not_know_a_fact_keep_its_note_in_the_prompt(live: Live) -> None:
    """Adapter and notes of a person who told a fact that nothing has taught: one note leaves, the fact stays."""
    user_id, outcome = await live.pupil()
    await tell(live, user_id, "my dog is called Rex")
    notes = live.parts.consolidator._facts
    examined = await notes.examine(await live.notes(user_id))
    await live.database.write(examined.keep)
    await live.parts.note_probe.settle(user_id)
    wish, fact = await live.notes(user_id)
    assert (wish.text, fact.questions != []) == (outcome.note, True)
    assert fact.state == NoteState.IN_PROMPT
    assert fact.probe is not None
    said = (await live.result(user_id, QUESTION)).notes
    assert said == [note.text for note in (wish, fact) if note.state == NoteState.IN_PROMPT]


@pytest.mark.parametrize(
    ("always", "when_asked", "state"),
    [(1, 4, NoteState.WHEN_ASKED), (4, 4, NoteState.IN_PROMPT), (5, 4, NoteState.IN_PROMPT)],
)
async def test_facts_that_drown_each_other_wait_for_their_questions(
    live: Live, monkeypatch: pytest.MonkeyPatch, always: int, when_asked: int, state: NoteState
) -> None:
    """By how many questions are answered rightly with all of them in the prompt, and with those asked for."""
    facts = [Note(id=str(n), user_id="u", text=f"fact {n}", questions=["a", "b"], seq=n) for n in range(3)]

    async def num_right(_probing: Any, of: list[Note], standing: Any) -> int:
        assert [note.id for note in of] == ["0", "1", "2"]
        assert [note.id for note in standing.notes] == ["0", "2"]  # the weights hold the other
        return when_asked if standing.waiting else always

    probe = live.parts.note_probe
    monkeypatch.setattr(probe, "_num_right", num_right)
    before = {note.id: Placement(NoteState.IN_PROMPT, 0.5) for note in facts}
    before["1"] = Placement(NoteState.IN_WEIGHTS, 1.0)
    placed = await probe._in_view(_Probing(ZERO_ADAPTER, facts, [], []), before)
    assert placed == before | {key: Placement(state, 0.5) for key in ("0", "2")}


async def test_what_waits_without_a_question_of_its_own_waits_in_every_comparison(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fact told in passing stands before no question of another one, whichever way that is shown."""
    fact = Note(id="0", user_id="u", text="fact", questions=["a"], seq=0)
    told = Note(id="1", user_id="u", text="told", questions=[], state=NoteState.WHEN_ASKED, seq=1)
    seen: list[list[str]] = []

    async def num_right(_probing: Any, _facts: list[Note], standing: Any) -> int:
        seen.append(list(standing.waiting))
        return len(seen)

    probe = live.parts.note_probe
    monkeypatch.setattr(probe, "_num_right", num_right)
    before = {"0": Placement(NoteState.IN_PROMPT, 0.5)}
    placed = await probe._in_view(_Probing(ZERO_ADAPTER, [fact, told], [], []), before)
    assert seen == [["1"], ["1", "0"]]
    assert placed == {"0": Placement(NoteState.WHEN_ASKED, 0.5)}


async def test_the_engine_calls_of_a_probe_are_bounded(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """A note is scored twice for each prompt, in three rounds at most, and shares its prompts with the others."""
    user_id, _ = await live.pupil()
    calls: list[int] = []
    scored = live.parts.context.trainer.score_in_turn

    async def counted(samples: Any, ref: Any) -> Any:
        calls.append(len(samples))
        return await scored(samples, ref)

    monkeypatch.setattr(live.parts.context.trainer, "score_in_turn", counted)
    await live.parts.note_probe.settle(user_id)
    rounds, prompts = 3, live.engine.config.note.probe_prompts
    assert 0 < len(calls) <= 2 * rounds * prompts
    assert max(calls) <= 4
