"""bot.http.admin.attempts: the pauses between tries grow."""

from bot.http.admin import attempts
from bot.http.admin.attempts import Attempts
from tests.clock import Clock


def test_pauses_grow_to_a_bound() -> None:
    """Three tries are free, then pauses are 1, 2, 4 ... seconds; a try that comes too early is not counted."""
    clock, pauses = Clock(), []
    tries = Attempts(clock)
    for _ in range(14):
        assert tries.begin("a", "") == 0
        pauses.append(tries.begin("a", "") if _ >= 2 else 0.0)
        clock.now_s += pauses[-1]
    assert pauses[:7] == [0, 0, 1, 2, 4, 8, 16]
    assert pauses[-1] == attempts.MAX_PAUSE_S


def test_the_right_one_begins_anew_and_others_are_not_held_up() -> None:
    """Each address has tries of its own, and a right password resets them."""
    tries = Attempts(Clock())
    assert [tries.begin("a", "") > 0 for _ in range(4)] == [False, False, False, True]
    assert tries.begin("b", "") == 0
    tries.passed("a", "browser")
    assert tries.begin("a", "") == 0


def test_a_bounded_number_of_addresses_is_known() -> None:
    """The address that tried longest ago is forgotten first."""
    tries = Attempts(Clock())
    for number in range(attempts.KNOWN_ADDRESSES + 5):
        tries.begin(str(number), "")
    assert len(tries._known) == attempts.KNOWN_ADDRESSES


def test_the_account_is_limited_over_all_addresses() -> None:
    """Strangers with many addresses share the tries of one account, and wait for seconds at most."""
    clock = Clock()
    tries = Attempts(clock)
    for number in range(attempts.FREE_TRIES_OF_ALL):
        assert tries.begin(str(number), "") == 0
    assert 0 < tries.begin("0", "") <= attempts.MAX_PAUSE_OF_ALL_S
    clock.now_s += attempts.MAX_PAUSE_OF_ALL_S
    assert tries.begin("0", "") == 0


def test_strangers_do_not_keep_the_operator_out() -> None:
    """However many try: the first try of another address is free, and a browser that signed in is known everywhere."""
    tries = Attempts(Clock())
    tries.begin("home", "browser")
    tries.passed("home", "browser")
    for number in range(1000):
        tries.begin(str(number % 50), "")
        tries.begin("home", "")
    assert tries.begin("new", "") == 0
    assert tries.begin("home", "browser") == 0


def test_tries_are_forgotten_after_an_hour() -> None:
    """Pauses begin anew."""
    clock = Clock()
    tries = Attempts(clock)
    for _ in range(attempts.FREE_TRIES):
        tries.begin("a", "")
    clock.now_s += attempts.FORGET_S + 1
    assert [tries.begin("a", "") > 0 for _ in range(4)] == [False, False, False, True]


def test_a_bounded_number_of_browsers_is_known() -> None:
    """The one that signed in longest ago is a stranger again."""
    tries = Attempts(Clock())
    for number in range(attempts.KNOWN_BROWSERS + 5):
        tries.passed("a", str(number))
    assert len(tries._browsers) == attempts.KNOWN_BROWSERS
