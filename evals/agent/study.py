"""The parts of `heed eval agent`: tasks as they are, one correction, ten lessons, six wishes, an edit, a hundred turns.

Every task, file and wording is held out of the pocket model's training. After a lesson the notes are off: what is
judged are the weights alone. Invariant: no task is judged that its person has corrected.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from engine.pocket.workshop import tasks
from engine.pocket.workshop.tasks import FORMS, SHOWN_BY, Task
from engine.pocket.workshop.ways import DEFAULT, NAMES, Direction, Ways, held_out_wish
from evals.agent import person
from evals.agent.person import OBEYED, Denial
from evals.agent.verdict import is_done, planned, side
from evals.client import Client
from evals.journal import Journal
from evals.lesson_end import settled

BACK = ("by_lines", "is_tight")  # ways whose other side is a call, too, that can be denied
TURNS = 100
DRAWS = 5  # of a form, before the next one is drawn
SETTLE_S = 120.0  # for the whole of a lesson, and the probes of its note
TRIES = 5  # tasks, before a wish is held without having been told


@dataclass
class AgentStudy:
    """The means that every part works with."""

    client: Client
    journal: Journal
    advance: Callable[[str], None]
    num_tasks: int
    label: str  # of the rule and its rate: people of two rules are two

    async def once(
        self, part: str, seed: int, unit: str, measured: Callable[[], Awaitable[Sequence[dict[str, Any]]]]
    ) -> None:
        """Measure one unit and keep what it found, unless it was done before this run was interrupted."""
        name = f"{self.label}/{part}/{seed}/{unit}"
        if name not in self.journal.done:
            for found in await measured():
                self.journal.record({"rule": self.label, "part": part, "seed": seed, "unit": unit, **found})
            self.journal.finish(name, 1)
        self.advance(part)

    def user(self, *labels: object) -> str:
        """Return the name of a person no one has met before."""
        return f"eval-{self.journal.run_id}-{self.label.replace('/', '-')}-{'-'.join(map(str, labels))}"

    async def solved(self, user: str, seed: int, label: str, ways: Ways = DEFAULT) -> list[dict[str, Any]]:
        """Let a person give tasks of every form; one record each."""
        drawn = [held_out(FORMS[n % len(FORMS)], f"{label}/{seed}/{n}") for n in range(self.num_tasks * len(FORMS))]
        done = await asyncio.gather(*(self._solved(user, task, ways) for task in drawn))
        return [{"form": task.form, "is_done": ok} for task, ok in zip(drawn, done, strict=True)]

    async def obeyed(
        self, user: str, seed: int, direction: Direction, label: str, others: Ways = DEFAULT
    ) -> list[dict[str, Any]]:
        """Let a person, who has wished for `others` before, give tasks that show a way; one record each."""
        way, wanted = direction
        ways, forms = others.with_side(direction), SHOWN_BY[way]
        turned = [[*forms[n % len(forms) :], *forms[: n % len(forms)]] for n in range(self.num_tasks)]
        drawn = [that_shows(direction, ways, turned[n], f"{label}/{seed}/{way}/{n}") for n in range(self.num_tasks)]
        shown = await asyncio.gather(*(person.work(self.client, user, task) for task in drawn))
        return [
            {"way": way, "obeys": side(way, one.steps) is wanted, "is_done": is_done(task, one, ways)}
            for task, one in zip(drawn, shown, strict=True)
        ]

    async def taught(self, user: str, seed: int, direction: Direction, label: str, others: Ways = DEFAULT) -> Denial:
        """Correct the first call that is not as wished, as a person who has wished for `others` before.

        Where a task is done as wished by chance, nothing was said of the wish yet: the next one is given, some at most.
        All that comes next finds the whole lesson learned, not only its first version.
        """
        rng = random.Random(f"{label}/{seed}/{direction}")
        forms, ways = SHOWN_BY[direction[0]], others.with_side(direction)
        first, wish = rng.choice(forms), held_out_wish(direction, rng)
        for number in range(TRIES):
            drawn = [first if number == 0 else rng.choice(forms), *forms]
            task = that_shows(direction, ways, drawn, f"{label}/{seed}/{direction}/taught{number or ''}")
            denial = await person.correct(self.client, user, task, direction, wish)
            if denial.status != OBEYED:
                break
        await settled(self.client, user, SETTLE_S)
        return denial

    async def _solved(self, user: str, task: Task, ways: Ways) -> bool:
        return is_done(task, await person.work(self.client, user, task), ways)


def held_out(form: str, label: str) -> Task:
    """Draw a task of files and words that training never has."""
    return tasks.drawn(form, random.Random(label), is_held_out=True)


def that_shows(direction: Direction, ways: Ways, forms: Sequence[str], label: str) -> Task:
    """Draw a task of the first of the forms in which the side of a way shows where the task is done in `ways`.

    One that runs nothing, because no check is wished for, does not show that it is asked before.
    """
    way, wanted = direction
    for form in forms:
        for number in range(DRAWS):
            task = held_out(form, f"{label}/{number}" if number else label)
            if side(way, planned(task, ways).steps) is wanted:
                return task
    raise ValueError(f"no task shows {way} beside {ways}")


async def as_they_are(study: AgentStudy, seed: int) -> None:
    """Tasks of a person who has wished for nothing."""
    await study.once("tasks", seed, "all", lambda: study.solved(study.user("tasks", seed), seed, "tasks"))


async def one_correction(study: AgentStudy, seed: int) -> None:
    """One correction of each way by a person of its own: does the next try obey, and do later tasks?"""
    for way in NAMES:

        async def measured(way: str = way) -> list[dict[str, Any]]:
            user = study.user("once", seed, way)
            denial = await study.taught(user, seed, (way, True), "once")
            later = await study.obeyed(user, seed, (way, True), "once")
            return [lesson_record((way, True), denial), *later]

        await study.once("correction", seed, way, measured)


async def ten_lessons(study: AgentStudy, seed: int) -> None:
    """Give tasks as a person who has corrected ten times: every way, and two of them back and forth again."""

    async def measured() -> list[dict[str, Any]]:
        user = study.user("lessons", seed)
        ways = random.Random(f"lessons/{seed}").sample(NAMES, len(NAMES))
        again = [(way, side) for side in (False, True) for way in BACK]
        directions = [*((way, True) for way in ways), *again]
        given = [
            lesson_record(direction, await study.taught(user, seed, direction, f"lessons/{n}"))
            for n, direction in enumerate(directions)
        ]
        return [*given, *await study.solved(user, seed, "lessons", Ways(**dict.fromkeys(NAMES, True)))]

    await study.once("lessons", seed, "all", measured)


async def six_wishes(study: AgentStudy, seed: int) -> None:
    """Six wishes of one person, one after the other; all of them are judged at the end.

    One that was held before it was told is told behind the others, if it is not held any more then.
    """

    async def measured() -> list[dict[str, Any]]:
        user = study.user("sequence", seed)
        found, wished = [], DEFAULT
        ways = random.Random(f"sequence/{seed}").sample(NAMES, len(NAMES))
        for label in ("sequence", "sequence/again"):
            untold = []
            for way in ways:
                denial = await study.taught(user, seed, (way, True), label, wished)
                found.append(lesson_record((way, True), denial))
                wished = wished.with_side((way, True))
                untold += [way] if denial.status == OBEYED else []
            ways = untold
        for way in NAMES:
            found += await study.obeyed(user, seed, (way, True), "sequence", wished)
        return found

    await study.once("sequence", seed, "all", measured)


async def an_edit(study: AgentStudy, seed: int) -> None:
    """Other arguments in place of a call's; later lines are written like them."""
    for form in SHOWN_BY["is_tight"]:

        async def measured(form: str = form) -> list[dict[str, Any]]:
            user = study.user("edit", seed, form)
            task = held_out(form, f"edit/{seed}/{form}/taught")
            denial = await person.edit(study.client, user, task)
            await settled(study.client, user, SETTLE_S)
            later = await study.obeyed(user, seed, ("is_tight", True), f"edit/{form}")
            return [lesson_record(("is_tight", True), denial), *later]

        await study.once("edit", seed, form, measured)


async def hundred_turns(study: AgentStudy, seed: int) -> None:
    """Give a hundred tasks in one session: nothing is refused, and they are done to the end."""

    async def measured() -> list[dict[str, Any]]:
        user = study.user("long", seed)
        drawn = [held_out(FORMS[n % len(FORMS)], f"long/{seed}/{n}") for n in range(TURNS)]
        turns = await person.work_on(study.client, user, drawn)
        return [{"turn": n, "is_done": one.is_done, "is_refused": one.is_refused} for n, one in enumerate(turns)]

    await study.once("long", seed, "all", measured)


def lesson_record(direction: Direction, denial: Denial) -> dict[str, Any]:
    """Return what became of a correction."""
    way, wanted = direction
    if denial.status == OBEYED:  # neither a lesson nor its time
        return {"way": way, "retry_obeys": True}
    found = {"way": way, "lesson": denial.status, "lesson_s": denial.lesson_s, "was_asked": denial.was_asked}
    if denial.retry is None:
        return found
    return found | {"retry_s": denial.retry_s, "retry_obeys": side(way, denial.retry.steps) is wanted}


PART_WORK: dict[str, Callable[[AgentStudy, int], Awaitable[None]]] = {
    "tasks": as_they_are,
    "correction": one_correction,
    "lessons": ten_lessons,
    "sequence": six_wishes,
    "edit": an_edit,
    "long": hundred_turns,
}
PARTS = tuple(PART_WORK)


def units(part: str) -> int:
    """Return how many units a part has in one seed."""
    return {"correction": len(NAMES), "edit": len(SHOWN_BY["is_tight"])}.get(part, 1)
