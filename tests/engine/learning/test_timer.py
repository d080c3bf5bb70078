"""How long phases took."""

from engine.learning.timer import PhaseTimer


def test_laps_follow_one_another_and_a_phase_may_come_again() -> None:
    """Each books what has passed since the last; together they are all the time so far."""
    timed = PhaseTimer(started_s=PhaseTimer().started_s - 1.0)
    timed.lap("rollouts")
    timed.started_s -= 2.0
    timed.lap("train")
    timed.started_s -= 0.5
    timed.lap("rollouts")
    assert timed.phases_ms["rollouts"] >= 1500
    assert timed.phases_ms["train"] >= 2000
    assert 3500 <= sum(timed.phases_ms.values()) <= timed.duration_ms
