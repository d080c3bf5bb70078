"""A report on how well the pocket model works on files: `python -m engine.pocket.workshop.report [FOLDER]`.

Held-out files, tasks and wordings only. Each step of a planned session is asked for after the steps before it, as they
should be; a session is right if all of its steps are, word for word. Prints a row for tasks without a wish, one per
place where a wish about the way can stand, and one for what a lesson's teacher says in place of the denied call where
the person has wished for other ways before.
"""

import argparse
import random
import sys
from collections.abc import Callable
from pathlib import Path

import torch

from engine.pocket import WORKSHOP_WEIGHTS
from engine.pocket.report import Pocket
from engine.pocket.workshop import session, tasks
from engine.pocket.workshop.tasks import FORMS, SHOWN_BY, Task
from engine.pocket.workshop.ways import DEFAULT, NAMES, Direction, Ways, held_out_wish
from engine.pocket.workshop.work import MAY_I, FolderWork, Step
from engine.prompts.hindsight import Hindsight, with_hindsight
from engine.requests import ChatMessage

NUM_OTHERS = 3  # wishes before the one of a lesson

Place = Callable[[Task, Ways, str], list[ChatMessage]]


def in_a_note(task: Task, _ways: Ways, wish: str) -> list[ChatMessage]:
    """Begin a session whose person has noted the wish."""
    return _begun(session.system([], [wish]), task.text)


def in_the_folder(task: Task, _ways: Ways, wish: str) -> list[ChatMessage]:
    """Begin a session in a folder about which the wish is noted."""
    return _begun(session.system([wish], []), task.text)


def in_the_task(task: Task, _ways: Ways, wish: str) -> list[ChatMessage]:
    """Begin a session with the wish behind the task."""
    return _begun(session.system([], []), f"{task.text}{'' if task.text[-1] in '.?' else '.'} {wish}")


def in_hindsight(task: Task, ways: Ways, wish: str) -> list[ChatMessage]:
    """Begin a session as the teacher of the first call that is not as wished reads it."""
    denied = session.first_that_differs(task, DEFAULT, ways)
    block = Hindsight(wish, context=session.context_of(denied))
    asked = with_hindsight([{"role": "user", "content": task.text}], block)[0]["content"]
    return _begun(session.system([], []), asked)


PLACES: dict[str, Place] = {
    "note": in_a_note, "folder's note": in_the_folder, "task": in_the_task, "hindsight": in_hindsight,
}  # fmt: skip


def steps_of(begun: list[ChatMessage], task: Task, ways: Ways) -> list[tuple[list[ChatMessage], str]]:
    """Return what the model reads before each step of a planned session, and the step."""
    work = FolderWork(task.folder, ways)
    task.do(work)
    messages, found = begun, []
    for step in work.steps:
        found.append((messages, step.said))
        messages = [*messages, {"role": "assistant", "content": step.said}, *_answered(step)]
    return found


def in_a_lesson(way: str, number: int) -> list[tuple[list[ChatMessage], str]]:
    """Return what a lesson's teacher reads before the denied call, with the notes of four wishes, and its next step."""
    rng = random.Random(f"{way}/lesson/{number}")
    direction = (way, True)
    ways, task = _that_shows(direction, rng)
    _, place = session.behind_a_step(task, ways, direction)
    wanted = ways.with_side(direction)
    work = FolderWork(task.folder, ways, turn=(place, wanted)) if place else FolderWork(task.folder, wanted)
    task.do(work)
    place = place or session.first_place(task, ways, wanted) or 0
    wish = held_out_wish(direction, rng)
    notes = [held_out_wish((name, True), rng) for name in NAMES if getattr(ways, name)]
    begun = _begun(session.system([], [*notes, wish]), task.text)
    for step in work.steps[:place]:
        begun += [{"role": "assistant", "content": step.said}, *_answered(step)]
    return [(with_hindsight(begun, Hindsight(wish)), work.steps[place].said)]


def _that_shows(direction: Direction, rng: random.Random) -> tuple[Ways, Task]:
    """Draw ways that were wished for before, and a task in which another wish shows beside them."""
    while True:
        others = rng.sample([name for name in NAMES if name != direction[0]], NUM_OTHERS)
        ways = Ways(**dict.fromkeys(others, True))
        task = tasks.drawn(rng.choice(SHOWN_BY[direction[0]]), rng, is_held_out=True)
        if session.first_place(task, ways, ways.with_side(direction)) is not None:
            return ways, task


def share_right(pocket: Pocket, sessions: list[list[tuple[list[ChatMessage], str]]]) -> float:
    """Return the share of sessions in which every step is as planned."""
    texts = iter(pocket.answer([messages for steps in sessions for messages, _ in steps]))
    right = [[next(texts) == said for _, said in steps] for steps in sessions]
    return sum(all(steps) for steps in right) / len(right)


def main(arguments: list[str]) -> int:
    """Run the command line and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m engine.pocket.workshop.report", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=WORKSHOP_WEIGHTS)
    parser.add_argument("--count", type=int, default=8, help="tasks per form, and per way and place of a wish")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    pocket = Pocket(options.folder)
    plain = {form: _plain(form, options.count) for form in FORMS}
    for form, sessions in plain.items():
        sys.stdout.write(f"{form:30}  {share_right(pocket, sessions):.3f}\n")
    for name, place in PLACES.items():
        for way in NAMES:
            found = share_right(pocket, [_wished(way, name, place, n) for n in range(options.count)])
            sys.stdout.write(f"{name + ', ' + way:30}  {found:.3f}\n")
    for way in NAMES:
        found = share_right(pocket, [in_a_lesson(way, n) for n in range(options.count)])
        sys.stdout.write(f"{'lesson, ' + way:30}  {found:.3f}\n")
    return 0


def _plain(form: str, count: int) -> list[list[tuple[list[ChatMessage], str]]]:
    drawn = [tasks.drawn(form, random.Random(f"{form}/{n}"), is_held_out=True) for n in range(count)]
    return [steps_of(_begun(session.system([], []), task.text), task, DEFAULT) for task in drawn]


def _wished(way: str, name: str, place: Place, number: int) -> list[tuple[list[ChatMessage], str]]:
    rng = random.Random(f"{way}/{name}/{number}")
    task = tasks.drawn(rng.choice(SHOWN_BY[way]), rng, is_held_out=True)
    ways = DEFAULT.with_side((way, True))
    return steps_of(place(task, ways, held_out_wish((way, True), rng)), task, ways)


def _begun(system: str, asked: str) -> list[ChatMessage]:
    return [{"role": "system", "content": system}, {"role": "user", "content": asked}]


def _answered(step: Step) -> list[ChatMessage]:
    if step.answer:
        return [{"role": "tool", "content": step.answer}]
    return [{"role": "user", "content": "yes"}] if step.said == MAY_I else []


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
