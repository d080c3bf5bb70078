"""`GET /admin/engine`: a timeline of answers and training, the queue, and the machine's memory."""

import time
from collections.abc import AsyncIterator, Sequence
from typing import Any

from aiohttp import web

from bot.errors import InvalidField
from bot.http.admin import paging, plots, render
from bot.http.api.health import health_of
from bot.http.protocol import messages
from bot.http.protocol.app_keys import CORE
from bot.monitoring import stats
from storage.database import Session
from storage.reports import dashboards, statistics
from storage.reports.statistics import Queue

MINUTES = (5, 15, 60, 360)
MAX_SPANS = 2000  # of each kind in the timeline
WEEK_S = 7 * 86_400.0
NEWEST = 1000  # answers and updates behind a percentile
CSV_HEAD = ("what", "began_at", "ended_at")
Spans = list[tuple[float, float]]


async def page(request: web.Request) -> web.StreamResponse:
    """Show the engine over the last minutes (`GET /admin/engine?minutes=15`)."""
    core, now_s, minutes = request.app[CORE], time.time(), _minutes(request)
    start_s = now_s - minutes * 60
    decoded, trained = await core.database.read(lambda s: dashboards.spans(s, start_s, MAX_SPANS))
    if paging.wants_csv(request):
        return await paging.as_csv(request, "timeline", CSV_HEAD, _rows(decoded, trained))
    queue, answers_s, updates_ms = await core.database.read(lambda s: _figures(s, now_s))
    host = core.engine.config.host
    return render.page(
        request,
        "engine.html",
        "Engine",
        minutes=minutes,
        choices=MINUTES,
        decoded=plots.spans(decoded, start_s, now_s, 10, 40),
        trained=plots.spans(trained, start_s, now_s, 70, 40),
        num_decoded=len(decoded),
        num_trained=len(trained),
        start_s=start_s,
        now_s=now_s,
        queue=queue,
        waits_s=now_s - queue.oldest_at_s if queue.oldest_at_s else None,
        times=_percentiles(answers_s, updates_ms),
        machine=await stats.machine(),
        parts=health_of(request),
        slots={"Concurrent answers": host.max_num_seqs},
        num_writing=core.gateway.num_streams,
        max_writing=core.settings.http.max_streams,
    )


def _minutes(request: web.Request) -> int:
    text = request.query.get("minutes", str(MINUTES[1]))
    if text not in map(str, MINUTES):
        raise InvalidField(messages.MINUTES.format(choices=", ".join(map(str, MINUTES))), "minutes")
    return int(text)


def _figures(s: Session, now_s: float) -> tuple[Queue, list[tuple[float, float]], list[float]]:
    return (
        statistics.queue(s),
        statistics.answer_times(s, now_s - WEEK_S, NEWEST),
        statistics.update_times_ms(s, now_s - WEEK_S, NEWEST),
    )


def _percentiles(answers_s: list[tuple[float, float]], updates_ms: list[float]) -> list[tuple[str, float, float]]:
    """Return each duration's name, median and 95th percentile in ms."""
    measured = {
        "First token": [first_s * 1000 for first_s, _ in answers_s],
        "Whole answer": [whole_s * 1000 for _, whole_s in answers_s],
        "Update": updates_ms,
    }
    return [(name, stats.percentile(values, 0.5), stats.percentile(values, 0.95)) for name, values in measured.items()]


async def _rows(decoded: Spans, trained: Spans) -> AsyncIterator[Sequence[Sequence[Any]]]:
    yield [("decode", *span) for span in decoded]
    yield [("train", *span) for span in trained]
