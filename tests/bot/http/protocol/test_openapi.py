"""bot.http.protocol.openapi: the document says what the routes are."""

import re
from typing import Any

import jsonschema
import pytest
from aiohttp import web

from bot.http.protocol import openapi, responses
from tests.bot.conftest import Heed

Json = dict[str, Any]


@pytest.fixture
async def document(heed: Heed) -> Json:
    """The document as it is served."""
    return (await heed.get("/openapi.json"))[1]


def routes_of(heed: Heed) -> list[web.AbstractRoute]:
    """Every route of the application."""
    return list(heed.client.server.app.router.routes())  # type: ignore[attr-defined]


async def test_every_route_is_in_it(heed: Heed, document: Json) -> None:
    """Left out are HEAD, which is GET without its body, and the dashboards, pages for people; nothing else is in it."""
    found = {(r.method, r.resource.canonical) for r in routes_of(heed) if r.resource and r.method != "HEAD"}
    routes = {(method, path) for method, path in found if path.split("/")[1] != "admin"}
    described = {(method.upper(), path) for path, calls in document["paths"].items() for method in calls}
    assert described == routes


async def test_it_is_a_document_of_openapi(document: Json) -> None:
    """3.1, every name that is pointed to is there, and the calls have names of their own."""
    assert document["openapi"] == "3.1.0"
    for pointer in pointers(document):
        found = document
        for name in pointer.removeprefix("#/").split("/"):
            found = found[name]
    names = [call["operationId"] for calls in document["paths"].values() for call in calls.values()]
    assert len(set(names)) == len(names)


def pointers(part: Any) -> list[str]:
    """Every $ref below a part of the document."""
    if isinstance(part, list):
        return [pointer for entry in part for pointer in pointers(entry)]
    if not isinstance(part, dict):
        return []
    own = [part["$ref"]] if isinstance(part.get("$ref"), str) else []
    return [*own, *(pointer for value in part.values() for pointer in pointers(value))]


async def test_every_call_says_what_it_does(document: Json) -> None:
    """A summary in words, without the path it stands under."""
    for path, calls in document["paths"].items():
        for call in calls.values():
            assert call["summary"], path
            assert re.fullmatch(r"[A-Z].*\.", call["summary"]), path
            assert path not in call["summary"]


async def test_refusals_have_the_house_shape(heed: Heed, document: Json) -> None:
    """Each status of 400 or more points to the one shape, but for those of HTTP's own for files; and so it comes."""
    for path, calls in document["paths"].items():
        for call in calls.values():
            own = {status for status in call["responses"] if int(status) >= 400}
            shaped = {s for s in own if call["responses"][s] == {"$ref": f"#/components/responses/{s}"}}
            assert own - shaped <= ({"503"} if path == "/readyz" else {"412", "416"})
    status, refusal = await heed.post("/v1/feedback", {"kind": "dance"})
    assert status == 422
    schema = {"$ref": "#/components/schemas/Refusal", "components": document["components"]}
    jsonschema.validate(refusal, schema)


async def test_a_stream_is_described_by_its_events(document: Json) -> None:
    """Beside the answer that comes at once."""
    content = document["paths"]["/v1/chat/completions"]["post"]["responses"]["200"]["content"]
    assert content["application/json"]["schema"] == {"$ref": "#/components/schemas/ChatCompletion"}
    assert content["text/event-stream"]["x-event-schema"] == {"$ref": "#/components/schemas/ChatPiece"}


async def test_what_a_call_takes_brings_its_refusals() -> None:
    """A body can be no JSON, too large, or wrong in a field; a path in /v1/ wants a key."""

    @openapi.gives(responses.Serving, takes=responses.Serving, refuses=(409,))
    async def handler(_: web.Request) -> web.Response:
        """Do something (`POST /v1/x`)."""
        return web.Response()

    app = web.Application()
    app.add_routes([web.post("/v1/x", handler)])
    call = openapi.document(app.router.routes())["paths"]["/v1/x"]["post"]
    assert set(call["responses"]) == {"200", "400", "401", "403", "409", "413", "422", "429", "500", "503"}
    assert call["summary"] == "Do something."
    assert call["requestBody"]["required"] is True


async def test_the_document_is_made_once(heed: Heed) -> None:
    """It is the same bytes each time."""
    first, again = [await (await heed.client.get("/openapi.json")).read() for _ in range(2)]
    assert first == again
    assert openapi._written.cache_info().hits >= 1


async def test_what_may_be_left_out_is_said(document: Json) -> None:
    """A body, and a name in the query."""
    paths = document["paths"]
    assert paths["/api/sessions"]["post"]["requestBody"]["required"] is False
    assert paths["/api/sessions/{id}/prompt"]["post"]["requestBody"]["required"] is True
    found = {
        (p["name"], p["required"]) for path in ("/v1/lora", "/v1/lora/export") for p in paths[path]["get"]["parameters"]
    }
    assert found == {("prefix", False), ("lora_id", True)}
