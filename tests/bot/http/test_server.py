"""bot.http.server: the routes and limits as one application."""

from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from bot.http.protocol.app_keys import Platforms
from bot.http.server import application
from tests.bot.conftest import Heed, StartHeed

DOCUMENTED = {
    ("GET", "/"), ("GET", "/healthz"), ("GET", "/readyz"), ("GET", "/metrics"), ("GET", "/v1/models"),
    ("POST", "/v1/chat/completions"), ("POST", "/v1/feedback"), ("GET", "/v1/users/{user}/adapters"),
    ("POST", "/v1/users/{user}/rollback"), ("GET", "/v1/users/{user}/notes"),
    ("DELETE", "/v1/users/{user}/notes/{id}"), ("POST", "/v1/users/{user}/adapters"),
    ("GET", "/v1/users/{user}/adapters/{version}/export"),
}  # fmt: skip


async def test_every_documented_call_is_there(heed: Heed) -> None:
    """Every call of the documented table has a route."""
    app = heed.client.server.app  # type: ignore[attr-defined]
    routes = {(route.method, route.resource.canonical) for route in app.router.routes()}
    assert routes >= DOCUMENTED


async def test_the_body_limit_is_the_setting(start_heed: StartHeed) -> None:
    """http.body_limit_bytes is the limit."""
    heed = await start_heed(http={"body_limit_bytes": 2048})
    assert (await heed.post("/v1/feedback", {"kind": "note", "text": "x" * 3000}))[0] == 413
    assert (await heed.post("/v1/feedback", {"kind": "note", "text": "x" * 1000}))[0] == 200


async def test_platforms_call_under_any_name(heed: Heed) -> None:
    """Only a webhook may use the public name and no key; it checks its own secret."""

    async def handle(_: web.Request) -> web.Response:
        return web.Response(text="taken")

    app = application(heed.core, Platforms(routes=(web.post("/hook", handle),)))
    async with TestClient(TestServer(app)) as client:
        public = {"Host": "heed.example"}
        assert (await client.post("/hook", headers=public)).status == 200
        assert (await client.get("/v1/models", headers=public)).status == 403
        assert (await client.get("/v1/models")).status == 200
