"""bot.http.admin.attempts: the pauses between tries grow."""

from bot.http.admin import attempts
from bot.http.admin.attempts import Attempts


class Clock:
    """A clock that is set by hand."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_pauses_grow_to_a_bound() -> None:
    """Three tries are free, then pauses are 1, 2, 4 ... seconds; a try that comes too early is not counted."""
    clock, pauses = Clock(), []
    tries = Attempts(clock)
    for _ in range(14):
        assert tries.begin("a") == 0
        pauses.append(tries.begin("a") if _ >= 2 else 0.0)
        clock.now_s += pauses[-1]
    assert pauses[:7] == [0, 0, 1, 2, 4, 8, 16]
    assert pauses[-1] == attempts.MAX_PAUSE_S


def test_the_right_one_begins_anew_and_others_are_not_held_up() -> None:
    """Each address has tries of its own, and a right password resets them."""
    tries = Attempts(Clock())
    assert [tries.begin("a") > 0 for _ in range(4)] == [False, False, False, True]
    assert tries.begin("b") == 0
    tries.passed("a")
    assert tries.begin("a") == 0


def test_a_bounded_number_of_addresses_is_known() -> None:
    """The address that tried longest ago is forgotten first."""
    tries = Attempts(Clock())
    for number in range(attempts.KNOWN_ADDRESSES + 5):
        tries.begin(str(number))
    assert len(tries._known) == attempts.KNOWN_ADDRESSES
