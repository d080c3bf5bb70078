"""`GET /admin/model`: how the model learns, its calibration, and what heed read beside what people chose."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from aiohttp import web

from bot.core.sampling import in_words
from bot.http.admin import paging, render
from bot.http.protocol.app_keys import CORE
from engine.models import title_of
from storage.kinds import Meaning, Scope
from storage.reports import readings
from storage.reports.readings import ReadingCount

CSV_HEAD = ("reading", "scope", "is_unsure", "number", "mean_margin")
MEANINGS = {  # each with the choice that agrees with it
    Meaning.WISH: ("A wish for all answers", Scope.ALWAYS),
    Meaning.FACT: ("A fact about the person", Scope.ALWAYS),
    Meaning.REMARK: ("A remark on this answer", Scope.ANSWER),
    Meaning.THANKS: ("Thanks", Scope.ANSWER),
    Meaning.NOTHING: ("Small talk", Scope.ANSWER),
}
BOUNDS = {  # setting of a gate -> label
    "max_divergence_left": "Divergence left of a lesson",
    "max_value_change": "Change of the adapter, per value",
    "max_anchor_divergence": "Change of neutral answers (nats)",
    "max_unasked": "Away from the teacher (nats)",
    "max_unasked_worst": "The same in the worst answer (nats)",
}


@dataclass(frozen=True)
class ReadingLine:
    """One meaning: how often each choice was made after it, and how many choices agree with it."""

    label: str
    this_answer: int
    from_now_on: int
    unanswered: int
    agreed: int

    @property
    def answered(self) -> int:
        """The number of corrections for which a button was pressed."""
        return self.this_answer + self.from_now_on

    @property
    def share(self) -> float | None:
        """The share of the choices that agree with the reading; None without any."""
        return self.agreed / self.answered if self.answered else None


async def page(request: web.Request) -> web.StreamResponse:
    """Show the model (`GET /admin/model`)."""
    core = request.app[CORE]
    found = await core.database.read(readings.counts)
    if paging.wants_csv(request):
        return await paging.as_csv(request, "readings", CSV_HEAD, _rows(found))
    learning = core.engine.learning
    return render.page(
        request,
        "model.html",
        "Model",
        name=title_of(core.settings.model),
        learning=learning,
        sampling=in_words(core.gateway.sampling()),
        bounds={BOUNDS.get(name, name): value for name, value in learning.bounds.items()},
        figures=figures(learning.figures),
        closed=learning.figures.get("closed", {}),
        lines=lines(found),
        totals=totals(found),
    )


def lines(found: Sequence[ReadingCount]) -> list[ReadingLine]:
    """Return a line for each meaning that was read."""
    return [
        _line(label, meant, [count for count in found if count.reading == meaning])
        for meaning, (label, meant) in MEANINGS.items()
        if any(count.reading == meaning for count in found)
    ]


def totals(found: Sequence[ReadingCount]) -> list[ReadingLine]:
    """Return all readings together: those where heed was sure, and those where it was unsure."""
    parts = {"Where heed was sure": False, "Where it was unsure": True}
    return [
        _sum(label, lines([count for count in found if count.is_unsure == is_unsure]))
        for label, is_unsure in parts.items()
    ]


def figures(measured: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the figures of a calibration as labels and texts; those that it did not keep are left out."""
    closed = list(measured.get("closed", {}).values())
    nats = {
        "Change of neutral answers after a lesson (nats)": measured.get("neutral"),
        "The same after words that ask for nothing (nats)": measured.get("neutral_placebo"),
    }
    found = [("Learned of a lesson, on other prompts", f"{100 * fmean(closed):.0f} %")] if closed else []
    return found + [(label, f"{value:.3g}") for label, value in nats.items() if value is not None]


def _line(label: str, meant: Scope, found: Sequence[ReadingCount]) -> ReadingLine:
    by_scope = {scope: sum(count.number for count in found if count.scope == scope) for scope in ("", *Scope)}
    return ReadingLine(label, by_scope[Scope.ANSWER], by_scope[Scope.ALWAYS], by_scope[""], by_scope[meant])


def _sum(label: str, parts: Sequence[ReadingLine]) -> ReadingLine:
    names = ("this_answer", "from_now_on", "unanswered", "agreed")
    return ReadingLine(label, *(sum(getattr(part, name) for part in parts) for name in names))


async def _rows(found: Sequence[ReadingCount]) -> AsyncIterator[Sequence[Sequence[Any]]]:
    yield [(count.reading, count.scope, count.is_unsure, count.number, count.mean_margin) for count in found]
