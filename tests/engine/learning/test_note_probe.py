"""engine.learning.note_probe with the real engine: where a note lives after its lesson."""

import asyncio

import pytest

from storage.kinds import NoteState
from tests.engine.live import Live

QUESTION = "Tell me about the koala"

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
