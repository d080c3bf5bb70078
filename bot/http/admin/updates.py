"""`GET /admin/updates` and one update: the feedback, the training, and the answers before and after."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

from aiohttp import web

from bot.core.core import Core
from bot.core.gateway import question
from bot.http.admin import access_log, paging, plots, render
from bot.http.protocol.app_keys import CORE
from storage.database import Session
from storage.reports import dashboards
from storage.reports.dashboards import UpdateStory

STATUSES = ("accepted", "rejected", "skipped", "failed", "postponed", "parked", "cancelled", "running")
CSV_HEAD = (
    "id", "person", "name", "kind", "status", "started_at", "duration_ms", "steps", "divergence_before",
    "divergence_after", "version",
)  # fmt: skip


async def page(request: web.Request) -> web.StreamResponse:
    """List updates, newest first (`GET /admin/updates?before=&status=&person=`)."""
    database, before = request.app[CORE].database, paging.before(request)
    status, person = request.query.get("status", ""), request.query.get("person", "")
    wanted = {"status": status if status in STATUSES else "", "user_id": person[:64]}
    if paging.wants_csv(request):
        return await paging.as_csv(request, "updates", CSV_HEAD, _rows(request, wanted))
    found = await database.read(lambda s: dashboards.updates(s, paging.ROWS, before, **wanted))
    return render.page(
        request,
        "updates.html",
        "Updates",
        found=found,
        statuses=STATUSES,
        chosen=wanted["status"],
        person=wanted["user_id"],
        is_first=before is None,
    )


async def one(request: web.Request) -> web.StreamResponse:
    """Show one update with everything stored about it (`GET /admin/updates/{id}`)."""
    update_id = request.match_info["id"]
    story = await request.app[CORE].database.read(lambda s: dashboards.update(s, update_id))
    run = story.run
    if story.is_shown:
        await access_log.record_view(request, run.user_id, "updates", run.id)
    return render.page(
        request,
        "update.html",
        f"Update of {render.when(run.started_at)}",
        story=story,
        run=run,
        question=question(story.before) if story.before else None,
        teacher=_teacher(request.app[CORE], story),
        heat=_heat(story),
        curves=[plot for name, values in (run.curves or {}).items() if (plot := plots.curve(name, values))],
        phases=_phases(run.phases_ms or {}),
        gates=_gates(run.gate or {}),
        measured=_measured(run.gate or {}),
    )


def _teacher(core: Core, story: UpdateStory) -> list[dict[str, str]] | None:
    """Return the conversation as the teacher saw it, or None if its ingredients are not stored or not shown."""
    if story.feedback is None or story.before is None or story.run.notes is None:
        return None
    return core.engine.teacher_view(story.feedback, story.before, story.run.notes)


def _heat(story: UpdateStory) -> list[tuple[str, float, str]]:
    if not story.is_shown:
        return []
    return [(str(text), float(weight), plots.heat_class(float(weight))) for text, weight in story.run.heat or []]


def _phases(phases_ms: dict[str, float]) -> list[tuple[str, float, float]]:
    """Return each phase with its milliseconds and its share of the longest, 0 to 100."""
    longest_ms = max(phases_ms.values(), default=0.0) or 1.0
    return [(name, took_ms, 100 * took_ms / longest_ms) for name, took_ms in phases_ms.items()]


def _gates(gate: dict[str, Any]) -> list[tuple[str, bool]]:
    checks = gate.get("checks")
    return [(str(name), bool(is_passed)) for name, is_passed in checks.items()] if isinstance(checks, dict) else []


def _measured(gate: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the figures the gates measured; of a drift audit, its figures."""
    figures = gate.get("figures")
    named = figures if isinstance(figures, dict) else {n: v for n, v in gate.items() if n not in ("checks", "reason")}
    return [(str(name), _figure(value)) for name, value in named.items()]


def _figure(value: Any) -> str:
    if value is None:
        return render.NOTHING
    return f"{value:.4g}" if isinstance(value, float) else str(value)


async def _rows(request: web.Request, wanted: dict[str, str]) -> AsyncIterator[Sequence[Sequence[Any]]]:
    def read(s: Session, limit: int, before: int | None) -> dashboards.Page[dashboards.UpdateLine]:
        return dashboards.updates(s, limit, before, **wanted)

    async for found in paging.every(request, read):
        yield [
            (u.id, u.user_id, u.display_name, u.kind, u.status, u.started_at, u.duration_ms, u.steps,
             u.divergence_before, u.divergence_after, u.version)
            for u in found
        ]  # fmt: skip
