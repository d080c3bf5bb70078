"""storage.reports.readings: what heed read beside what people pressed."""

from sqlmodel import Session

from storage.kinds import Scope
from storage.learning import feedback
from storage.people import people
from storage.reports import readings
from storage.reports.readings import ReadingCount
from tests.storage import rows
from tests.storage.conftest import Store


def read(s: Session, text: str, reading: str, scope: str = "", margin: float | None = None) -> str:
    """A correction that was read, or none with an empty reading; its id."""
    user = people.resolve(s, "http", "ana")
    row, _ = feedback.add(s, rows.feedback(user.id, text=text, scope=scope))
    if reading:
        feedback.note_reading(s, row.id, reading, margin, is_unsure=margin is not None and margin < 0.3)
    return row.id


def test_corrections_are_counted_by_reading_and_choice(store: Store) -> None:
    """Also those without a choice; the margin is the mean of those that a probe read."""

    def fill(s: Session) -> None:
        read(s, "too long", "wish", Scope.ALWAYS, 0.8)
        read(s, "shorter", "wish", Scope.ALWAYS, 0.6)
        read(s, "no, Canberra", "wish", Scope.ANSWER, 0.2)
        read(s, "that is wrong", "remark")
        read(s, "never read", "")

    store.write(fill)
    assert store.read(readings.counts) == [
        ReadingCount("remark", "", False, 1, None),
        ReadingCount("wish", "always", False, 2, 0.7),
        ReadingCount("wish", "answer", True, 1, 0.2),
    ]


def test_a_correction_that_was_taught_again_counts_once(store: Store) -> None:
    """Its second row carries the same words for the same answer; the choice stands on both."""

    def fill(s: Session) -> None:
        first = read(s, "too long", "remark", margin=0.2)
        read(s, "too long", "remark", Scope.ALWAYS, 0.2)
        feedback.set_scope(s, first, Scope.ALWAYS)

    store.write(fill)
    assert store.read(readings.counts) == [ReadingCount("remark", "always", True, 1, 0.2)]
