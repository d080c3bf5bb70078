"""engine.pocket.workshop.tasks: what is asked for, and how it is done in each way."""

import random

import pytest

from engine.pocket.workshop import tasks
from engine.pocket.workshop.folder import CHECK, TESTS
from engine.pocket.workshop.tasks import FORMS, WORDS, Task
from engine.pocket.workshop.ways import DEFAULT, NAMES, Ways
from engine.pocket.workshop.work import FolderWork


def said(task: Task, ways: Ways) -> list[str]:
    """Return what the model says when it does a task, calls by their tool and file alone."""
    work = FolderWork(task.folder, ways)
    task.do(work)
    return [step.said for step in work.steps]


def task_where(form: str, way: str) -> tuple[Task, list[str], list[str]]:
    """Return a task of a form, its steps by default, and in another way."""
    task = tasks.drawn(form, random.Random(form))
    return task, said(task, DEFAULT), said(task, Ways(**{way: True}))


def test_there_are_a_dozen_forms_with_held_out_words() -> None:
    """No held-out wording is a trained one."""
    assert len(FORMS) >= 12
    for trained, held_out in WORDS.values():
        assert len(held_out) >= 2
        assert not set(trained) & set(held_out)


def test_a_file_whose_text_is_known_is_changed_at_once() -> None:
    """Or read before, where that is wished."""
    _, before, after = task_where("change", "reads")
    assert ['"edit"' in before[0], '"read"' in after[0], '"edit"' in after[1]] == [True, True, True]


def test_lines_are_changed_by_number() -> None:
    """After a look at the numbers."""
    task, _, after = task_where("change", "by_lines")
    place = task.folder.position(task.file, task.setting.key)
    assert f'"start": {place}, "end": {place}, "content": "{task.setting.line()}"' in after[1]


def test_tests_are_spared() -> None:
    """What stands elsewhere is changed."""
    task, before, after = task_where("everywhere", "spares_tests")
    changed = [[line for line in steps if '"edit"' in line] for steps in (before, after)]
    assert [len(one) for one in changed] == [2, 1]
    assert TESTS not in changed[1][0]
    assert TESTS in before[-1]
    assert task.file in after[-1]


def test_the_check_is_left_out_or_asked_for() -> None:
    """After a change it runs by default."""
    task = tasks.drawn("add", random.Random(4))
    runs = ['"bash"' in line for line in said(task, DEFAULT)]
    assert runs == [False, False, True, False]
    assert not any('"bash"' in line for line in said(task, Ways(is_unchecked=True)))
    assert said(task, Ways(asks=True))[2].startswith("Shall I run")


def test_new_lines_are_tight() -> None:
    """Without blanks around the sign."""
    task, before, after = task_where("new", "is_tight")
    assert f"{task.setting.key} = {task.setting.value}" in before[0]
    assert f"{task.setting.key}={task.setting.value}" in after[0]


@pytest.mark.parametrize("form", FORMS)
def test_every_way_does_the_task(form: str) -> None:
    """The folder is the same afterwards, but for blanks and the tests; the last words are words."""
    rng = random.Random(7)
    for _ in range(20):
        task = tasks.drawn(form, rng, is_held_out=True)
        work = [FolderWork(task.folder, Ways(**{way: rng.random() < 0.5 for way in NAMES})) for _ in range(2)]
        for one in work:
            task.do(one)
        files = [
            {
                name: [line.replace(" ", "") for line in lines]
                for name, lines in one.folder.files.items()
                if "/" not in name
            }
            for one in work
        ]
        assert files[0] == files[1]
        assert all("<tool_call>" not in one.steps[-1].said for one in work)


def test_files_are_listed_in_any_order() -> None:
    """The tool has the newest first; the answer names them as it did."""
    told = [tasks.drawn("list", random.Random(n)) for n in range(20)]
    assert {task.listing[0] == CHECK for task in told} == {True, False}
    for task in told:
        work = FolderWork(task.folder, DEFAULT)
        task.do(work)
        assert work.steps[0].answer.split() == list(task.listing)
        assert work.steps[-1].said == f"There are {tasks.listed(list(task.listing))}."
