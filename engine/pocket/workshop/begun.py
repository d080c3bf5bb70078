"""Tasks that are begun, for the pocket model's bank: what an agent reads before one of its steps.

None is of held-out files or words. They are done in the default ways up to there; what comes next decides how many
there are of each kind, so that every way of working would show in some.
"""

import random

from engine.pocket.workshop import tasks
from engine.pocket.workshop.folder import TESTS
from engine.pocket.workshop.tasks import FORMS
from engine.pocket.workshop.ways import DEFAULT
from engine.pocket.workshop.work import RUN_CHECK, FolderWork, Step, called
from engine.prompts.bank import Task

TOOLS = ("read", "write", "edit", "edit_lines", "glob", "grep", "bash")
COUNTS = {"blind": 10, "change": 14, "test": 10, "check": 14, "other": 12}  # by the step that comes next
_CHECK = called("bash", {"command": RUN_CHECK})
_CHANGES = tuple(f'"name": "{tool}"' for tool in ("edit", "edit_lines", "write"))


def drawn(rng: random.Random) -> list[Task]:
    """Draw tasks of every form in random stages, one kind behind the other."""
    found: dict[str, list[Task]] = {kind: [] for kind in COUNTS}
    while any(len(found[kind]) < count for kind, count in COUNTS.items()):
        task = tasks.drawn(rng.choice(FORMS), rng)
        work = FolderWork(task.folder, DEFAULT)
        task.do(work)
        place = rng.randrange(len(work.steps))
        kind = _kind(work.steps[place], is_first=place == 0)
        if len(found[kind]) < COUNTS[kind]:
            found[kind].append((("user", task.text), *_lines(work.steps[:place])))
    return [task for kind in found.values() for task in kind]


def _kind(step: Step, *, is_first: bool) -> str:
    """Name a step; "blind" is a change of a file that was not looked at."""
    if step.said == _CHECK:
        return "check"
    if not any(change in step.said for change in _CHANGES):
        return "other"
    if f'"path": "{TESTS}' in step.said:
        return "test"
    return "blind" if is_first else "change"


def _lines(steps: list[Step]) -> list[tuple[str, str]]:
    return [line for step in steps for line in (("assistant", step.said), ("tool", step.answer))]
