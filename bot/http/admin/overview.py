"""`GET /admin`: counts, charts, queue, health and the newest updates."""

import time
from collections.abc import AsyncIterator, Sequence
from typing import Any

from aiohttp import web

from bot.http.admin import paging, plots, render
from bot.http.api.health import health_of
from bot.http.protocol.app_keys import CORE
from bot.monitoring import stats
from storage.database import Session
from storage.learning import drift_audits
from storage.reports import dashboards, statistics
from storage.reports.statistics import Queue

DAYS = 14
NEWEST = 5  # updates listed at the end of the page
CSV_HEAD = ("day", "answers", "feedback", "updates")
Figures = tuple[dict[str, dashboards.Counts], Queue, dict[str, int], list[dashboards.UpdateLine]]


async def page(request: web.Request) -> web.StreamResponse:
    """Show the overview (`GET /admin`)."""
    core, now_s = request.app[CORE], time.time()
    starts_s = [stats.day_start_s(now_s, offset) for offset in range(1 - DAYS, 2)]
    days = await core.database.read(lambda s: dashboards.per_day(s, starts_s))
    if paging.wants_csv(request):
        return await paging.as_csv(request, "days", CSV_HEAD, _rows(starts_s, days))
    spans, queue, drift, newest = await core.database.read(lambda s: _figures(s, now_s))
    return render.page(
        request,
        "overview.html",
        "Overview",
        spans=spans,
        queue=queue,
        waits_s=now_s - queue.oldest_at_s if queue.oldest_at_s else None,
        drift=stats.drifted(drift),
        parts=health_of(request),
        is_paused=core.lessons.is_paused,
        refusal=core.engine.learning.refusal,
        machine=await stats.machine(),
        charts={name: plots.bars([getattr(day, name) for day in days]) for name in ("answers", "feedback", "updates")},
        first_day_s=starts_s[0],
        updates=newest,
    )


def _figures(s: Session, now_s: float) -> Figures:
    since_s = {"today": stats.day_start_s(now_s), "7 days": stats.day_start_s(now_s, -6), "all": 0.0}
    spans = {name: dashboards.counts(s, at_s) for name, at_s in since_s.items()}
    newest = list(dashboards.updates(s, NEWEST).rows)
    return spans, statistics.queue(s), drift_audits.levels(s), newest


async def _rows(starts_s: list[float], days: list[dashboards.Counts]) -> AsyncIterator[Sequence[Sequence[Any]]]:
    yield [
        (time.strftime("%Y-%m-%d", time.gmtime(start_s)), day.answers, day.feedback, day.updates)
        for start_s, day in zip(starts_s, days, strict=False)
    ]
