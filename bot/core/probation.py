"""Probation of the newest version: the rule that says if its lesson made the first few answers worse.

One pure rule. Of those answers it counts the ones that were disliked without a reason, and words that it was better
before. A correction is a reason: it teaches what to change, and takes nothing back; an approval outweighs an earlier
thumb down. An approval of other answers does not: a lesson may well be good for some questions only.
"""

from collections.abc import Sequence

from bot.core.feedback import NEGATIVE, WORSE
from engine.config import VersionConfig
from engine.requests import UndoResult
from storage.kinds import FeedbackKind
from storage.tables import Feedback

SAID_SO = "you said that it was better before"
DISLIKED = "{} of its first answers were disliked"
_SETTLING = (FeedbackKind.APPROVAL, FeedbackKind.CORRECTION, FeedbackKind.IDEAL)


def why_worse(answers: Sequence[str], given: Sequence[Feedback], config: VersionConfig) -> str:
    """Return why the lesson is undone, in words for the person; empty if it stays.

    `answers`: ids of the answers that the version gave, oldest first; `given`: the feedback on them in its order.
    """
    on_probation = set(answers[: config.probation_answers])
    disliked: set[str] = set()
    for row in given:
        if row.completion_id not in on_probation:
            continue
        if row.kind in _SETTLING:
            disliked.discard(row.completion_id)
        elif row.value == WORSE:
            return SAID_SO
        elif row.value in NEGATIVE:
            disliked.add(row.completion_id)
    return DISLIKED.format(len(disliked)) if len(disliked) >= config.probation_complaints else ""


def taken_back_line(version: int, undone: UndoResult, reason: str) -> str:
    """Return what the person is told when a lesson was taken back because of what they said."""
    now = f"Version {undone.version}" if undone.version else "The untrained model"
    note = f' The note "{undone.note}" is deleted.' if undone.note else ""
    return (
        f"The last lesson (v{version}) is undone, because {reason}. {now} answers again.{note} "
        "If the lesson should hold after all, say it once more in other words."
    )
