"""Adapter versions in words: what taught each, and what going back to one means.

Pure, over what `storage.learning.versions.lineage` reads.
"""

from storage.kinds import FeedbackKind, VersionState
from storage.learning.versions import Lineage
from storage.tables import AdapterVersion, Feedback, UpdateRun

MAX_CHARS = 60  # of what was said, in a line
STATES = {
    VersionState.CANDIDATE: "being made",
    VersionState.REJECTED: "not used: it did worse",
    VersionState.DAMAGED: "damaged",
    VersionState.PRUNED: "not kept any more",
}


def version_name(number: int) -> str:
    """Return a version as people read it: v3, and v0 as what it is."""
    return f"v{number}" if number else "v0 (untrained)"


def taught_by(taught: Feedback | None, run: UpdateRun | None) -> str:
    """Return what made a version, in a few words."""
    if taught is None:
        return "made again from the notes" if run is None or run.kind == "rebuild" else run.kind
    words = " ".join(taught.text.split())
    cut = f"{words[: MAX_CHARS - 1]}…" if len(words) > MAX_CHARS else words
    return cut if taught.kind == FeedbackKind.IMPORT else f'"{cut}"'


def listing(known: Lineage, active: int) -> str:
    """Every version with what taught it, newest first; the model as it came last."""
    lines = [_line(version, taught_by(taught, run), active) for version, taught, run in known]
    return "\n".join([*lines, f"{version_name(0):<9} the untrained model{_mark(0, active)}"])


def returned(known: Lineage, before: int, number: int) -> str:
    """Say what a rollback from `before` to `number` means: the lessons that hold, and those that are undone."""
    held, left = _lessons(known, number), _lessons(known, before)
    parts = [f"{version_name(number)} answers now" if number else "The untrained model answers now"]
    parts += [f"it was taught: {', '.join(held.values())}"] if held else []
    gone = [words for lesson, words in left.items() if lesson not in held]
    parts += [f"undone: {', '.join(gone)}"] if gone else []
    return "; ".join(parts) + "."


def _line(version: AdapterVersion, made: str, active: int) -> str:
    state = f"  ({STATES[VersionState(version.state)]})" if version.state in STATES else ""
    return f"{version_name(version.number):<9} {made}{state}{_mark(version.number, active)}"


def _mark(number: int, active: int) -> str:
    return "  <- answers now" if number == active else ""


def _lessons(known: Lineage, number: int) -> dict[int, str]:
    """Return what taught the versions from the base to this one, by their numbers, oldest first."""
    rows = {version.number: (version.parent, taught_by(taught, run)) for version, taught, run in known}
    path: list[tuple[int, str]] = []
    while number in rows:
        parent, words = rows[number]
        path.insert(0, (number, words))
        number = parent
    return dict(path)
