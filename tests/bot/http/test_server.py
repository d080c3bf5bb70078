"""bot.http.server: the routes and limits as one application."""

from tests.bot.conftest import Heed, StartHeed

DOCUMENTED = {
    ("GET", "/"), ("GET", "/healthz"), ("GET", "/readyz"), ("GET", "/metrics"), ("GET", "/v1/models"),
    ("POST", "/v1/chat/completions"), ("POST", "/v1/feedback"), ("GET", "/v1/users/{user}/adapters"),
    ("POST", "/v1/users/{user}/rollback"), ("GET", "/v1/users/{user}/notes"),
    ("DELETE", "/v1/users/{user}/notes/{id}"),
}  # fmt: skip


async def test_every_documented_call_is_there(heed: Heed) -> None:
    """The table of DESIGN section 8."""
    app = heed.client.server.app  # type: ignore[attr-defined]
    routes = {(route.method, route.resource.canonical) for route in app.router.routes()}
    assert routes >= DOCUMENTED


async def test_the_body_limit_is_the_setting(start_heed: StartHeed) -> None:
    """http.body_limit_bytes decides."""
    heed = await start_heed(http={"body_limit_bytes": 2048})
    assert (await heed.post("/v1/feedback", {"kind": "note", "text": "x" * 3000}))[0] == 413
    assert (await heed.post("/v1/feedback", {"kind": "note", "text": "x" * 1000}))[0] == 200
