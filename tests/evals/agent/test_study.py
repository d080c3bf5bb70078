"""evals.agent.study: what each part records."""

import random
from typing import cast

import pytest

from engine.pocket.workshop import tasks
from engine.pocket.workshop.tasks import FORMS, Task
from engine.pocket.workshop.ways import NAMES, Direction, Ways
from evals.agent import person, study
from evals.agent.person import OBEYED, Denial
from evals.agent.study import PART_WORK, PARTS, TRIES, AgentStudy, held_out, units
from evals.client import Client
from evals.journal import Journal
from tests.evals.agent.planner import PlanningClient

pytestmark = pytest.mark.usefixtures("can_run")


@pytest.fixture
def heed(monkeypatch: pytest.MonkeyPatch) -> PlanningClient:
    """A heed that does as planned and learns at once; a hundred turns are four."""
    planning = PlanningClient()

    def drawn(form: str, label: str) -> Task:
        return planning.knows(tasks.drawn(form, random.Random(label), is_held_out=True))

    monkeypatch.setattr(study, "held_out", drawn)
    monkeypatch.setattr(study, "TURNS", 4)
    return planning


@pytest.mark.parametrize("part", PARTS)
async def test_a_heed_that_obeys_has_all_of_it(part: str, heed: PlanningClient) -> None:
    """Every judgement is right, each unit is one step, and what is done is not done again."""
    steps: list[str] = []
    journal = Journal()
    at = AgentStudy(cast(Client, heed), journal, steps.append, 1, "heed/whole")
    await PART_WORK[part](at, 0)
    assert len(steps) == units(part)
    judged = [record[key] for record in journal.records for key in ("is_done", "obeys", "retry_obeys") if key in record]
    assert judged
    assert all(judged)
    num_records, num_asked = len(journal.records), len(heed.asked)
    await PART_WORK[part](at, 0)
    assert (len(journal.records), len(heed.asked)) == (num_records, num_asked)


@pytest.mark.parametrize("seed", range(4))
async def test_six_wishes_show_beside_each_other(seed: int, heed: PlanningClient) -> None:
    """Each is told, and judged by tasks in which a heed that holds all six shows it."""
    journal = Journal()
    await PART_WORK["sequence"](AgentStudy(cast(Client, heed), journal, lambda _: None, 3, "x"), seed)
    judged = [record["obeys"] for record in journal.records if "obeys" in record]
    assert judged == [True] * 3 * len(NAMES)
    assert all(record["retry_obeys"] for record in journal.records if "lesson" in record)


async def test_a_wish_that_was_held_by_chance_is_told_behind_the_others(
    heed: PlanningClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once it is not held any more; one that still is is not told."""
    tried: list[str] = []

    async def taught(_study: AgentStudy, _user: str, _seed: int, direction: Direction, *_: object) -> Denial:
        tried.append(direction[0])
        is_held = direction[0] == "reads" or (direction[0] == "asks" and tried.count("asks") == 1)
        return Denial(OBEYED if is_held else "learned")

    monkeypatch.setattr(AgentStudy, "taught", taught)
    journal = Journal()
    await PART_WORK["sequence"](AgentStudy(cast(Client, heed), journal, lambda _: None, 1, "x"), 0)
    assert sorted(tried[: len(NAMES)]) == sorted(NAMES)
    assert sorted(tried[len(NAMES) :]) == ["asks", "reads"]
    lessons = [record["way"] for record in journal.records if "lesson" in record]
    assert sorted(lessons) == sorted(set(NAMES) - {"reads"})


def test_a_way_that_no_task_can_show_is_named() -> None:
    """Rather than counted as not obeyed."""
    with pytest.raises(ValueError, match="no task shows asks"):
        study.that_shows(("asks", True), Ways(is_unchecked=True, asks=True), ["change"], "a")


@pytest.mark.parametrize("num_obeyed", [0, 2, TRIES])
async def test_a_wish_is_told_once_a_task_is_not_done_as_wished(
    num_obeyed: int, heed: PlanningClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another task each time, the same words; it is not told where all of them are done so."""
    given: list[tuple[str, str]] = []

    async def correct(_client: Client, _user: str, task: Task, _direction: Direction, words: str) -> Denial:
        given.append((task.text, words))
        return Denial(OBEYED if len(given) <= num_obeyed else "learned")

    monkeypatch.setattr(person, "correct", correct)
    at = AgentStudy(cast(Client, heed), Journal(), lambda _: None, 1, "x")
    denial = await at.taught("ana", 0, ("reads", True), "sequence")
    assert denial.status == (OBEYED if num_obeyed == TRIES else "learned")
    texts, words = zip(*given, strict=True)
    assert len(set(texts)) == len(texts) == min(num_obeyed + 1, TRIES)
    assert len(set(words)) == 1


async def test_a_heed_that_learns_nothing_obeys_nothing(heed: PlanningClient) -> None:
    """But does its tasks."""
    heed._is_learning = False
    journal = Journal()
    await PART_WORK["correction"](AgentStudy(cast(Client, heed), journal, lambda _: None, 2, "x"), 0)
    assert not any(record.get("obeys") or record.get("retry_obeys") for record in journal.records)
    assert {record["lesson"] for record in journal.records if "lesson" in record} == {"rejected"}
    assert len(journal.records) == len(NAMES) * 3


async def test_a_heed_that_asks_how_far_a_wish_reaches_is_told(heed: PlanningClient) -> None:
    """From now on; without that it would have learned nothing. The records say that it asked."""
    heed.is_unsure = True
    journal = Journal()
    await PART_WORK["correction"](AgentStudy(cast(Client, heed), journal, lambda _: None, 1, "x"), 0)
    assert [record["was_asked"] for record in journal.records if "lesson" in record] == [True] * len(NAMES)
    assert all(record["obeys"] for record in journal.records if "obeys" in record)


async def test_ten_lessons_are_ten(heed: PlanningClient) -> None:
    """Every way once, two of them back and forth."""
    await PART_WORK["lessons"](AgentStudy(cast(Client, heed), Journal(), lambda _: None, 1, "x"), 0)
    assert len(heed.corrections) == 10


def test_tasks_are_held_out_and_the_same_each_time() -> None:
    """By their label."""
    assert held_out(FORMS[0], "a") == held_out(FORMS[0], "a")
    assert held_out(FORMS[0], "a") != held_out(FORMS[0], "b")
