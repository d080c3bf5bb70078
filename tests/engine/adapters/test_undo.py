"""engine.adapters.undo: versions, notes and feedback go back and forth together."""

from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from engine.adapters import undo
from engine.errors import NothingToUndo
from engine.requests import UndoResult
from storage.database import Database, Session
from storage.errors import NoteNotFound, VersionNotFound, VersionPruned, VersionStateError
from storage.kinds import FeedbackStatus, NoteState, VersionState
from storage.learning import feedback, notes, updates, versions
from storage.people import people
from storage.tables import Feedback, UpdateRun
from tests.engine.rows import BASE_MODEL, noted, person, rebuilt, taught
from tests.storage.conftest import Store
from tests.storage.new_data_dir import copy_to


@pytest.fixture
async def ana(database: Database) -> str:
    """A person's id."""
    return await database.write(person)


def texts_by_state(s: Session, user_id: str) -> dict[str, list[str]]:
    """The texts of the person's notes, by state."""
    found = {state.value: [n.text for n in notes.in_state(s, user_id, state)] for state in NoteState}
    return {state: texts for state, texts in found.items() if texts}


async def test_nothing_learned_is_nothing_to_undo(database: Database, ana: str) -> None:
    """A person without lessons is told so."""
    with pytest.raises(NothingToUndo):
        await database.write(lambda s: undo.undo(s, ana))


async def test_undo_takes_version_and_note_back_together(database: Database, ana: str) -> None:
    """The parent is active again, the note is gone, the feedback is marked as undone."""
    first = await database.write(lambda s: taught(s, ana, "too long"))
    last = await database.write(lambda s: taught(s, ana, "no emoji"))
    assert await database.write(lambda s: undo.undo(s, ana)) == UndoResult(first.number, "no emoji")
    assert (await database.read(lambda s: people.get(s, ana))).active_version == first.number
    assert await database.read(lambda s: texts_by_state(s, ana)) == {"in_prompt": ["too long"], "deleted": ["no emoji"]}
    undone = await database.read(lambda s: feedback.get(s, last.feedback_id or ""))
    assert undone.status == FeedbackStatus.UNDONE


async def test_undoing_everything_ends_at_the_base_model(database: Database, ana: str) -> None:
    """One undo per lesson leads to version 0, and then there is nothing left."""
    for text in ("too long", "no emoji", "call me Ana"):
        await database.write(lambda s, t=text: taught(s, ana, t))
    undone = [(await database.write(lambda s: undo.undo(s, ana))).note for _ in range(3)]
    assert undone == ["call me Ana", "no emoji", "too long"]
    assert (await database.read(lambda s: people.get(s, ana))).active_version == 0
    with pytest.raises(NothingToUndo):
        await database.write(lambda s: undo.undo(s, ana))


async def test_a_note_that_came_after_the_version_goes_first(database: Database, ana: str) -> None:
    """A written note is the newest lesson: undoing it leaves the version active."""
    version = await database.write(lambda s: taught(s, ana, "too long"))
    await database.write(lambda s: noted(s, ana, "my dog is Rex"))
    assert await database.write(lambda s: undo.undo(s, ana)) == UndoResult(version.number, "my dog is Rex")


async def test_an_older_note_outlives_the_undo_of_a_newer_lesson(database: Database, ana: str) -> None:
    """A note from before a lesson without one stays when the lesson goes."""
    await database.write(lambda s: noted(s, ana, "my dog is Rex"))
    await database.write(lambda s: taught(s, ana, "it's 4, not 3", is_local=True))
    assert await database.write(lambda s: undo.undo(s, ana)) == UndoResult(0, None)
    assert await database.read(lambda s: texts_by_state(s, ana)) == {"in_prompt": ["my dog is Rex"]}


async def test_order_is_that_of_arrival_and_not_of_the_clock(database: Database, ana: str) -> None:
    """A clock that was set back between two lessons does not change which one is undone."""
    version = await database.write(lambda s: taught(s, ana, "too long"))

    def later_note(s: Session) -> None:
        note = noted(s, ana, "my dog is Rex")
        note.created_at = version.created_at - 3600

    await database.write(later_note)
    assert (await database.write(lambda s: undo.undo(s, ana))).note == "my dog is Rex"


async def test_undo_brings_back_what_the_lesson_had_replaced(database: Database, ana: str) -> None:
    """A note that the undone one had superseded holds again, in the prompt."""
    await database.write(lambda s: taught(s, ana, "be short", state=NoteState.SUPERSEDED))
    await database.write(lambda s: taught(s, ana, "be long"))
    await database.write(lambda s: undo.undo(s, ana))
    assert await database.read(lambda s: texts_by_state(s, ana)) == {"in_prompt": ["be short"], "deleted": ["be long"]}


async def test_undo_does_not_bring_back_what_was_deleted(database: Database, ana: str) -> None:
    """A note that the person deleted stays deleted when a later lesson is undone."""
    await database.write(lambda s: taught(s, ana, "too long"))
    await database.write(lambda s: taught(s, ana, "no emoji"))
    older = (await database.read(lambda s: notes.live(s, ana)))[0]
    assert await database.write(lambda s: undo.delete_note(s, ana, older.id))
    await database.write(lambda s: undo.undo(s, ana))
    assert await database.read(lambda s: notes.live(s, ana)) == []


async def test_undo_goes_past_a_damaged_parent(database: Database, ana: str) -> None:
    """If the version below cannot be served, the next good one is."""
    numbers = [(await database.write(lambda s, t=t: taught(s, ana, t))).number for t in ("a", "b", "c")]
    await database.write(lambda s: versions.mark_damaged(s, ana, numbers[1]))
    assert (await database.write(lambda s: undo.undo(s, ana))).version == numbers[0]


async def test_undo_on_a_rebuilt_version_takes_the_newest_note(database: Database, ana: str) -> None:
    """A rebuilt adapter holds every note: the base serves with the others in the prompt until they are learned."""
    await database.write(lambda s: taught(s, ana, "too long"))
    await database.write(lambda s: taught(s, ana, "no emoji"))
    await database.write(lambda s: rebuilt(s, ana))
    assert await database.write(lambda s: undo.undo(s, ana)) == UndoResult(0, "no emoji", must_rebuild=True)
    assert await database.read(lambda s: texts_by_state(s, ana)) == {"in_prompt": ["too long"], "deleted": ["no emoji"]}


async def test_a_rebuilt_version_without_notes_is_nothing_to_undo(database: Database, ana: str) -> None:
    """When every note of a rebuilt adapter is gone there is no lesson to take back."""
    await database.write(lambda s: rebuilt(s, ana))
    with pytest.raises(NothingToUndo):
        await database.write(lambda s: undo.undo(s, ana))


async def test_rolling_back_takes_the_later_lessons_back(database: Database, ana: str) -> None:
    """Lessons off the path are undone with their notes, the one on it holds."""
    numbers = [(await database.write(lambda s, t=t: taught(s, ana, t))).number for t in ("a", "b", "c")]
    await database.write(lambda s: undo.return_to(s, ana, numbers[0]))
    assert await database.read(lambda s: texts_by_state(s, ana)) == {"in_prompt": ["a"], "deleted": ["b", "c"]}
    statuses = [f.status for f in await database.read(lambda s: feedback.history(s, ana, 9))]
    assert statuses == [FeedbackStatus.UNDONE, FeedbackStatus.UNDONE, FeedbackStatus.LEARNED]


async def test_rolling_forward_brings_lessons_and_notes_back(database: Database, ana: str) -> None:
    """Going to a later version again makes the undone lessons hold and their notes live."""
    numbers = [(await database.write(lambda s, t=t: taught(s, ana, t))).number for t in ("a", "b", "c")]
    await database.write(lambda s: undo.return_to(s, ana, 0))
    await database.write(lambda s: undo.return_to(s, ana, numbers[1]))
    assert await database.read(lambda s: texts_by_state(s, ana)) == {"in_prompt": ["a", "b"], "deleted": ["c"]}
    statuses = [f.status for f in await database.read(lambda s: feedback.history(s, ana, 9))]
    assert statuses == [FeedbackStatus.UNDONE, FeedbackStatus.LEARNED, FeedbackStatus.LEARNED]


async def test_rolling_to_another_branch_switches_the_lessons(database: Database, ana: str) -> None:
    """After an undo and another lesson, going back to the undone branch takes the other one back."""
    first = await database.write(lambda s: taught(s, ana, "be short"))
    await database.write(lambda s: undo.undo(s, ana))
    await database.write(lambda s: taught(s, ana, "be long"))
    await database.write(lambda s: undo.return_to(s, ana, first.number))
    assert await database.read(lambda s: texts_by_state(s, ana)) == {"in_prompt": ["be short"], "deleted": ["be long"]}


async def test_a_version_that_cannot_be_served_cannot_be_chosen(database: Database, ana: str) -> None:
    """An unknown, a rejected and a damaged version are refused, and nothing changes."""
    good = await database.write(lambda s: taught(s, ana, "a"))
    refused = await database.write(lambda s: versions.allocate(s, ana, good.number, "m", None, None))
    await database.write(lambda s: versions.reject(s, ana, refused.number))
    with pytest.raises(VersionStateError):
        await database.write(lambda s: undo.return_to(s, ana, refused.number))
    with pytest.raises(VersionNotFound):
        await database.write(lambda s: undo.return_to(s, ana, 99))
    assert (await database.read(lambda s: people.get(s, ana))).active_version == good.number
    assert await database.read(lambda s: texts_by_state(s, ana)) == {"in_weights": ["a"]}


async def test_another_persons_lessons_are_not_touched(database: Database, ana: str) -> None:
    """Undo and roll back see one person's versions and notes only."""
    ben = await database.write(lambda s: person(s, "ben"))
    await database.write(lambda s: taught(s, ben, "no emoji"))
    await database.write(lambda s: taught(s, ana, "too long"))
    await database.write(lambda s: undo.undo(s, ana))
    await database.write(lambda s: undo.return_to(s, ana, 0))
    assert await database.read(lambda s: texts_by_state(s, ben)) == {"in_weights": ["no emoji"]}
    assert (await database.read(lambda s: people.get(s, ben))).active_version == 1
    theirs = (await database.read(lambda s: notes.live(s, ben)))[0]
    with pytest.raises(NoteNotFound):
        await database.write(lambda s: undo.delete_note(s, ana, theirs.id))


async def test_deleting_a_note_says_whether_weights_hold_it(database: Database, ana: str) -> None:
    """A learned note calls for a rebuild, a written one does not, and the second deletion of either neither."""
    await database.write(lambda s: taught(s, ana, "too long"))
    written = await database.write(lambda s: noted(s, ana, "my dog is Rex"))
    learned = (await database.read(lambda s: notes.live(s, ana)))[0]
    assert not await database.write(lambda s: undo.delete_note(s, ana, written.id))
    assert await database.write(lambda s: undo.delete_note(s, ana, learned.id))
    assert not await database.write(lambda s: undo.delete_note(s, ana, learned.id))


async def test_a_written_note_that_a_probe_found_in_the_weights_calls_for_a_rebuild(
    database: Database, ana: str
) -> None:
    """Notes join the teacher's context: once one was seen in the weights, deleting it means learning again."""
    written = await database.write(lambda s: noted(s, ana, "be brief"))
    await database.write(lambda s: notes.set_state(s, written.id, NoteState.IN_WEIGHTS, learned_version=1))
    assert await database.write(lambda s: undo.delete_note(s, ana, written.id))


async def test_a_damaged_version_leaves_its_lesson_in_the_prompt(database: Database, ana: str) -> None:
    """When the newest version cannot be served, its parent is, and every note is said again."""
    first = await database.write(lambda s: taught(s, ana, "too long"))
    last = await database.write(lambda s: taught(s, ana, "no emoji"))
    assert await database.write(lambda s: undo.fall_back(s, ana, last.number)) == first.number
    assert await database.read(lambda s: texts_by_state(s, ana)) == {"in_prompt": ["too long", "no emoji"]}


async def pruned(database: Database, user_id: str, keep: int = 2) -> None:
    """The oldest versions give up their files."""
    await database.write(lambda s: versions.prune(s, user_id, keep))


async def test_undo_past_what_is_kept_learns_the_rest_again(database: Database, ana: str) -> None:
    """The first undo finds its version; the next has the lessons of the pruned ones made again from their notes."""
    for text in ("a", "b", "c", "d"):
        await database.write(lambda s, t=text: taught(s, ana, t))
    await pruned(database, ana)
    assert await database.write(lambda s: undo.undo(s, ana)) == UndoResult(3, "d")
    assert await database.write(lambda s: undo.undo(s, ana)) == UndoResult(0, "c", must_rebuild=True)
    assert await database.read(lambda s: texts_by_state(s, ana)) == {"in_prompt": ["a", "b"], "deleted": ["c", "d"]}


async def test_rolling_back_to_a_pruned_version_changes_nothing(database: Database, ana: str) -> None:
    """It is refused before a lesson is taken back."""
    for text in ("a", "b", "c"):
        await database.write(lambda s, t=text: taught(s, ana, t))
    await pruned(database, ana)
    with pytest.raises(VersionPruned):
        await database.write(lambda s: undo.return_to(s, ana, 1))
    assert await database.read(lambda s: texts_by_state(s, ana)) == {"in_weights": ["a", "b", "c"]}


async def complaint(database: Database, user_id: str) -> Feedback:
    """A thumb down without a word."""
    row, _ = await database.write(lambda s: feedback.add(s, Feedback(user_id=user_id, kind="reaction", value="-1")))
    return row


async def test_a_lesson_is_taken_back_for_a_reason(database: Database, ana: str) -> None:
    """Version and note go as in an undo, feedback and update say why, and a second time there is nothing to take."""
    await database.write(lambda s: taught(s, ana, "too long"))
    last = await database.write(lambda s: taught(s, ana, "no emoji"))
    run = await database.write(lambda s: updates.start(s, UpdateRun(user_id=ana)))

    def made_by(s: Session) -> None:
        versions.get(s, ana, last.number).update_id = run.id

    await database.write(made_by)
    said = await complaint(database, ana)
    assert await database.write(lambda s: undo.take_back(s, said, last.number, "worse")) == UndoResult(1, "no emoji")
    lesson = await database.read(lambda s: feedback.get(s, last.feedback_id or ""))
    assert (lesson.status, lesson.reason) == (FeedbackStatus.UNDONE, "worse")
    ended = await database.read(lambda s: updates.get(s, ana, run.id))
    assert (ended.status, ended.error) == (updates.TAKEN_BACK, "worse")
    later = await complaint(database, ana)
    assert await database.write(lambda s: undo.take_back(s, later, last.number, "worse")) is None
    noted = [await database.read(lambda s, i=row.id: feedback.get(s, i).took_back) for row in (said, later)]
    assert noted == [last.number, None]


async def test_a_rebuilt_version_is_not_taken_back(database: Database, ana: str) -> None:
    """It holds many lessons: none of them is the one that made it worse."""
    await database.write(lambda s: taught(s, ana, "too long"))
    version = await database.write(lambda s: rebuilt(s, ana))
    said = await complaint(database, ana)
    assert await database.write(lambda s: undo.take_back(s, said, version.number, "worse")) is None
    assert (await database.read(lambda s: people.get(s, ana))).active_version == version.number


async def test_a_version_from_a_file_is_the_newest_lesson(database: Database, ana: str) -> None:
    """It becomes active with every note in the prompt, an undo takes it back, and nothing else goes."""
    first = await database.write(lambda s: taught(s, ana, "too long"))

    def take_in(s: Session) -> int:
        version = versions.allocate(s, ana, first.number, BASE_MODEL, None, None)
        undo.take_in(s, version, "from a friend", "00", 1)
        return version.number

    number = await database.write(take_in)
    assert (await database.read(lambda s: people.get(s, ana))).active_version == number
    assert await database.read(lambda s: texts_by_state(s, ana)) == {"in_prompt": ["too long"]}
    assert await database.read(feedback.pending) == []
    assert await database.write(lambda s: undo.undo(s, ana)) == UndoResult(first.number)
    assert await database.read(lambda s: texts_by_state(s, ana)) == {"in_prompt": ["too long"]}


class Lessons(RuleBasedStateMachine):
    """Any sequence of lessons, notes, undo, roll back, deletion, rebuild and probes."""

    def __init__(self) -> None:
        super().__init__()
        import tempfile

        self.folder = tempfile.TemporaryDirectory()
        self.store = Store(copy_to(Path(self.folder.name)))
        self.user_id = self.store.write(person)
        self.count = 0

    def teardown(self) -> None:
        """Closes the database."""
        self.store.close()
        self.store.runner.close()
        self.folder.cleanup()

    def text(self) -> str:
        """A new text."""
        self.count += 1
        return f"lesson {self.count}"

    def live(self) -> list[str]:
        """The ids of the live notes."""
        return [n.id for n in self.store.read(lambda s: notes.live(s, self.user_id))]

    @rule(is_local=st.booleans())
    def teach(self, is_local: bool) -> None:
        """A correction is learned."""
        self.store.write(lambda s: taught(s, self.user_id, self.text(), is_local=is_local))

    @rule()
    def write_note(self) -> None:
        """A note is written."""
        self.store.write(lambda s: noted(s, self.user_id, self.text()))

    @precondition(lambda self: self.live())
    @rule(data=st.data(), state=st.sampled_from((NoteState.IN_WEIGHTS, NoteState.IN_PROMPT, NoteState.SUPERSEDED)))
    def probe(self, data: st.DataObject, state: NoteState) -> None:
        """A probe moves a note, which needs an adapter."""
        note_id = data.draw(st.sampled_from(self.live()))
        active = self.store.read(lambda s: people.get(s, self.user_id)).active_version
        if active:
            self.store.write(lambda s: notes.set_state(s, note_id, state))

    @precondition(lambda self: self.live())
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        """A note is deleted; where weights hold it the adapter is made again."""
        note_id = data.draw(st.sampled_from(self.live()))
        if self.store.write(lambda s: undo.delete_note(s, self.user_id, note_id)):
            self.make_again()

    def make_again(self) -> None:
        """Rebuild the adapter as the background task does."""
        if self.live():
            self.store.write(lambda s: rebuilt(s, self.user_id))
        else:
            self.store.write(lambda s: versions.activate(s, self.user_id, 0))

    @rule()
    def undo(self) -> None:
        """The newest lesson goes: never an older note, never two."""
        before = self.live()
        try:
            result = self.store.write(lambda s: undo.undo(s, self.user_id))
        except NothingToUndo:
            assert not before
            return
        gone = [n for n in before if n not in self.live()]
        assert gone in ([], before[-1:])
        if result.must_rebuild:
            self.make_again()

    @rule(keep=st.integers(2, 4))
    def prune(self, keep: int) -> None:
        """Old versions give up their files, and no note moves."""
        before = self.live()
        self.store.write(lambda s: versions.prune(s, self.user_id, keep))
        assert self.live() == before

    @rule(data=st.data())
    def roll_back(self, data: st.DataObject) -> None:
        """Any accepted version that is kept may become active."""
        known = self.store.read(lambda s: versions.history(s, self.user_id))
        numbers = [v.number for v in known if v.state == VersionState.ACCEPTED]
        number = data.draw(st.sampled_from([0, *numbers]))
        self.store.write(lambda s: undo.return_to(s, self.user_id, number))
        assert self.store.read(lambda s: people.get(s, self.user_id)).active_version == number

    @invariant()
    def no_lesson_is_lost_without_an_adapter(self) -> None:
        """With the base model active no note counts as held by weights."""
        active = self.store.read(lambda s: people.get(s, self.user_id)).active_version
        held = self.store.read(lambda s: notes.in_state(s, self.user_id, NoteState.IN_WEIGHTS))
        assert active or not held

    @invariant()
    def an_undone_lesson_has_no_live_note(self) -> None:
        """Feedback that was taken back and a note that holds never go together."""
        for note in self.store.read(lambda s: notes.live(s, self.user_id)):
            row = self.store.read(lambda s, f=note.feedback_id: feedback.get(s, f or ""))
            assert row.status != FeedbackStatus.UNDONE


TestLessons = Lessons.TestCase
TestLessons.settings = settings(max_examples=12, stateful_step_count=15, deadline=None)


async def test_a_complaint_about_a_first_version_undoes_the_one_in_its_place(database: Database, ana: str) -> None:
    """They are one lesson's; another lesson's version stays."""
    first = await database.write(lambda s: taught(s, ana, "use edit_lines"))

    def in_its_place(s: Session) -> int:
        whole = versions.allocate(s, ana, first.parent, "model", first.feedback_id, None)
        return versions.accept(s, ana, whole.number, "sha", 1).number

    await database.write(in_its_place)
    said = await complaint(database, ana)
    result = await database.write(lambda s: undo.take_back(s, said, first.number, "worse"))
    assert result == UndoResult(first.parent, "use edit_lines")
    lesson = await database.read(lambda s: feedback.get(s, first.feedback_id or ""))
    assert lesson.status == FeedbackStatus.UNDONE
