"""The OpenAPI document of heed's HTTP API, `GET /openapi.json`, made from the routes and their handlers.

Each handler declares with `@gives(...)` what it returns, what it takes and its own refusals; the path, the summary (the
handler's docstring) and the refusals common to all calls are added here. Platforms' routes are left out: the platform
documents them.
"""

import asyncio
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from http import HTTPStatus
from importlib.metadata import PackageNotFoundError, version
from typing import Any, TypeVar

from aiohttp import web
from aiohttp.typedefs import Handler
from pydantic import TypeAdapter

from bot.http.protocol import bodies, messages, responses
from bot.http.protocol.auth import GUARDED
from bot.http.protocol.event_streams import CONTENT_TYPE
from bot.http.protocol.request_ids import HEADER

Json = dict[str, Any]
Content = Any  # a shape (sent as JSON), a media type (sent as it is), or None
HandlerT = TypeVar("HandlerT", bound=Callable[..., Any])

ABOUT = (
    "A chat bot that learns from being corrected. Each refusal is an `error` with its kind, a sentence and the wrong "
    "field. A request that the HTTP server cannot read (an unknown Content-Encoding or Expect) is refused in plain "
    "text, before heed sees it."
)
REFERENCE = "#/components/schemas/{model}"
PATH_PARAMETERS: dict[str, Json] = {
    "user": {"type": "string", "minLength": 1, "maxLength": 64},
    "version": {"type": "integer", "minimum": 0, "maximum": 999_999_999},
}
ANYTHING: Json = {"type": "string", "minLength": 1}
PARTLY: dict[int, Content] = {206: "*/*", 304: None, 412: None, 416: None}  # further statuses of a file
_PATH = re.compile(r" \(`[A-Z]+ /[^`]*`\)")  # " (`POST /v1/score`)" in a docstring
_WHY = {
    400: "The body is not a JSON object, its parts do not fit together, or one field (`param`) is wrong. "
    "Nothing was changed.",
    401: "There is no API key, or an unknown one.",
    403: "The request comes from another site's page, names an unknown host, or its API key may not do this.",
    404: "There is no such thing for this person.",
    409: "This is not possible in the current state.",
    413: "The body is too large.",
    422: "The idempotency key belongs to another call.",
    429: "Too many answers are being written at once, or the API key has used up its daily quota.",
    500: messages.UNEXPECTED,
    503: "heed is still starting, or a part of it is down for now.",
    504: "The model took too long to write.",
}
_HEADERS: dict[int, Json] = {
    401: {"WWW-Authenticate": {"schema": {"const": "Bearer"}}},
    429: {"Retry-After": {"schema": {"type": "string", "pattern": "^[0-9]+$"}}},
    503: {"Retry-After": {"schema": {"type": "string", "pattern": "^[0-9]+$"}}},
}


@dataclass(frozen=True)
class CallSpec:
    """A handler's declaration: its response, its input and its refusals."""

    gives: Content
    takes: Content = None
    needs_body: bool = True  # if it takes one
    asks: type[bodies.Query] | None = None  # the query's fields
    headers: Mapping[str, Json] | None = None  # request headers by name
    refuses: tuple[int, ...] = ()
    streams: Content = None  # each event, if the answer may come as a stream
    also: Mapping[int, Content] | None = None  # answers with other statuses

    @property
    def shapes(self) -> Iterator[tuple[Any, str]]:
        """Every shape in the declaration, each with the mode it is used in: read or written."""
        for shape, mode in ((self.gives, "serialization"), (self.takes, "validation"), (self.streams, "serialization")):
            if shape is not None and not isinstance(shape, str):
                yield shape, mode
        for shape in (self.also or {}).values():
            if shape is not None and not isinstance(shape, str):
                yield shape, "serialization"


CALLS: dict[Callable[..., Any], CallSpec] = {}


def gives(shape: Content, **more: Any) -> Callable[[HandlerT], HandlerT]:
    """Declare what a handler returns, and the other fields of `CallSpec`."""

    def describe(handler: HandlerT) -> HandlerT:
        CALLS[handler] = CallSpec(shape, **more)
        return handler

    return describe


def described(routes: Iterable[web.AbstractRoute]) -> Iterator[tuple[str, str, Handler, CallSpec]]:
    """Yield method, path, handler and declaration of each route that has one; HEAD is left out."""
    for route in routes:
        if route.handler in CALLS and route.method != "HEAD" and route.resource is not None:
            yield route.method, route.resource.canonical, route.handler, CALLS[route.handler]


def document(routes: Iterable[web.AbstractRoute]) -> Json:
    """Return the document."""
    calls = list(described(routes))
    schemas, components = _schemas(call for *_, call in calls)
    paths: Json = {}
    names: Counter[str] = Counter()
    for method, path, handler, call in calls:
        operation = paths.setdefault(path, {})[method.lower()] = _operation(path, handler, call, schemas)
        names[name := operation["operationId"]] += 1
        if names[name] > 1:  # a handler at several paths
            operation["operationId"] = f"{name}_{names[name]}"
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "heed",
            "version": _version(),
            "description": ABOUT,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "security": [{}, {"key": []}],
        "paths": paths,
        "components": {
            "schemas": components,
            "responses": {str(status): _refusal(status) for status in _WHY},
            "headers": {HEADER: {"description": "The call's id.", "schema": {"type": "string"}}},
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _version() -> str:
    try:
        return version("heed")
    except PackageNotFoundError:  # run from a folder without installation
        return "0"


def _schemas(calls: Iterable[CallSpec]) -> tuple[dict[tuple[Any, str], Json], Json]:
    """Return the schema of each shape, and the components that they refer to."""
    shapes = dict.fromkeys(shape for call in calls for shape in call.shapes)
    shapes[responses.Refusal, "serialization"] = None
    inputs: Any = [(shape, mode, TypeAdapter(shape)) for shape, mode in shapes]
    schemas, definitions = TypeAdapter.json_schemas(inputs, ref_template=REFERENCE)
    return dict(schemas), definitions["$defs"]


def _operation(path: str, handler: Handler, call: CallSpec, schemas: dict[tuple[Any, str], Json]) -> Json:
    given = {
        "operationId": f"{handler.__module__.rpartition('.')[2]}.{handler.__name__}",
        "tags": [handler.__module__.rpartition(".")[2]],
        "summary": _summary(handler),
        "parameters": [*_path_parameters(path), *_query(call), *_headers(call)],
        "responses": {**_answers(call, schemas), **_refusals(path, call)},
    }
    if call.takes is not None:
        given["requestBody"] = {"required": call.needs_body, "content": _content(call.takes, schemas, "validation")}
    return given


def _summary(handler: Handler) -> str:
    words = " ".join((handler.__doc__ or "").split())
    return _PATH.sub("", words, count=1)


def _path_parameters(path: str) -> list[Json]:
    names = re.findall(r"{(\w+)}", path)
    return [{"name": n, "in": "path", "required": True, "schema": PATH_PARAMETERS.get(n, ANYTHING)} for n in names]


def _query(call: CallSpec) -> list[Json]:
    asked = call.asks.model_json_schema() if call.asks else {"properties": {}}
    needed = asked.get("required", ())
    return [
        {"name": name, "in": "query", "required": name in needed, "schema": schema}
        for name, schema in asked["properties"].items()
    ]


def _headers(call: CallSpec) -> list[Json]:
    given = (call.headers or {}).items()
    return [{"name": name, "in": "header", "required": False, "schema": schema} for name, schema in given]


def _answers(call: CallSpec, schemas: dict[tuple[Any, str], Json]) -> Json:
    found = {200: _content(call.gives, schemas, "serialization")} if call.gives is not None else {}
    if call.streams is not None:
        event = schemas[call.streams, "serialization"]
        found[200][CONTENT_TYPE] = {"x-event-schema": event}  # OpenAPI 3.1 cannot describe the events of a stream
    found |= {status: _content(shape, schemas, "serialization") for status, shape in (call.also or {}).items()}
    head = {HEADER: {"$ref": f"#/components/headers/{HEADER}"}}
    return {
        str(status): {"description": HTTPStatus(status).phrase, "headers": head, "content": content}
        for status, content in found.items()
    }


def _content(shape: Content, schemas: dict[tuple[Any, str], Json], mode: str) -> Json:
    if shape is None:
        return {}
    if isinstance(shape, str):
        return {shape: {"schema": {"type": "string"}} if shape.startswith("text/") else {}}
    return {"application/json": {"schema": schemas[shape, mode]}}


def _refusals(path: str, call: CallSpec) -> Json:
    """Return the refusals of every call, those that come with its input, and its own."""
    statuses = {403, 500, *call.refuses}
    if path.startswith(GUARDED):
        statuses |= {401, 429, 503}
    if call.takes is not None:
        statuses |= {400, 413}
    if call.headers:
        statuses |= {422}
    if call.asks is not None or "{user}" in path:
        statuses |= {400}
    statuses -= {int(status) for status in call.also or {}}
    return {str(status): {"$ref": f"#/components/responses/{status}"} for status in sorted(statuses)}


def _refusal(status: int) -> Json:
    head = {HEADER: {"$ref": f"#/components/headers/{HEADER}"}, **_HEADERS.get(status, {})}
    schema = {"$ref": REFERENCE.format(model="Refusal")}
    return {"description": _WHY[status], "headers": head, "content": {"application/json": {"schema": schema}}}


@gives("application/json")
async def openapi(request: web.Request) -> web.Response:
    """Return this document (`GET /openapi.json`)."""
    body = await asyncio.to_thread(_written, tuple(request.app.router.routes()))
    return web.Response(body=body, content_type="application/json")


@lru_cache(maxsize=1)  # making it takes as long as several tokens of an answer
def _written(routes: tuple[web.AbstractRoute, ...]) -> bytes:
    return json.dumps(document(routes)).encode()
