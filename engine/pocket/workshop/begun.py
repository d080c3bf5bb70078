"""Tasks that are begun, for the pocket model's bank: what an agent reads before one of its steps.

None is of held-out files or words. Most are done in the default ways up to there, often with a file read before it is
changed, as many a wish has it; what comes next decides how many there are of each kind, so that every way of working
would show in some. The rest are done in any ways: a lesson is taught where its person's earlier wishes have led, too.
"""

import random
from collections.abc import Callable

from engine.pocket.workshop import tasks
from engine.pocket.workshop.folder import TESTS
from engine.pocket.workshop.tasks import FORMS
from engine.pocket.workshop.ways import NAMES, Ways
from engine.pocket.workshop.work import MAY_I, RUN_CHECK, YES, FolderWork, Step, called
from engine.prompts.bank import Task

TOOLS = ("read", "write", "edit", "edit_lines", "glob", "grep", "bash")
COUNTS = {"blind": 10, "change": 14, "test": 10, "check": 10, "other": 8}  # by the step that comes next
WISHED_COUNTS = {"asked": 6, "any": 14}  # of those in any ways; "asked" is what the person has just allowed
_CHECK = called("bash", {"command": RUN_CHECK})
_CHANGES = tuple(f'"name": "{tool}"' for tool in ("edit", "edit_lines", "write"))


def drawn(rng: random.Random) -> list[Task]:
    """Draw tasks of every form in random stages, one kind behind the other."""
    default = _drawn(COUNTS, lambda: Ways(reads=rng.random() < 0.5), _kind, rng)
    return [*default, *_drawn(WISHED_COUNTS, lambda: _any_ways(rng), _wished_kind, rng)]


def _drawn(
    counts: dict[str, int], ways: Callable[[], Ways], kind_of: Callable[[list[Step], int], str], rng: random.Random
) -> list[Task]:
    found: dict[str, list[Task]] = {kind: [] for kind in counts}
    while any(len(found[kind]) < count for kind, count in counts.items()):
        task = tasks.drawn(rng.choice(FORMS), rng)
        work = FolderWork(task.folder, ways())
        task.do(work)
        place = rng.randrange(len(work.steps))
        kind = kind_of(work.steps, place)
        if len(found[kind]) < counts[kind]:
            found[kind].append((("user", task.text), *_lines(work.steps[:place], rng)))
    return [task for kind in found.values() for task in kind]


def _any_ways(rng: random.Random) -> Ways:
    return Ways(**{name: rng.random() < 0.5 for name in NAMES})


def _wished_kind(steps: list[Step], place: int) -> str:
    return "asked" if place and steps[place - 1].said == MAY_I else "any"


def _kind(steps: list[Step], place: int) -> str:
    """Name a step; "blind" is a change of a file that was not looked at."""
    said = steps[place].said
    if said == _CHECK:
        return "check"
    if not any(change in said for change in _CHANGES):
        return "other"
    if f'"path": "{TESTS}' in said:
        return "test"
    return "change" if place else "blind"


def _lines(steps: list[Step], rng: random.Random) -> list[tuple[str, str]]:
    """Return steps as messages; what was asked may be done."""
    lines: list[tuple[str, str]] = []
    for step in steps:
        answer = ("user", rng.choice(YES)) if step.said == MAY_I else ("tool", step.answer)
        lines += [("assistant", step.said), answer]
    return lines
