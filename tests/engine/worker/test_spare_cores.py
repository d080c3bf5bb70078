"""engine.worker.spare_cores: a core that others use is left to them; one that is free is borrowed and given back."""

import os
import time
from pathlib import Path

import pytest
import torch

from engine.worker import spare_cores
from engine.worker.spare_cores import MIN_WINDOW_S, SpareCores

ALLOWED = {0, 1}
TICKS = os.sysconf("SC_CLK_TCK")


class Machine:
    """Two cores, the worker bound to the first; time passes by hand."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path = folder / "stat"
        self.affinity = {0}
        self.now_s = self.own_s = self.others_s = 0.0
        monkeypatch.setattr(time, "monotonic", lambda: self.now_s)
        monkeypatch.setattr(time, "process_time", lambda: self.own_s)
        monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(self.affinity))
        monkeypatch.setattr(os, "sched_setaffinity", lambda _pid, cores: setattr(self, "affinity", set(cores)))
        self.passes(0, own_s=0, others_s=0)

    def passes(self, seconds: float, *, own_s: float, others_s: float) -> None:
        """Let time pass in which the worker and the others computed for so long."""
        self.now_s += seconds
        self.own_s += own_s
        self.others_s += others_s
        lines = [
            f"cpu0 {self.own_s * TICKS:.0f} 0 0 99 0 0 0 0 0 0",
            f"cpu1 {self.others_s * TICKS:.0f} 0 0 0 9 0 0 0 0 0",
        ]
        self.path.write_text("\n".join(["cpu 1 2 3 4 5 6 7 8 9 10", *lines, "cpu7 99999 0 0 0 0 0 0 0 0 0", "intr 5"]))


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Return a machine of two cores on which nothing happened."""
    return Machine(tmp_path, monkeypatch)


def test_an_idle_core_is_borrowed_and_given_back(machine: Machine) -> None:
    """One thread more, on both cores; afterwards everything is as before."""
    threads = torch.get_num_threads()
    spare = SpareCores(ALLOWED, machine.path)
    machine.passes(2, own_s=2, others_s=0.2)
    with spare.borrowed() as lent:
        assert lent == threads + 1
        assert torch.get_num_threads() == threads + 1
        assert machine.affinity == ALLOWED
    assert torch.get_num_threads() == threads
    assert machine.affinity == {0}


def test_a_core_that_others_use_is_theirs(machine: Machine) -> None:
    """Before the first look, and while others compute; it is lent again once they have ended."""
    threads = torch.get_num_threads()
    spare = SpareCores(ALLOWED, machine.path)
    with spare.borrowed() as lent:
        assert lent == threads  # nothing is known yet
    for others_s, expected in ((1.0, threads), (0.0, threads + 1), (0.5, threads)):
        machine.passes(1, own_s=1, others_s=others_s)
        with spare.borrowed() as lent:
            assert lent == expected


def test_its_own_threads_on_the_borrowed_core_are_not_others(machine: Machine) -> None:
    """Both cores were busy all the time, with this process."""
    threads = torch.get_num_threads()
    spare = SpareCores(ALLOWED, machine.path)
    machine.passes(1, own_s=1, others_s=1)
    machine.own_s += 1  # of the second core's second, too
    with spare.borrowed() as lent:
        assert lent == threads + 1


def test_too_short_a_window_changes_nothing(machine: Machine) -> None:
    """The kernel's counts are too coarse for it."""
    spare = SpareCores(ALLOWED, machine.path)
    machine.passes(MIN_WINDOW_S / 2, own_s=0, others_s=0)
    with spare.borrowed() as lent:
        assert lent == torch.get_num_threads()


def test_an_error_gives_the_cores_back(machine: Machine) -> None:
    """Training may fail."""
    spare = SpareCores(ALLOWED, machine.path)
    machine.passes(2, own_s=0, others_s=0)
    with pytest.raises(ZeroDivisionError), spare.borrowed():
        _ = 1 / 0
    assert machine.affinity == {0}


def test_the_kernels_own_counts_can_be_read() -> None:
    """On the machine at hand: both counts grow with work."""
    spare = SpareCores(os.sched_getaffinity(0))
    before = spare._usage()
    ends = time.monotonic() + 10 * spare_cores.MIN_WINDOW_S
    while spare._usage().all_s == before.all_s and time.monotonic() < ends:
        sum(range(100_000))
    after = spare._usage()
    assert after.all_s > before.all_s
    assert after.own_s > before.own_s


def test_the_workers_own_core_is_left_to_decoding(machine: Machine) -> None:
    """Training beside it has the other core, with one thread; of more own cores it has half."""
    spare = SpareCores(ALLOWED, machine.path)
    spare.is_decoding = True
    machine.passes(2, own_s=2, others_s=0.2)
    with spare.borrowed() as lent:
        assert (lent, machine.affinity) == (1, {1})
    assert machine.affinity == {0}
    spare.is_decoding = False
    machine.passes(2, own_s=2, others_s=0.2)
    with spare.borrowed():
        assert machine.affinity == ALLOWED


def test_a_worker_on_all_cores_shares_them_with_training(machine: Machine) -> None:
    """Unbound, or on a single core: there is no other."""
    machine.affinity = {0}
    spare = SpareCores({0}, machine.path)
    spare.is_decoding = True
    with spare.borrowed() as lent:
        assert (lent, machine.affinity) == (1, {0})
