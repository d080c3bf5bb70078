"""`GET /admin/evals` and one run: results of `heed eval`, read from its summary.json."""

import json
import math
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from bot.errors import InvalidField
from bot.http.admin import paging, plots, render
from bot.http.protocol import messages
from bot.http.protocol.app_keys import CORE
from storage.reports import eval_runs
from storage.tables import EvalRun

MAX_RUNS = 200
LIST_HEAD = ("id", "stored_at", "finished_at", "model", "figure", "unit", "arm", "median", "worst")


@dataclass(frozen=True)
class PlottedFigure:
    """One figure of a run as the page draws it: each arm's median, worst value and bar length."""

    name: str
    unit: str
    target: float | None
    arms: list[tuple[str, float, float | None, float]]


async def page(request: web.Request) -> web.StreamResponse:
    """List the runs with an upload form (`GET /admin/evals`)."""
    runs = await request.app[CORE].database.read(lambda s: eval_runs.recent(s, MAX_RUNS))
    if paging.wants_csv(request):
        return await paging.as_csv(request, "evals", LIST_HEAD, _rows(runs))
    return render.page(request, "evals.html", "Evaluations", runs=runs, trends=trends(runs))


async def one(request: web.Request) -> web.StreamResponse:
    """Show one run (`GET /admin/evals/{id}`)."""
    run_id = request.match_info["id"]
    run = await request.app[CORE].database.read(lambda s: eval_runs.get(s, run_id))
    if paging.wants_csv(request):
        return await paging.as_csv(request, "eval", LIST_HEAD, _rows([run]))
    return render.page(request, "eval.html", "Evaluation", run=run, figures=figures(run))


async def add(request: web.Request) -> web.StreamResponse:
    """Store the uploaded file `summary` (`POST /admin/evals`)."""
    given = (await request.post()).get("summary")
    content = given.file.read() if isinstance(given, web.FileField) else b""
    try:
        summary = json.loads(content)
        checked(summary)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise InvalidField(messages.NO_SUMMARY, "summary") from None
    config = summary.pop("config")
    run = await request.app[CORE].database.write(lambda s: eval_runs.add(s, config, summary))
    return render.see_other(f"/admin/evals/{run.id}")


def checked(summary: dict[str, Any]) -> None:
    """Raise ValueError, TypeError, KeyError or AttributeError if this is no summary of an evaluation."""
    if not isinstance(summary["config"], dict):
        raise TypeError("config")
    for figure in summary["figures"]:
        for name in ("median", "worst"):
            if not all(math.isfinite(value) for value in figure[name].values() if value is not None):
                raise ValueError(name)
        if not isinstance(figure["name"], str) or not isinstance(figure["unit"], str):
            raise TypeError("name")


def figures(run: EvalRun) -> list[PlottedFigure]:
    """Return the figures of a run."""
    return [_figure(entry) for entry in (run.summary or {}).get("figures", [])]


def trends(runs: Sequence[EvalRun]) -> list[plots.Curve]:
    """Return a curve for each figure that several runs share, oldest run first; the weights' arm if it was measured."""
    known: dict[str, list[float]] = {}
    for run in reversed(runs):
        for figure in figures(run):
            medians = {arm: median for arm, median, _, _ in figure.arms}
            if medians:
                known.setdefault(figure.name, []).append(medians.get("weights", next(iter(medians.values()))))
    return [plot for name, values in known.items() if (plot := plots.curve(name, values))]


def _figure(entry: dict[str, Any]) -> PlottedFigure:
    medians = {arm: value for arm, value in entry["median"].items() if value is not None}
    longest = max([1.0 if entry["unit"] == "%" else 0.0, *(abs(value) for value in medians.values())]) or 1.0
    arms = [(arm, value, entry["worst"].get(arm), plots.WIDTH * abs(value) / longest) for arm, value in medians.items()]
    return PlottedFigure(entry["name"], entry["unit"], entry.get("target"), arms)


async def _rows(runs: Sequence[EvalRun]) -> AsyncIterator[Sequence[Sequence[Any]]]:
    for run in runs:
        summary = run.summary or {}
        made = (run.id, run.created_at, summary.get("finished_at", ""), summary.get("model", ""))
        yield [
            (*made, figure.name, figure.unit, arm, median, worst)
            for figure in figures(run)
            for arm, median, worst, _ in figure.arms
        ]
