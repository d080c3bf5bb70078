"""engine.learning.progress: phase and share of the lesson that runs."""

import pytest

from engine.learning.progress import ALMOST, EXPECTED_MS, ProgressEstimate
from engine.requests import LessonProgress


class Situation:
    """A progress whose clock and trainer the test sets."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.trained = 0.0
        self.progress = ProgressEstimate(lambda: self.trained, lambda: self.now_s)

    def share(self) -> float:
        """The share of the running lesson."""
        return self.progress.of("f1", 0.0).share


@pytest.fixture
def lesson() -> Situation:
    """A lesson that has just begun."""
    situation = Situation()
    situation.progress.begin("f1")
    return situation


def test_a_lesson_begins_at_nothing(lesson: Situation) -> None:
    """Its first phase, and no share; another lesson that waits for its turn likewise."""
    assert lesson.progress.of("f1", 2.0) == LessonProgress("running", "reading", 0.0, 2.0)
    assert lesson.progress.of("f2", 1.0) == LessonProgress("running", "reading", 0.0, 1.0)


def test_the_share_grows_with_the_phases_and_never_falls(lesson: Situation) -> None:
    """With time within a phase, and with each phase that ends; it stays below one."""
    shares = [lesson.share()]
    for phase in EXPECTED_MS:
        lesson.now_s += 1.0
        shares.append(lesson.share())
        lesson.progress.lap(phase)
        shares.append(lesson.share())
    assert shares == sorted(shares)
    assert len(set(shares)) >= len(EXPECTED_MS)
    assert shares[-1] <= ALMOST < 1.0


def test_training_counts_steps(lesson: Situation) -> None:
    """Half of the steps is half of that phase, however long it takes."""
    for phase in ("reading", "rollouts", "teacher rollouts", "facts"):
        lesson.progress.lap(phase)
    before = lesson.share()
    lesson.trained, lesson.now_s = 0.5, 1000.0
    expected = before + 0.5 * EXPECTED_MS["train"] / sum(EXPECTED_MS.values())
    assert lesson.share() == pytest.approx(expected)


def test_a_refused_attempt_trains_once_more(lesson: Situation) -> None:
    """The phase is training again, and the share stays where it was."""
    for phase in ("reading", "rollouts", "teacher rollouts", "facts", "train"):
        lesson.progress.lap(phase)
    share = lesson.share()
    lesson.progress.lap("rejected")
    again = lesson.progress.of("f1", 0.0)
    assert (again.phase, again.share) == ("train", share)


def test_the_next_lesson_is_expected_to_be_like_the_last(lesson: Situation) -> None:
    """Its phases, their order and their times; a refused one, or one without training, says nothing."""
    lesson.progress.end({"reading": 100.0, "train": 300.0})
    lesson.progress.end({"reading": 1.0, "train": 1.0, "rejected": 1.0})
    lesson.progress.end({"reading": 1.0})
    lesson.progress.begin("f1")
    lesson.progress.lap("reading")
    assert lesson.progress.of("f1", 0.0) == LessonProgress("running", "train", 0.25, 0.0)


def test_an_unknown_phase_changes_nothing(lesson: Situation) -> None:
    """A phase that no lesson has had yet is not in the estimate."""
    lesson.progress.lap("reading")
    before = lesson.progress.of("f1", 0.0)
    lesson.progress.lap("a new phase")
    assert lesson.progress.of("f1", 0.0) == before
