"""heed that kills itself right before or right after one of its commits, or that is careless on purpose.

`python -m tests.crash.armed <point> <number> run ...` is `heed run ...`. Point `careless` is the negative control:
after a kill nothing that was under way is taken up again, and what was learned last is learned once more.
"""

import itertools
import os
import signal
import sys
from typing import Any

from sqlmodel import col, select

from bot.cli.main import main
from storage.kinds import FeedbackStatus
from storage.learning import feedback
from storage.sql.writer import Writer
from storage.tables import Feedback


def arm(point: str, number: int) -> None:
    """In place: this process kills itself before or after its commit of that number."""
    counted = itertools.count(1)
    tell, commit = Writer._tell, Writer._commit_group

    def die_if_due() -> None:
        if next(counted) == number:
            os.kill(os.getpid(), signal.SIGKILL)

    def telling(self: Writer, outcome: Any) -> None:
        die_if_due()
        tell(self, outcome)

    def committing(self: Writer, waiting: Any) -> None:
        die_if_due()
        commit(self, waiting)

    if point == "after-commit":
        Writer._tell = telling  # type: ignore[method-assign]
    elif point == "before-commit":
        Writer._commit_group = committing  # type: ignore[method-assign]
    elif point == "careless":
        feedback.requeue_interrupted = _carelessly


def _carelessly(s: Any, *, max_attempts: int) -> list[Feedback]:
    learned = select(Feedback).where(Feedback.status == FeedbackStatus.LEARNED).order_by(col(Feedback.seq).desc())
    again = list(s.exec(learned.limit(1)))
    for row in again:
        row.status = FeedbackStatus.PENDING
    return again


if __name__ == "__main__":
    point, number, *sys.argv[1:] = sys.argv[1:]
    arm(point, int(number))
    main()
