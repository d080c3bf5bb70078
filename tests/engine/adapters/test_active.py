"""engine.adapters.active: which adapter a person is answered with, and what happens to one that is damaged."""

import asyncio
import shutil

import pytest

from engine.adapter_ref import TENSORS_FILE, ZERO_ADAPTER
from storage.database import Session
from storage.errors import PersonNotFound
from storage.kinds import NoteState, VersionState
from storage.learning import versions
from tests.engine.live import Live

pytestmark = [pytest.mark.engine, pytest.mark.asyncio(loop_scope="session")]

QUESTION = "Tell me about the puma"


async def unloaded(live: Live, user_id: str, number: int) -> None:
    """Forgets a version in memory, as a restart does."""
    await live.engine.settled()
    ref = live.engine._adapters.ref(await live.version(user_id, number))
    live.parts.context.active._verified.discard(ref.lora_int_id)
    await live.host.remove_adapter(ref)


def spoil(live: Live, user_id: str, number: int) -> None:
    """Changes one byte in the middle of a version's tensors."""
    path = live.folder(user_id, number) / TENSORS_FILE
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0x40
    path.chmod(0o600)
    path.write_bytes(data)


async def test_a_person_without_lessons_gets_the_base_model(live: Live) -> None:
    """The zero adapter answers."""
    assert await live.parts.context.active.active(await live.person()) == ZERO_ADAPTER


async def test_nobody_is_served_nothing(live: Live) -> None:
    """An unknown person is an error, not the base model."""
    with pytest.raises(PersonNotFound):
        await live.parts.context.active.active("nobody")


async def test_a_version_is_served_from_disk_after_a_restart(live: Live) -> None:
    """Once memory has forgotten it, the files give the same answer, token for token."""
    user_id, outcome = await live.pupil()
    before = await live.result(user_id, QUESTION, notes="off")
    await unloaded(live, user_id, outcome.adapter_version)
    (counted,) = live.engine.loads().values()
    await live.engine.prepare(user_id)
    after = await live.result(user_id, QUESTION, notes="off")
    assert (after.adapter_version, after.completion_token_ids) == (1, before.completion_token_ids)
    (then,) = live.engine.loads().values()
    more = (then.num_read - counted.num_read, then.num_adapters - counted.num_adapters)
    assert (more, then.num_fetched, then.num_lessons) == ((1, 1), 0, 0)


async def test_a_version_of_another_base_model_waits_unharmed(live: Live) -> None:
    """The base answers with every note in its prompt; the version is not damaged and serves its own model again."""
    user_id, outcome = await live.pupil()
    own = (await live.version(user_id, 1)).base_model

    async def trained_on(model: str) -> None:
        def work(s: Session) -> None:
            versions.get(s, user_id, 1).base_model = model

        await live.database.write(work)

    await trained_on("another model")
    answer = await live.result(user_id, QUESTION)
    assert (answer.adapter_version, answer.notes) == (0, [outcome.note])
    assert (await live.version(user_id, 1)).state == VersionState.ACCEPTED
    await trained_on(own)
    assert (await live.result(user_id, QUESTION)).adapter_version == 1


async def test_a_damaged_version_falls_back_and_nobody_else_notices(live: Live) -> None:
    """Its parent answers, its lesson stands in the prompt again, and streams of others go on as if nothing happened."""
    other, _ = await live.pupil("use lowercase")
    user_id, _ = await live.pupil("no emoji please")
    await live.engine.settled()
    second = await live.teach(await live.ask(user_id, QUESTION), "use lowercase")
    assert second.adapter_version == 2
    undisturbed = await live.result(other, QUESTION, notes="off")
    await unloaded(live, user_id, 2)
    spoil(live, user_id, 2)
    streams = [live.result(other, QUESTION, notes="off") for _ in range(3)]
    fallen, *going_on = await asyncio.gather(live.result(user_id, QUESTION), *streams)
    assert fallen.adapter_version == 1
    assert "use lowercase" in fallen.notes
    assert {tuple(r.completion_token_ids) for r in going_on} == {tuple(undisturbed.completion_token_ids)}
    assert (await live.version(user_id, 2)).state == VersionState.DAMAGED
    assert (await live.user(user_id)).active_version == 1


async def test_a_version_that_is_gone_from_the_disk_leaves_the_base_model(live: Live) -> None:
    """With no good version left the base answers, all notes in its prompt, and learning goes on from there."""
    user_id, outcome = await live.pupil()
    await unloaded(live, user_id, 1)
    shutil.rmtree(live.folder(user_id, 1))
    answer = await live.ask(user_id, QUESTION)
    assert (answer.adapter_version, answer.notes) == (0, [outcome.note])
    assert [n.state for n in await live.notes(user_id)] == [NoteState.IN_PROMPT]
    again = await live.teach(answer, "too long")
    assert (again.status, again.adapter_version) == ("learned", 2)
    assert (await live.version(user_id, 2)).parent == 0


async def test_a_version_is_verified_once(live: Live) -> None:
    """A file that changes under a running version does no harm: what is served lies in memory."""
    user_id, _ = await live.pupil()
    before = await live.result(user_id, QUESTION, notes="off")
    spoil(live, user_id, 1)
    after = await live.result(user_id, QUESTION, notes="off")
    assert (after.adapter_version, after.completion_token_ids) == (1, before.completion_token_ids)
