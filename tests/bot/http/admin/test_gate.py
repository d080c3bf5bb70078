"""bot.http.admin.gate: only the operator gets through, and a refusal changes nothing."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web

from storage.people import people
from tests.bot.conftest import Heed, StartHeed
from tests.bot.http.admin.rig import TOKEN, Operator
from tests.bot.http.protocol.test_auth import stored_key


def addresses(heed: Heed, method: str) -> list[str]:
    """Return every dashboard path that takes a method, with values in place of its parameters."""
    app: web.Application = heed.client.server.app  # type: ignore[attr-defined]
    found = {r.resource.canonical for r in app.router.routes() if r.method == method and r.resource}
    return [re.sub(r"\{\w+\}", "0" * 32, path) for path in sorted(found) if path.startswith("/admin")]


async def taught(heed: Heed) -> str:
    """Return the id of a person with version 1 active."""
    answer = await heed.ask("bees", user="ana")
    await heed.correct(answer["id"], "too long", user="ana")
    found = await heed.core.database.read(lambda s: people.find(s, "http", "ana"))
    assert found is not None
    return found.id


async def active(heed: Heed, user_id: str) -> int:
    """Return the active version."""
    return (await heed.core.database.read(lambda s: people.get(s, user_id))).active_version


async def test_without_a_session_there_is_only_the_way_in(heed: Heed) -> None:
    """Without a session every page redirects to the sign-in form, also on loopback without keys."""
    operator = Operator(heed)
    for path in set(addresses(heed, "GET")) - {"/admin/login"}:
        response = await operator.get(path)
        assert (response.status, response.headers["Location"][:12]) == (303, "/admin/login"), path
    for path in set(addresses(heed, "POST")) - {"/admin/login"}:
        assert (await operator.post(path, {"csrf": ""})).status == 401, path
    assert (await heed.client.get("/")).status == 200


async def test_an_api_key_is_no_session(start_heed: StartHeed) -> None:
    """An API key with every scope opens no dashboard."""
    heed = await start_heed()
    header = await stored_key(heed, "chat", "feedback", "adapters", "person", "metrics", "admin")
    assert (await heed.client.get("/admin", headers=header, allow_redirects=False)).status == 303


Spoil = Callable[[Operator, dict[str, Any], dict[str, str]], None]


def _no_token(_: Operator, fields: dict[str, Any], __: dict[str, str]) -> None:
    fields.pop("csrf")


def _wrong_token(_: Operator, fields: dict[str, Any], __: dict[str, str]) -> None:
    fields["csrf"] = fields["csrf"][::-1]


def _odd_token(_: Operator, fields: dict[str, Any], __: dict[str, str]) -> None:
    fields["csrf"] = "\udcff é"[2:]


def _other_site(_: Operator, __: dict[str, Any], headers: dict[str, str]) -> None:
    headers["Origin"] = "http://evil.example"


def _null_origin(_: Operator, __: dict[str, Any], headers: dict[str, str]) -> None:
    headers["Origin"] = "null"


def _cross_site(_: Operator, __: dict[str, Any], headers: dict[str, str]) -> None:
    headers["Sec-Fetch-Site"] = "cross-site"


def _other_host(_: Operator, __: dict[str, Any], headers: dict[str, str]) -> None:
    headers["Host"] = "evil.example"


def _no_cookie(operator: Operator, _: dict[str, Any], __: dict[str, str]) -> None:
    operator.heed.client.session.cookie_jar.clear()


def _forged_cookie(operator: Operator, _: dict[str, Any], __: dict[str, str]) -> None:
    operator.heed.client.session.cookie_jar.clear()
    operator.heed.client.session.cookie_jar.update_cookies({"heed_admin": "f" * 43})


@pytest.mark.parametrize(
    ("spoil", "status"),
    [(_no_token, 403), (_wrong_token, 403), (_odd_token, 403), (_other_site, 403), (_null_origin, 403),
     (_cross_site, 403), (_other_host, 403), (_no_cookie, 401), (_forged_cookie, 401)],
)  # fmt: skip
async def test_what_is_not_ours_is_refused_and_changes_nothing(operator: Operator, spoil: Spoil, status: int) -> None:
    """A missing or wrong token, origin, host or cookie is enough to refuse a change."""
    heed = operator.heed
    user_id = await taught(heed)
    fields: dict[str, Any] = {"csrf": operator.csrf, "version": "0"}
    headers: dict[str, str] = {}
    spoil(operator, fields, headers)
    response = await operator.post(f"/admin/people/{user_id}/rollback", fields, **headers)
    assert response.status == status
    assert await active(heed, user_id) == 1


async def test_a_form_without_an_origin_is_refused(operator: Operator) -> None:
    """A form without an Origin is refused, because browsers always send one."""
    user_id = await taught(operator.heed)
    fields = {"csrf": operator.csrf, "version": "0"}
    response = await operator.heed.client.post(f"/admin/people/{user_id}/rollback", data=fields)
    assert response.status == 403
    assert await active(operator.heed, user_id) == 1


async def test_a_replay_after_signing_out_is_refused(operator: Operator) -> None:
    """A cookie and token are worthless after signing out."""
    heed = operator.heed
    user_id = await taught(heed)
    kept, token = {c.key: c.value for c in heed.client.session.cookie_jar}, operator.csrf
    await operator.act("/admin/logout")
    heed.client.session.cookie_jar.update_cookies(kept, heed.client.make_url("/admin"))
    response = await operator.post(f"/admin/people/{user_id}/rollback", {"csrf": token, "version": "0"})
    assert response.status == 401
    assert await active(heed, user_id) == 1


async def test_a_token_of_another_session_is_refused(operator: Operator) -> None:
    """Each session accepts only its own token."""
    user_id = await taught(operator.heed)
    before = operator.csrf
    await operator.sign_in()
    assert before != operator.csrf
    response = await operator.post(f"/admin/people/{user_id}/rollback", {"csrf": before, "version": "0"})
    assert response.status == 403
    assert (await operator.act(f"/admin/people/{user_id}/rollback", version="0")).status == 303
    assert await active(operator.heed, user_id) == 0


async def test_the_way_in_needs_its_own_token(heed: Heed) -> None:
    """The sign-in form refuses another visitor's token and does not count the try."""
    operator = Operator(heed)
    token = TOKEN.findall(await operator.text("/admin/login"))[0]
    heed.client.session.cookie_jar.clear()
    response = await operator.post("/admin/login", {"csrf": token, "password": "x"})
    assert response.status == 403
    assert "This form belongs to another session" in await response.text()


async def test_pages_carry_a_strict_policy_and_are_not_kept(operator: Operator) -> None:
    """Pages allow no inline script or style, no frame and no cache; forms send their origin."""
    for path in ("/admin", "/admin/login", "/admin/nothing"):
        headers = (await operator.get(path)).headers
        assert "unsafe" not in headers["Content-Security-Policy"]
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert (headers["Cache-Control"], headers["Referrer-Policy"]) == ("no-store", "same-origin")


async def test_what_is_not_there_is_a_page_that_says_so(operator: Operator) -> None:
    """A missing page, person or update is a 404 page, a wrong key is 400, and other methods are refused."""
    nobody = "0" * 32
    for path in ("/admin/nothing", f"/admin/people/{nobody}", "/admin/updates/upd-1", f"/admin/evals/{nobody}",
                 f"/admin/conversations/{nobody}/calls", f"/admin/people/{nobody}/diff?first=0&second=1"):  # fmt: skip
        response = await operator.get(path)
        assert (response.status, response.content_type) == (404, "text/html"), path
    for path in ("/admin/updates?before=x", "/admin/engine?minutes=7", "/admin/people?after=%00"):
        assert (await operator.get(path)).status == 400, path
    assert (await operator.act("/admin/updates")).status == 405
