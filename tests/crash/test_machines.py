"""What the faults of machines left is judged: each fault is found, and what is right is not."""

from storage.kinds import VersionState
from storage.tables import AdapterVersion
from tests.crash.machines import MachineFindings, judged
from tests.storage.atomicity import Operation

TOLD = {"one", "two"}
SEEN = [
    Operation(True, 1, 0.0, 1.0), Operation(False, 1, 2.0, 3.0),
    Operation(True, 2, 4.0, 5.0), Operation(False, 2, 6.0, 7.0),
]  # fmt: skip


def version(
    number: int, taught: str, state: VersionState = VersionState.ACCEPTED, parent: int | None = None
) -> AdapterVersion:
    """A version of ana's, made from the one before unless told otherwise."""
    made_from = number - 1 if parent is None else parent
    return AdapterVersion(
        user_id="ana", number=number, parent=made_from, path="", base_model="", feedback_id=taught, state=state
    )


def found(*history: AdapterVersion, seen: list[Operation] = SEEN, unfinished: int = 0) -> MachineFindings:
    """What is found of a person who was told of both lessons."""
    return judged({"ana": list(history)}, {"ana": seen}, TOLD, unfinished)


def test_a_lesson_whose_version_was_pruned_is_there() -> None:
    """It was accepted once, and what came after it was made from it."""
    right = found(version(1, "one", VersionState.PRUNED), version(2, "two"))
    assert (right.is_right, right.num_lessons, right.num_answers) == (True, 2, 2)


def test_a_lesson_without_an_accepted_version_is_lost() -> None:
    """Whether a version of it was given up, was damaged, or never was."""
    assert found(version(1, "one")).lost == ["two"]
    assert found(version(1, "one"), version(2, "two", VersionState.REJECTED)).lost == ["two"]
    assert found(version(1, "one"), version(2, "two", VersionState.DAMAGED)).lost == ["two"]


def test_a_lesson_learned_twice_is_doubled() -> None:
    """Even where the first time is pruned by now."""
    twice = found(version(1, "one", VersionState.PRUNED), version(2, "one"), version(3, "two"))
    assert (twice.doubled, twice.is_right) == (["one"], False)


def test_two_versions_made_from_one_are_a_fork() -> None:
    """Even where one of them is pruned by now."""
    split = found(version(1, "one", VersionState.PRUNED), version(2, "two", parent=0))
    assert (len(split.forks), split.is_right) == (1, False)


def test_an_answer_of_the_version_before_is_stale() -> None:
    """Once a person has heard of the newer one."""
    old = found(version(1, "one"), version(2, "two"), seen=[*SEEN, Operation(False, 1, 8.0, 9.0)])
    assert any(one.startswith("ana: ") for one in old.stale)
    assert not old.is_right


def test_a_version_nobody_was_told_of_may_have_come_at_any_time() -> None:
    """A gateway died before it could tell them; an answer of it is right."""
    seen = [one for one in SEEN if not (one.is_write and one.value == 2)]
    assert found(version(1, "one"), version(2, "two"), seen=seen).is_right


def test_feedback_that_is_pending_is_unfinished() -> None:
    """Nothing people asked for stays without an answer."""
    assert not found(version(1, "one"), version(2, "two"), unfinished=1).is_right
