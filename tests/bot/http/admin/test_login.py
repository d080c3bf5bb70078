"""bot.http.admin.login: signing in, signing out, and the session cookie."""

import pytest

from bot.access import admin_password
from bot.http.admin import login
from bot.http.admin.attempts import ADMIN_ATTEMPTS
from tests.bot.conftest import Heed
from tests.bot.http.admin.rig import TOKEN, Operator


async def test_the_right_password_opens_the_page_that_was_wanted(heed: Heed) -> None:
    """The right password opens the wanted page; the cookie is HttpOnly, SameSite=Strict and for /admin only."""
    operator = Operator(heed)
    response = await operator.sign_in(next_page="/admin/updates")
    assert (response.status, response.headers["Location"]) == (303, "/admin/updates")
    cookie = response.headers["Set-Cookie"]
    assert {"HttpOnly", "SameSite=Strict", "Path=/admin"} <= set(cookie.split("; "))
    assert "Secure" not in cookie
    assert "Updates" in await operator.text("/admin/updates")


async def test_behind_https_the_cookie_is_for_https(heed: Heed) -> None:
    """Behind a proxy with HTTPS the cookie is secure."""
    password = await admin_password.another(heed.core.database)
    operator = Operator(heed)
    token = TOKEN.findall(await operator.text("/admin/login"))[0]
    fields = {"csrf": token, "password": password}
    response = await operator.post("/admin/login", fields, **{"X-Forwarded-Proto": "https"})
    assert "Secure" in response.headers["Set-Cookie"]


async def test_signing_out_ends_the_session(operator: Operator, heed: Heed) -> None:
    """Signing out ends the session, also for a stored copy of the cookie."""
    cookies = {c.key: c.value for c in heed.client.session.cookie_jar}
    assert (await operator.act("/admin/logout")).headers["Location"] == "/admin/login"
    assert (await operator.get("/admin", cookies=cookies)).status == 303


async def test_another_password_ends_all_sessions(operator: Operator, heed: Heed) -> None:
    """A new password ends all sessions at once, and the old one opens nothing."""
    await admin_password.another(heed.core.database)
    assert (await operator.get("/admin")).headers["Location"] == "/admin/login?next=%2Fadmin"


async def test_before_a_password_was_made_none_is_right(heed: Heed) -> None:
    """Before a password exists none is accepted, not even the empty one."""
    assert (await Operator(heed).sign_in(password=" ")).status == 403


async def test_too_many_tries_have_to_wait(heed: Heed) -> None:
    """After too many tries even the right password has to wait."""
    password = await admin_password.another(heed.core.database)
    operator = Operator(heed)
    heed.client.server.app[ADMIN_ATTEMPTS]._clock = lambda: 1.0  # type: ignore[attr-defined]
    assert [(await operator.sign_in("wrong")).status for _ in range(4)] == [403, 403, 403, 429]
    response = await operator.sign_in(password)
    assert (response.status, response.headers["Retry-After"]) == (429, "2")
    heed.client.server.app[ADMIN_ATTEMPTS]._clock = lambda: 3.0  # type: ignore[attr-defined]
    assert (await operator.sign_in(password)).status == 303


async def test_behind_a_proxy_callers_are_told_apart(heed: Heed) -> None:
    """Tries that a trusted proxy forwards count for the forwarded address; the operator's own is not held up."""
    password = await admin_password.another(heed.core.database)
    heed.client.server.app[ADMIN_ATTEMPTS]._clock = lambda: 1.0  # type: ignore[attr-defined]
    stranger, operator = Operator(heed), Operator(heed)
    given = {"X-Forwarded-For": "192.0.2.66, 203.0.113.7"}
    statuses = [(await stranger.sign_in("wrong", **given)).status for _ in range(4)]
    assert statuses == [403, 403, 403, 429]
    heed.client.session.cookie_jar.clear()
    assert (await operator.sign_in(password, **{"X-Forwarded-For": "192.0.2.66"})).status == 303


@pytest.mark.parametrize(
    "address",
    ["//evil.example", "https://evil.example/admin", "/adminx", "/admin/../v1", "/admin\\@evil.example", "/", "",
     "/admin/login", "/admin/\r\nX: y", "/admin@evil.example"],
)  # fmt: skip
def test_signing_in_never_leads_elsewhere(address: str) -> None:
    """Signing in leads to a dashboard, whatever `next` contains."""
    assert login._own(address) == "/admin"


@pytest.mark.parametrize("address", ["/admin", "/admin/updates?before=7&status=failed"])
def test_a_dashboard_is_where_one_goes(address: str) -> None:
    """Signing in leads to the dashboard in `next`, with its query."""
    assert login._own(address) == address
