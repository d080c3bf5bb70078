"""bot.http.admin.sessions: the conditions under which a session is open."""

from bot.http.admin import sessions
from bot.http.admin.sessions import AdminSessions
from tests.bot.http.admin.test_attempts import Clock


def test_a_session_is_found_by_its_cookie_alone() -> None:
    """A session is not found by another value, after it was closed, or after a new password."""
    known = AdminSessions(Clock())
    token = known.open("p")
    assert known.find(token, "p") is not None
    assert known.find(token[:-1], "p") is None
    assert token not in str(known._open)
    assert known.find(known.open("p"), "q") is None
    known.close(token)
    assert known.find(token, "p") is None


def test_a_session_ends_when_nobody_uses_it() -> None:
    """An idle session ends, and a request that is no use does not extend it."""
    clock = Clock()
    known = AdminSessions(clock)
    token = known.open("p")
    for _ in range(3):
        clock.now_s += sessions.IDLE_S - 1
        assert known.find(token, "p") is not None
    clock.now_s += sessions.IDLE_S - 1
    assert known.find(token, "p", is_use=False) is not None
    clock.now_s += 2
    assert known.find(token, "p") is None


def test_a_session_ends_by_its_age() -> None:
    """A session ends by its age, however much it is used."""
    clock = Clock()
    known = AdminSessions(clock)
    token = known.open("p")
    while clock.now_s < sessions.LIFETIME_S:
        assert known.find(token, "p") is not None
        clock.now_s += 600
    assert known.find(token, "p") is None


def test_a_bounded_number_is_open() -> None:
    """With too many sessions the oldest ends first."""
    known = AdminSessions(Clock())
    tokens = [known.open("p") for _ in range(sessions.MAX_SESSIONS + 1)]
    assert known.find(tokens[0], "p") is None
    assert known.find(tokens[1], "p") is not None


def test_forms_of_visitors_have_tokens_of_their_own() -> None:
    """Form tokens differ between visitors and between heeds."""
    first, second = AdminSessions(), AdminSessions()
    assert first.form_token("a") == first.form_token("a")
    assert len({first.form_token("a"), first.form_token("b"), second.form_token("a")}) == 3
