"""engine.learning.update_state: one update of a lesson, and another of the same lesson."""

from engine.adapter_ref import ZERO_ADAPTER
from engine.config import LearnConfig
from engine.host.trainer_client import Trained
from engine.learning.update_state import UpdateState
from storage.tables import UpdateRun


def _state() -> UpdateState:
    run = UpdateRun(user_id="ana", feedback_id="f1", kind="correction", parent_version=3, notes=["short"])
    return UpdateState(run=run, parent=ZERO_ADAPTER, learn=LearnConfig(), notes=["short"], facts=[])


def test_another_update_is_of_the_same_lesson_and_has_measured_nothing() -> None:
    """Its row is new: of the same feedback and parent; its time begins anew."""
    first = _state()
    first.trained = Trained(steps=8)
    first.lap("train")
    other = first.another("deepening")
    assert (other.run.kind, other.run.feedback_id, other.run.parent_version) == ("deepening", "f1", 3)
    assert other.run.id != first.run.id
    assert other.trained.steps == 0
    assert other.phases_ms == {}
    assert first.phases_ms.keys() == {"train"}
    assert other.notes == ["short"]


def test_the_next_try_is_of_the_lessons_kind() -> None:
    """As the one before."""
    assert _state().next_run().kind == "correction"
