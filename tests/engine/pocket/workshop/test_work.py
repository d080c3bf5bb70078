"""engine.pocket.workshop.work: what the tools answer in training is what the agent's tools answer."""

import json
import random
import subprocess
from pathlib import Path

import pytest

from bot.agent.inside import main
from bot.agent.sandbox import Finished
from bot.agent.toolbox import told
from bot.agent.tools import read_call
from engine.pocket.workshop import tasks
from engine.pocket.workshop.tasks import FORMS
from engine.pocket.workshop.ways import NAMES, Ways
from engine.pocket.workshop.work import MAY_I, FolderWork, called


def answered(root: Path, said: str) -> str:
    """Run a call as the agent does, without the sandbox around it, and return what the model reads."""
    call = json.loads(said.removeprefix("<tool_call>\n").removesuffix("\n</tool_call>"))
    read = read_call(call["name"], json.dumps(call["arguments"]))
    if read.tool == "bash":
        done = subprocess.run(
            ["bash", "-c", read.arguments["command"]], cwd=root, capture_output=True, text=True, check=False
        )
        return told(Finished(done.stdout + done.stderr, done.returncode)).told
    return main.run(root, read.tool, read.arguments, is_preview=False).told


@pytest.mark.parametrize("form", FORMS)
def test_the_tools_answer_as_they_do_in_the_agent(form: str, tmp_path: Path) -> None:
    """In every way, with files of training and with held-out ones; the folder is afterwards as the work says."""
    rng = random.Random(form)
    for number in range(24):
        root = tmp_path / str(number)
        task = tasks.drawn(form, rng, is_held_out=number % 2 == 1)
        for name, text in task.folder.texts.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        work = FolderWork(task.folder, Ways(**{way: rng.random() < 0.5 for way in NAMES}))
        task.do(work)
        for step in work.steps:
            if step.answer and '"glob"' in step.said:
                assert set(answered(root, step.said).splitlines()) == set(step.answer.splitlines())
            elif step.answer:
                assert answered(root, step.said) == step.answer
        assert {name: (root / name).read_text() for name in work.folder.texts} == work.folder.texts


def test_a_command_is_asked_for() -> None:
    """Where the person wants to be asked, and not run after a no."""
    task = tasks.drawn("run", random.Random(1))
    work = FolderWork(task.folder, Ways(asks=True), may_run=False)
    task.do(work)
    assert [step.said for step in work.steps] == [MAY_I, "Then I leave it."]


def test_a_file_is_read_once() -> None:
    """And again after it was changed, where its lines are needed by number."""
    task = tasks.drawn("set", random.Random(2))
    work = FolderWork(task.folder, Ways(by_lines=True))
    task.do(work)
    assert [step.said for step in work.steps].count(called("read", {"path": task.file})) == 1
