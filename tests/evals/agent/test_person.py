"""evals.agent.person: a person allows what is harmless, and denies what is not as they want it."""

import random
from collections.abc import Sequence
from typing import Any, cast

import pytest

from bot.errors import CONTEXT_LENGTH_EXCEEDED
from engine.pocket.workshop import tasks
from engine.pocket.workshop.tasks import FORMS, SHOWN_BY
from engine.pocket.workshop.ways import DEFAULT, NAMES, held_out_wish
from evals.agent import person
from evals.agent.person import OBEYED, LongTurn
from evals.agent.verdict import is_done, side
from evals.client import Client
from evals.errors import CallRefused
from tests.evals.agent.planner import PlanningClient

pytestmark = pytest.mark.usefixtures("can_run")


@pytest.mark.parametrize("form", FORMS)
async def test_a_task_is_done_in_a_folder_of_its_own(form: str) -> None:
    """By the agent's own tools in their sandbox, the notes off."""
    heed = PlanningClient()
    task = heed.knows(tasks.drawn(form, random.Random(form), is_held_out=True))
    assert is_done(task, await person.work(cast(Client, heed), "ana", task))
    assert set(heed.asked) == {"off"}


@pytest.mark.parametrize("way", NAMES)
async def test_a_call_is_denied_and_tried_again(way: str) -> None:
    """The lesson has the person's words and the call; who is obeyed already corrects nothing."""
    heed, rng = PlanningClient(), random.Random(way)
    task = heed.knows(tasks.drawn(SHOWN_BY[way][0], rng, is_held_out=True))
    words = held_out_wish((way, True), rng)
    denial = await person.correct(cast(Client, heed), "ana", task, (way, True), words)
    assert denial.retry is not None
    assert (denial.status, side(way, denial.retry.steps)) == ("learned", True)
    assert denial.retry_s >= denial.lesson_s > 0
    ((_, text, context),) = heed.corrections
    assert text == words
    assert context[-1].startswith("The call was ")
    again = await person.correct(cast(Client, heed), "ana", task, (way, True), words)
    assert again.status == OBEYED


async def test_other_arguments_are_taught() -> None:
    """As the session words them."""
    heed = PlanningClient()
    task = heed.knows(tasks.drawn("new", random.Random(1), is_held_out=True))
    denial = await person.edit(cast(Client, heed), "ana", task)
    assert denial.status == "learned"
    assert heed.corrections[0][1].startswith("In this call of write: content must be ")
    assert (await person.edit(cast(Client, heed), "ana", task)).status == OBEYED


async def test_what_the_person_would_deny_does_not_run() -> None:
    """The task ends there, undone."""
    heed = PlanningClient()
    task = tasks.drawn("set", random.Random(3), is_held_out=True)
    other = tasks.drawn("new", random.Random(4), is_held_out=True)
    heed.tasks[task.text] = other
    shown = await person.work(cast(Client, heed), "ana", task)
    assert (shown.steps, shown.files) == ((), task.folder.texts)


async def test_one_session_goes_from_task_to_task() -> None:
    """Each has its own files."""
    heed = PlanningClient()
    drawn = [heed.knows(tasks.drawn(form, random.Random(form), is_held_out=True)) for form in ("say", "set", "list")]
    assert await person.work_on(cast(Client, heed), "ana", drawn) == [LongTurn(is_done=True)] * 3
    assert heed.ways["ana"] == DEFAULT


async def test_a_turn_that_does_not_fit_is_counted() -> None:
    """The session goes on."""
    heed = PlanningClient()
    drawn = [heed.knows(tasks.drawn("say", random.Random(n), is_held_out=True)) for n in range(2)]
    step = heed.step

    async def refused(user: str, messages: Sequence[Any], tools: Sequence[Any], **options: Any) -> Any:
        """Refuse the first task, whatever is left out."""
        if [m["content"] for m in messages if m["role"] == "user"][-1] == drawn[0].text:
            raise CallRefused("no", 400, CONTEXT_LENGTH_EXCEEDED)
        return await step(user, messages, tools, **options)

    heed.step = refused  # type: ignore[method-assign]
    turns = await person.work_on(cast(Client, heed), "ana", drawn)
    assert turns == [LongTurn(is_done=False, is_refused=True), LongTurn(is_done=True)]
