"""bot.http.protocol.scopes: every guarded call needs a scope, and a missing one is named."""

from typing import Any, get_args

import pytest
from aiohttp import web

from bot.access.api_keys import SCOPES, Holder, Scope
from bot.errors import ScopeMissing
from bot.http.protocol import scopes
from bot.http.protocol.auth import GUARDED, LEADING_ON
from tests.bot.conftest import Heed


def _routes(heed: Heed) -> set[tuple[str, str]]:
    app: web.Application = heed.client.server.app  # type: ignore[attr-defined]
    routes = [(route.method, route.resource) for route in app.router.routes() if route.method != "HEAD"]
    return {(method, found.canonical) for method, found in routes if found and found.canonical.startswith(GUARDED)}


def test_the_scopes_have_descriptions() -> None:
    """Each scope has a description."""
    assert set(SCOPES) == set(get_args(Scope))


async def test_every_guarded_route_is_in_the_table(heed: Heed) -> None:
    """The table has every guarded route that does not only lead on, and no other; an unlisted one needs admin."""
    assert _routes(heed) == set(scopes._NEEDED) | {("GET", path) for path in LEADING_ON}
    assert scopes.needed("POST", "/v1/new") == "admin"
    assert scopes.needed("HEAD", "/v1/models") == "chat"


@pytest.mark.parametrize("wanted", [("chat",), ("chat", "feedback")])
def test_the_missing_scope_is_named(wanted: Any) -> None:
    """The refusal names the first missing scope."""
    with pytest.raises(ScopeMissing, match="does not have the scope 'chat'"):
        scopes.require(Holder("ana", frozenset({"feedback"})), *wanted)
    scopes.require(Holder("ana", frozenset({"feedback"})), "feedback")
