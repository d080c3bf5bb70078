"""The nightly window, in local time, in which heed may do work that no person waits for.

Pure. Invariants: a window that wraps midnight is one night, named by the day it begins on, so that "once a night" is
one comparison however often the clock is looked at; every question is answered from the moment given and nothing is
remembered, so a clock that jumps can skip a night or have one twice and never ends anything for good.
"""

import re
from dataclasses import dataclass
from datetime import date, datetime, timedelta

_FORM = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-(?:([01]\d|2[0-3]):([0-5]\d)|24:00)", re.ASCII)
MINUTES_OF_DAY = 24 * 60


@dataclass(frozen=True)
class Window:
    """Minutes of the day, the end not included; `end` below `begin` wraps midnight."""

    begin: int
    end: int

    @classmethod
    def parse(cls, text: str) -> "Window":
        """Parse HH:MM-HH:MM; 24:00 may be the end. Raises ValueError with what to write instead."""
        found = _FORM.fullmatch(text)
        if found is None:
            raise ValueError("write it as HH:MM-HH:MM, such as 02:00-06:00 or 23:30-05:00")
        hours = [int(part) if part is not None else None for part in found.groups()]
        begin = (hours[0] or 0) * 60 + (hours[1] or 0)
        end = MINUTES_OF_DAY if hours[2] is None else hours[2] * 60 + (hours[3] or 0)
        if begin == end:
            raise ValueError("it begins when it ends; 00:00-24:00 is the whole day")
        return cls(begin, end)

    def night(self, at: datetime) -> date | None:
        """Return the night a local moment lies in, named by the day it began on. Return None outside the window."""
        minute = at.hour * 60 + at.minute
        if self.begin < self.end:
            return at.date() if self.begin <= minute < self.end else None
        if minute >= self.begin:
            return at.date()
        return at.date() - timedelta(days=1) if minute < self.end else None
