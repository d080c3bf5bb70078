"""bot.http.admin.login: the way in, the way out, and what a cookie of it is."""

import pytest

from bot.access import admin_password
from bot.http.admin import login
from bot.http.admin.attempts import ADMIN_ATTEMPTS
from tests.bot.conftest import Heed
from tests.bot.http.admin.rig import TOKEN, Operator


async def test_the_right_password_opens_the_page_that_was_wanted(heed: Heed) -> None:
    """The cookie is HttpOnly and SameSite=Strict, and sent below /admin only."""
    operator = Operator(heed)
    response = await operator.sign_in(next_page="/admin/updates")
    assert (response.status, response.headers["Location"]) == (303, "/admin/updates")
    cookie = response.headers["Set-Cookie"]
    assert {"HttpOnly", "SameSite=Strict", "Path=/admin"} <= set(cookie.split("; "))
    assert "Secure" not in cookie
    assert "Updates" in await operator.text("/admin/updates")


async def test_behind_https_the_cookie_is_for_https(heed: Heed) -> None:
    """As the proxy in front says."""
    password = await admin_password.another(heed.core.database)
    operator = Operator(heed)
    token = TOKEN.findall(await operator.text("/admin/login"))[0]
    fields = {"csrf": token, "password": password}
    response = await operator.post("/admin/login", fields, **{"X-Forwarded-Proto": "https"})
    assert "Secure" in response.headers["Set-Cookie"]


async def test_signing_out_ends_the_session(operator: Operator, heed: Heed) -> None:
    """Also for who kept the cookie."""
    cookies = {c.key: c.value for c in heed.client.session.cookie_jar}
    assert (await operator.act("/admin/logout")).headers["Location"] == "/admin/login"
    assert (await operator.get("/admin", cookies=cookies)).status == 303


async def test_another_password_signs_everybody_out(operator: Operator, heed: Heed) -> None:
    """At once, and the one before opens nothing."""
    await admin_password.another(heed.core.database)
    assert (await operator.get("/admin")).headers["Location"] == "/admin/login?next=%2Fadmin"


async def test_before_a_password_was_made_none_is_right(heed: Heed) -> None:
    """Not even the empty one."""
    assert (await Operator(heed).sign_in(password=" ")).status == 403


async def test_too_many_tries_have_to_wait(heed: Heed) -> None:
    """Then even the right password is not looked at."""
    password = await admin_password.another(heed.core.database)
    operator = Operator(heed)
    heed.client.server.app[ADMIN_ATTEMPTS]._clock = lambda: 1.0  # type: ignore[attr-defined]
    assert [(await operator.sign_in("wrong")).status for _ in range(4)] == [403, 403, 403, 429]
    response = await operator.sign_in(password)
    assert (response.status, response.headers["Retry-After"]) == (429, "2")
    heed.client.server.app[ADMIN_ATTEMPTS]._clock = lambda: 3.0  # type: ignore[attr-defined]
    assert (await operator.sign_in(password)).status == 303


@pytest.mark.parametrize(
    "address",
    ["//evil.example", "https://evil.example/admin", "/adminx", "/admin/../v1", "/admin\\@evil.example", "/", "",
     "/admin/login", "/admin/\r\nX: y", "/admin@evil.example"],
)  # fmt: skip
def test_nobody_is_sent_elsewhere(address: str) -> None:
    """Whatever stands in next, the way goes to a dashboard."""
    assert login._own(address) == "/admin"


@pytest.mark.parametrize("address", ["/admin", "/admin/updates?before=7&status=failed"])
def test_a_dashboard_is_where_one_goes(address: str) -> None:
    """With its query."""
    assert login._own(address) == address
