"""bot.http.protocol.openapi: the document describes the routes."""

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
    """Return the served document."""
    return (await heed.get("/openapi.json"))[1]


def routes_of(heed: Heed) -> list[web.AbstractRoute]:
    """Return every route of the application."""
    return list(heed.client.server.app.router.routes())  # type: ignore[attr-defined]


async def test_every_route_is_in_it(heed: Heed, document: Json) -> None:
    """The document has every route except HEAD and the dashboards, and no other."""
    found = {(r.method, r.resource.canonical) for r in routes_of(heed) if r.resource and r.method != "HEAD"}
    routes = {(method, path) for method, path in found if path.split("/")[1] != "admin"}
    described = {(method.upper(), path) for path, calls in document["paths"].items() for method in calls}
    assert described == routes


async def test_it_is_a_document_of_openapi(document: Json) -> None:
    """It is OpenAPI 3.1, every reference resolves, and the calls have unique names."""
    assert document["openapi"] == "3.1.0"
    for pointer in pointers(document):
        found = document
        for name in pointer.removeprefix("#/").split("/"):
            found = found[name]
    names = [call["operationId"] for calls in document["paths"].values() for call in calls.values()]
    assert len(set(names)) == len(names)


def pointers(part: Any) -> list[str]:
    """Return every $ref below a part of the document."""
    if isinstance(part, list):
        return [pointer for entry in part for pointer in pointers(entry)]
    if not isinstance(part, dict):
        return []
    own = [part["$ref"]] if isinstance(part.get("$ref"), str) else []
    return [*own, *(pointer for value in part.values() for pointer in pointers(value))]


async def test_every_call_says_what_it_does(document: Json) -> None:
    """Each call's summary is a sentence without its path."""
    for path, calls in document["paths"].items():
        for call in calls.values():
            assert call["summary"], path
            assert re.fullmatch(r"[A-Z].*\.", call["summary"]), path
            assert path not in call["summary"]


async def test_refusals_have_the_house_shape(heed: Heed, document: Json) -> None:
    """Each status of 400 or more has the one error shape, except HTTP's own for files."""
    for path, calls in document["paths"].items():
        for call in calls.values():
            own = {status for status in call["responses"] if int(status) >= 400}
            shaped = {s for s in own if call["responses"][s] == {"$ref": f"#/components/responses/{s}"}}
            assert own - shaped <= ({"503"} if path == "/readyz" else {"412", "416"})
    status, refusal = await heed.post("/v1/feedback", {"kind": "dance"})
    assert status == 400
    schema = {"$ref": "#/components/schemas/Refusal", "components": document["components"]}
    jsonschema.validate(refusal, schema)


async def test_a_stream_is_described_by_its_events(document: Json) -> None:
    """A streamed answer is described by its events, beside the whole answer."""
    content = document["paths"]["/v1/chat/completions"]["post"]["responses"]["200"]["content"]
    assert content["application/json"]["schema"] == {"$ref": "#/components/schemas/ChatCompletion"}
    assert content["text/event-stream"]["x-event-schema"] == {"$ref": "#/components/schemas/ChatPiece"}


async def test_what_a_call_takes_brings_its_refusals() -> None:
    """A call with a body has the refusals for bodies, and one below /v1/ those for keys."""

    @openapi.gives(responses.Serving, takes=responses.Serving, refuses=(409,))
    async def handler(_: web.Request) -> web.Response:
        """Do something (`POST /v1/x`)."""
        return web.Response()

    app = web.Application()
    app.add_routes([web.post("/v1/x", handler)])
    call = openapi.document(app.router.routes())["paths"]["/v1/x"]["post"]
    assert set(call["responses"]) == {"200", "400", "401", "403", "409", "413", "429", "500", "503"}
    assert call["summary"] == "Do something."
    assert call["requestBody"]["required"] is True


async def test_the_document_is_made_once(heed: Heed) -> None:
    """The document is cached and the same each time."""
    first, again = [await (await heed.client.get("/openapi.json")).read() for _ in range(2)]
    assert first == again
    assert openapi._written.cache_info().hits >= 1


async def test_what_may_be_left_out_is_said(document: Json) -> None:
    """Optional bodies and query fields are marked."""
    paths = document["paths"]
    assert paths["/api/sessions"]["post"]["requestBody"]["required"] is False
    assert paths["/api/sessions/{id}/prompt"]["post"]["requestBody"]["required"] is True
    found = {
        (p["name"], p["required"]) for path in ("/v1/lora", "/v1/lora/export") for p in paths[path]["get"]["parameters"]
    }
    assert found == {("prefix", False), ("lora_id", True)}
