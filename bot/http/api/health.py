"""Health and metrics: `/healthz`, `/readyz`, `/health`, `/metrics`."""

import asyncio
import shutil
from pathlib import Path
from typing import Literal

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST

from bot.http.protocol import responses
from bot.http.protocol.app_keys import CORE, PLATFORMS
from bot.http.protocol.openapi import gives
from storage.errors import StorageError, without_folders
from storage.learning import drift_audits

LOW_BYTES = 512 * 1024**2  # free disk space: warn well before writes fail
LOOK_S = 0.5  # so many looks for the database's answer; one that is slower cannot serve chats either
NUM_LOOKS = 10


@gives(responses.Alive)
async def healthz(_: web.Request) -> web.Response:
    """Return 200 as long as the event loop runs (`GET /healthz`)."""
    return web.json_response(responses.Alive(status="ok"))


@gives(responses.Readiness, also={503: responses.Readiness})
async def readyz(request: web.Request) -> web.Response:
    """Return 200 if heed can answer, else 503, with the state of each part (`GET /readyz`).

    "degraded": heed answers, but a platform is down or the disk is nearly full.
    """
    core = request.app[CORE]
    model = core.settings.model_name
    drift, database = await _drift_and_database(request)
    parts = {**health_of(request), "database": database}
    is_ready = core.engine.is_ready and database == "ok"
    status: Literal["ready", "degraded", "not ready"] = "not ready"
    if is_ready:
        status = "ready" if all(state == "ok" for state in parts.values()) else "degraded"
    body = responses.Readiness(status=status, model=model, parts=parts, drift=drift, learning=_learning(request))
    return web.json_response(body, status=200 if is_ready else 503)


@gives(responses.Health)
async def health(request: web.Request) -> web.Response:
    """Return the health in CLaaS's form, always with 200; "degraded" if heed cannot answer (`GET /v1/health`)."""
    engine = request.app[CORE].engine
    wrong = "; ".join(f"{part}: {without_folders(state)}" for part, state in engine.health().items() if state != "ok")
    worker = responses.Worker(status="healthy" if engine.is_ready else "unhealthy", error=wrong or None)
    return web.json_response(responses.Health(status="healthy" if engine.is_ready else "degraded", worker=worker))


@gives("text/plain")
async def metrics(request: web.Request) -> web.Response:
    """Return the metrics in Prometheus' text format (`GET /metrics`)."""
    core = request.app[CORE]
    _, database = await _drift_and_database(request)
    for part, state in {**health_of(request), "database": database}.items():
        core.metrics.parts.labels(part).set(1 if state == "ok" else 0)
    core.metrics.see_engines(core.engine.loads())
    return web.Response(body=core.metrics.render(), headers={"Content-Type": CONTENT_TYPE_LATEST})


def _learning(request: web.Request) -> responses.LearningState:
    found = request.app[CORE].engine.learning
    return responses.LearningState(
        is_on=not found.refusal, reason=found.refusal, is_calibrated=found.is_measured and not found.refusal
    )


async def _drift_and_database(request: web.Request) -> tuple[dict[str, int], str]:
    """Return the drift audits' findings by level, and the state of the database that was asked for them."""
    asked = asyncio.ensure_future(request.app[CORE].database.read(drift_audits.levels))
    try:
        for _ in range(NUM_LOOKS):  # not one long one: while this process stood still the database was not slow
            if (await asyncio.wait({asked}, timeout=LOOK_S))[0]:
                return asked.result(), "ok"
    except StorageError as error:
        return {}, f"down: {type(error).__name__}"  # no details: the caller may not be the operator
    finally:
        asked.cancel()
    return {}, "down: no answer"


def health_of(request: web.Request) -> dict[str, str]:
    """Return the state of every part of heed except its database, without paths; "ok" if it works."""
    core = request.app[CORE]
    disk = disk_state(core.settings.data_dir)
    parts = {**core.engine.health(), **request.app[PLATFORMS].health(), "disk": disk}
    return {part: without_folders(state) for part, state in parts.items()}  # the caller may not be the operator


def disk_state(folder: Path) -> str:
    """Return "ok" if there is room to write, else how little is left."""
    try:
        free_bytes = shutil.disk_usage(folder).free
    except OSError:
        return "down: the data directory cannot be reached"
    return "ok" if free_bytes >= LOW_BYTES else f"low: {free_bytes // 1024**2} MiB free"
