"""engine.cluster.cores: engines of one machine share its cores out."""

from pathlib import Path

import pytest

from engine.cluster import cores
from engine.cluster.cores import BIND, THREADS, UNBOUND, all_here, allowed_here, among_unknown, one_of


@pytest.mark.parametrize(("num_cores", "count"), [(4, 2), (16, 2), (16, 3), (7, 3), (8, 4), (6, 1)])
def test_no_two_engines_are_bound_to_one_core(num_cores: int, count: int) -> None:
    """Each leaves one of its own to what serves it."""
    given = [one_of(place, count, range(num_cores)) for place in range(count)]
    bound = [set(map(int, one[BIND].split(","))) for one in given]
    assert sum(map(len, bound)) == len(set.union(*bound)) == num_cores - count
    assert [one[THREADS] for one in given] == [str(len(one)) for one in bound]


@pytest.mark.parametrize(("num_cores", "count"), [(1, 1), (2, 2), (3, 2), (2, 4)])
def test_with_less_than_two_cores_each_nothing_is_bound(num_cores: int, count: int) -> None:
    """The system finds a core for each; one thread computes."""
    given = [one_of(place, count, range(num_cores)) for place in range(count)]
    assert {one[BIND] for one in given if one[THREADS] == "1"} >= {UNBOUND}
    assert all(one[BIND] == UNBOUND or len(one[BIND].split(",")) == int(one[THREADS]) for one in given)


def test_an_engine_beside_which_there_may_be_others_is_bound_to_what_it_was_given() -> None:
    """By taskset; one that was given the whole machine computes with all cores but one, wherever they are free."""
    machine = range(8)
    assert among_unknown([4, 5, 6, 7], machine) == {BIND: "5,6,7", THREADS: "3"}
    assert among_unknown(machine, machine) == {BIND: UNBOUND, THREADS: "7"}
    assert among_unknown([3], machine) == {BIND: UNBOUND, THREADS: "1"}


def test_two_processors_of_a_core_count_once(tmp_path: Path) -> None:
    """Numbered as Linux does: the second ones behind all the first."""
    for processor in range(4):
        folder = tmp_path / f"cpu{processor}" / "topology"
        folder.mkdir(parents=True)
        (folder / "thread_siblings_list").write_text(f"{processor % 2},{processor % 2 + 2}\n")
    assert cores._physical({0, 1, 2, 3}, tmp_path) == [0, 1]
    assert cores._physical({2, 3}, tmp_path) == [2, 3]
    assert cores._physical({5, 6}, tmp_path) == [5, 6]  # of which nothing is known


def test_this_machine_has_cores() -> None:
    """Those that are allowed are among all."""
    assert 1 <= len(allowed_here()) <= len(all_here())
