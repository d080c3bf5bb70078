"""bench.cluster_model: people, adapters and an engine that dies, in a cluster that is small enough to be counted."""

import math
from dataclasses import replace

import pytest

from bench.cluster_model import Assumptions, ClusterModel, ReplayedModel, Trace, engines_for
from engine.cluster.placement import ranked

BUSY = Assumptions(people=2_000, messages_a_day=400.0, spread=0.5)


def test_everything_is_a_function_of_the_seed() -> None:
    """Two runs are equal, another seed is another run."""
    first, second, other = (ClusterModel(BUSY, 4, seed).run(120.0, 60.0) for seed in (1, 1, 2))
    assert first == second
    assert first.latencies != other.latencies


@pytest.mark.parametrize("num_engines", [2, 4, 8])
def test_only_the_people_of_the_engine_that_dies_move(num_engines: int) -> None:
    """One n-th of them, give or take what chance does to two thousand people."""
    outcome = ClusterModel(BUSY, num_engines, 3).run(600.0, 300.0)
    share, expected = outcome.num_moved / outcome.num_seen, 1 / num_engines
    assert share == pytest.approx(expected, abs=4 * math.sqrt(expected / outcome.num_seen) + 0.02)


def test_a_lonely_engine_neither_dies_nor_moves_anybody() -> None:
    """It answers everything."""
    outcome = ClusterModel(BUSY, 1, 3).run(120.0, 60.0)
    assert (outcome.num_moved, set(outcome.answers)) == (0, {"engine-1"})
    assert sum(outcome.answers.values()) == len(outcome.latencies) > 100


def test_an_adapter_is_fetched_once_and_loaded_again_where_slots_are_few() -> None:
    """What is on an engine's disk stays there; with a slot for everybody nothing is loaded twice."""
    few, enough = (ClusterModel(replace(BUSY, slots=slots), 1, 3).run(300.0) for slots in (8, 4_000))
    assert few.num_fetches == pytest.approx(enough.num_fetches, rel=0.05)
    assert few.num_loads > enough.num_loads == 0


def test_an_engine_that_comes_back_has_its_disk_and_no_adapter_in_the_model() -> None:
    """Its people are its people again, and their adapters are loaded, not fetched."""
    gone, back = (ClusterModel(replace(BUSY, restart_s=s, slots=4_000), 2, 3).run(600.0, 300.0) for s in (None, 30.0))
    assert gone.num_loads == 0 < back.num_loads
    assert back.num_fetches < gone.num_fetches
    assert back.answers["engine-1"] > gone.answers["engine-1"]


def test_a_trace_is_replayed_with_its_people_at_its_moments() -> None:
    """Ana's adapter is fetched once by each engine that answers her, and nobody else has one."""
    messages = [(1.0, 0), (2.0, 1), (3.0, 0), (50.0, 0), (60.0, 0), (90.0, 0)]
    assumed = Assumptions(answer_s=0.5, fetch_s=0.25, load_s=0.0, restart_s=20.0)
    trace = Trace(["ana", "ben"], frozenset({0}), messages)
    first = ranked("ana", {"engine-1": 1.0, "engine-2": 1.0})[0]
    alone, both = (ReplayedModel(assumed, num_engines, trace).run(100.0, 50.0) for num_engines in (1, 2))
    assert (alone.num_fetches, alone.answers) == (1, {"engine-1": 6})
    assert [round(s, 2) for s in alone.latencies] == [0.76, 0.51, 0.51, 0.51, 0.51, 0.51]
    is_moved = first == "engine-1"  # to the other one, and back
    assert (both.num_fetches, both.num_loads) == ((2, 1) if is_moved else (1, 0))


def test_people_who_never_taught_need_no_adapter() -> None:
    """The model itself answers them."""
    outcome = ClusterModel(replace(BUSY, taught_share=0.0), 1, 3).run(60.0)
    assert (outcome.num_fetches, outcome.num_loads) == (0, 0)


def test_a_full_engine_answers_more_slowly() -> None:
    """Beyond its streams, messages wait."""
    quiet, full = (ClusterModel(replace(BUSY, streams=streams), 1, 3).run(120.0) for streams in (1_000, 8))
    assert max(quiet.latencies) < 2 * BUSY.answer_s < max(full.latencies)


def test_the_peak_takes_more_engines_the_more_people_there_are() -> None:
    """At least one, and in proportion once there are many."""
    counts = [engines_for(Assumptions(people=10**n)) for n in range(1, 8)]
    assert counts == sorted(counts)
    assert counts[0] == 1
    assert counts[-1] == pytest.approx(10 * counts[-2], rel=0.2)


def test_two_full_engines_answer_twice_as_much_as_one() -> None:
    """While neither dies, and as far as people are spread evenly."""
    asked = replace(BUSY, streams=8)  # ten times what one can answer
    one, two = (len(ClusterModel(asked, num_engines, 3).run(120.0).latencies) for num_engines in (1, 2))
    assert 1.8 < two / one <= 2.05
