"""evals.agent.verdict: a session is judged by what was called and what stands in the folder."""

import random
from dataclasses import replace

import pytest

from bot.agent.tools import Call
from engine.pocket.workshop import tasks
from engine.pocket.workshop.tasks import FORMS, SHOWN_BY
from engine.pocket.workshop.ways import DEFAULT, NAMES, Ways
from evals.agent.verdict import Transcript, is_done, may_run, planned, side


@pytest.mark.parametrize("form", FORMS)
def test_a_planned_session_is_done_and_allowed(form: str) -> None:
    """In any ways; a session that changes nothing and says nothing is not done."""
    rng = random.Random(form)
    for _ in range(10):
        task = tasks.drawn(form, rng, is_held_out=True)
        ways = Ways(**{way: rng.random() < 0.5 for way in NAMES})
        session = planned(task, ways)
        assert is_done(task, session, ways)
        assert all(may_run(task, call) for call in session.calls)
        assert not is_done(task, Transcript((), task.folder.texts))


@pytest.mark.parametrize("way", NAMES)
def test_a_session_shows_its_side_of_each_way(way: str) -> None:
    """By the forms that show it; one without a step shows none."""
    for form in SHOWN_BY[way]:
        task = tasks.drawn(form, random.Random(form), is_held_out=True)
        for wanted in (False, True):
            assert side(way, planned(task, DEFAULT.with_side((way, wanted))).steps) is wanted
    assert side(way, ("I can not do that.",)) is None


@pytest.mark.parametrize(
    "call",
    [
        Call("bash", {"command": "rm -rf ."}),
        Call("write", {"path": "check.sh", "content": ""}),
        Call("edit", {"path": "other.ini", "old": "a", "new": "b", "all": False}),
    ],
)
def test_what_no_task_needs_is_not_allowed(call: Call) -> None:
    """Another command than the check, and a file that the task is not about."""
    assert not may_run(tasks.drawn("set", random.Random(1)), call)


def test_another_change_is_not_done() -> None:
    """The words alone do not count, nor a folder without the words."""
    task = tasks.drawn("set", random.Random(2))
    session = planned(task, DEFAULT)
    assert not is_done(task, replace(session, files=task.folder.texts))
    assert not is_done(task, replace(session, steps=session.steps[:-1]))
