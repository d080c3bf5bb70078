"""Runs of the evaluation harness."""

import pytest

from storage.errors import EvalRunNotFound
from storage.reports import eval_runs
from tests.storage.conftest import Store


def test_runs_are_kept_newest_first(store: Store) -> None:
    """As they were handed over."""
    first, second = (store.write(lambda s, n=n: eval_runs.add(s, {"n": n}, {"figures": []})) for n in range(2))
    assert [run.config["n"] for run in store.read(lambda s: eval_runs.recent(s, 9))] == [1, 0]
    assert [run.id for run in store.read(lambda s: eval_runs.recent(s, 1))] == [second.id]
    assert store.read(lambda s: eval_runs.get(s, first.id)).summary == {"figures": []}
    with pytest.raises(EvalRunNotFound):
        store.read(lambda s: eval_runs.get(s, "none"))
