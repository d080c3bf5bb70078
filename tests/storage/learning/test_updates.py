"""The log of updates."""

import pytest

from storage.errors import UpdateNotFound
from storage.learning import updates
from storage.tables import UpdateRun
from tests.storage.conftest import Store


def _start(store: Store, user_id: str, **fields: object) -> UpdateRun:
    return store.write(lambda s: updates.start(s, UpdateRun(user_id=user_id, **fields)))


def test_an_update_is_logged_with_its_figures(store: Store, ana: str) -> None:
    """The figures given to finish() come back after a restart."""
    update = _start(store, ana)
    figures = {"status": "accepted", "steps": 10, "duration_ms": 812.5, "divergence_before": 2.5}
    figures |= {
        "phases_ms": {"teacher": 90.0},
        "gate": {"norm": 1.5, "ok": True},
        "heat": [["llama", -0.5]],
        "version": 3,
    }
    store.write(lambda s: updates.finish(s, update.id, **figures))
    store.reopen()
    logged = store.read(lambda s: updates.get(s, ana, update.id)).model_dump()
    assert {name: logged[name] for name in figures} == figures
    assert logged["divergence_after"] is None


def test_figures_that_are_not_finite_are_no_figures(store: Store, ana: str) -> None:
    """The log of a step that went wrong can be stored: NaN and infinity become None, at any depth."""
    nan = float("nan")
    update = _start(store, ana)
    fields = {"divergence_after": nan, "gate": {"norm": float("inf"), "is_finite": False}, "heat": [("llama", nan)]}
    logged = store.write(lambda s: updates.finish(s, update.id, **fields))
    assert logged.divergence_after is None
    assert logged.gate == {"norm": None, "is_finite": False}
    assert logged.heat == [["llama", None]]


@pytest.mark.parametrize("field", ["user_id", "id", "seq", "started_at", "nonsense"])
def test_finish_changes_figures_only(store: Store, ana: str, field: str) -> None:
    """The owner of an update, and fields that do not exist, cannot be set."""
    update = _start(store, ana)
    with pytest.raises(TypeError, match=field):
        store.write(lambda s: updates.finish(s, update.id, **{field: "x"}))


def test_recent_updates_come_newest_first_and_are_the_persons_own(store: Store, ana: str, ben: str) -> None:
    """The limit counts this person's updates only."""
    for n in range(3):
        _start(store, ana, steps=n)
        _start(store, ben)
    assert [update.steps for update in store.read(lambda s: updates.recent(s, ana, 2))] == [2, 1]


def test_another_persons_update_does_not_exist(store: Store, ana: str, ben: str) -> None:
    """get() with the wrong person is the same as with a wrong id, and so is finish() with one."""
    update = _start(store, ana)
    for user_id, wanted in ((ben, update.id), (ana, "upd-nothing")):
        with pytest.raises(UpdateNotFound):
            store.read(lambda s, user_id=user_id, wanted=wanted: updates.get(s, user_id, wanted))
    with pytest.raises(UpdateNotFound):
        store.write(lambda s: updates.finish(s, "upd-nothing", steps=1))


def test_what_ran_at_a_crash_has_failed(store: Store, ana: str) -> None:
    """At start nothing is running; finished updates keep their result."""
    running, done = _start(store, ana), _start(store, ana)
    store.write(lambda s: updates.finish(s, done.id, status="accepted"))
    store.reopen()
    assert store.write(updates.fail_interrupted) == 1
    logged = store.read(lambda s: (updates.get(s, ana, running.id), updates.get(s, ana, done.id)))
    assert [(update.status, update.error) for update in logged] == [
        ("failed", "interrupted by a restart"),
        ("accepted", ""),
    ]
