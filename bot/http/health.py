"""Is heed alive, is it ready, and what has it done: `/healthz`, `/readyz`, `/metrics`."""

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST

from bot.http.services import PLATFORMS, SERVICES
from storage import audits


async def healthz(_: web.Request) -> web.Response:
    """200 as long as the event loop turns."""
    return web.json_response({"status": "ok"})


async def readyz(request: web.Request) -> web.Response:
    """200 once answers can be given, else 503; each part with its state. A platform that is down is "degraded"."""
    services = request.app[SERVICES]
    engine, model = services.engine, services.settings.model_name
    parts = _parts(request)
    status = "not ready"
    if engine.is_ready:
        status = "ready" if all(state == "ok" for state in parts.values()) else "degraded"
    drift = await services.database.read(audits.levels)
    body = {"status": status, "model": model, "parts": parts, "drift": drift}
    return web.json_response(body, status=200 if engine.is_ready else 503)


async def metrics(request: web.Request) -> web.Response:
    """Prometheus' text format."""
    services = request.app[SERVICES]
    for part, state in _parts(request).items():
        services.metrics.parts.labels(part).set(1 if state == "ok" else 0)
    return web.Response(body=services.metrics.render(), headers={"Content-Type": CONTENT_TYPE_LATEST})


def _parts(request: web.Request) -> dict[str, str]:
    return {**request.app[SERVICES].engine.health(), **request.app[PLATFORMS].health()}
