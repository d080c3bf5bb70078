"""Tests of the snapshot: all data about a person that one consolidation needs, in one read."""

from pathlib import Path

from engine.config import EngineConfig
from engine.consolidation.snapshot import Snapshot, take
from storage.conversations import completions
from storage.database import Session
from storage.learning import notes
from storage.people import people
from storage.tables import Note
from tests.engine.consolidation.test_material import answer, kept
from tests.engine.rows import completion, opened, person, taught

CONFIG = EngineConfig(model="m", data_dir=Path("data"))


async def test_it_holds_the_persons_own_rows_and_no_others(tmp_path: Path) -> None:
    """It holds the person, notes and answers, and no row of another person."""
    async with opened(tmp_path) as database:
        ana, ben = await database.write(lambda s: (person(s, "ana"), person(s, "ben")))
        for user_id in (ana, ben):
            await database.write(lambda s, u=user_id: notes.add(s, Note(user_id=u, text=u, num_tokens=1)))
            await database.write(lambda s, u=user_id: completions.add(s, completion(u, is_gold=True)))
        found = await database.read(lambda s: take(s, ana, CONFIG))
    assert (found.user.id, found.version, found.newest_better_s) == (ana, None, None)
    assert [note.text for note in found.notes] == [ana]
    assert {answer.user_id for answer in (*found.recent, *found.approved)} == {ana}
    assert {answer.user_id for answer in found.graded.answers.values()} == {ana}
    assert not found.material.is_anything_new


async def test_what_is_said_while_learning_is_off_teaches_nothing(tmp_path: Path) -> None:
    """An adapter can be made again then: from its lessons alone. The other signals stay new until learning is on."""

    def seen(s: Session) -> tuple[Snapshot, Snapshot]:
        ana = person(s)
        taught(s, ana, "too long")
        people.set_learning(s, ana, False)
        kept(s, ana, answer(s, ana).id, "reaction", "-1")
        off = take(s, ana, CONFIG)
        people.set_learning(s, ana, True)
        return off, take(s, ana, CONFIG)

    async with opened(tmp_path) as database:
        off, on = await database.write(seen)
    assert (len(off.material.new), off.material.weak, off.material.num_new) == (1, [], 1)
    assert (len(on.material.new), len(on.material.weak), on.material.num_new) == (1, 1, 2)
