"""A bystander's answers stay as they were."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from evals import bystander, cases
from evals.bystander import Bystander
from evals.client import Client
from evals.config import EvalConfig
from evals.journal import Journal
from evals.study import Study
from tests.evals.fake_heed import FakeHeed, serving

QUESTIONS = cases.probes(0, 3, "bystander")


@asynccontextmanager
async def met(fake: FakeHeed, journal: Journal) -> AsyncIterator[Bystander]:
    """A bystander who has taught their one thing."""
    async with serving(fake) as url, Client(url) as client:
        study = Study(EvalConfig(), client, journal, lambda _: None)
        async with study.pair("b", goes_on=True) as pair:
            found = Bystander(study, "endurance", 0, pair.trained, QUESTIONS)
            await found.meet()
            yield found


def seen(journal: Journal) -> dict[str, Any]:
    """Return the last record."""
    return journal.records[-1]


async def test_answers_that_stay_are_equal() -> None:
    """Each question is asked twice before and twice after, one at a time."""
    fake, journal = FakeHeed(), Journal()
    async with met(fake, journal) as found:
        await found.ask_again(100)
    assert (seen(journal)["after"], seen(journal)["asked"], seen(journal)["changed"]) == (100, 3, 0)
    asked = [text for _, text in fake.asked[1:]]
    assert asked == [question.text for question in QUESTIONS for _ in range(2)] * 2


async def test_a_log_probability_that_differs_in_its_last_bit_is_a_change(monkeypatch: pytest.MonkeyPatch) -> None:
    """The text alone would be the same."""
    monkeypatch.setattr(bystander, "PAUSE_S", 0.0)
    fake, journal = FakeHeed(), Journal()
    fake.logprob = -0.1
    async with met(fake, journal) as found:
        fake.logprob = -0.10000000000000002
        await found.ask_again(1)
    assert seen(journal)["changed"] == 3


async def test_an_answer_that_differs_once_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have shared a batch with what followed a lesson; only those that differ are asked for again."""
    monkeypatch.setattr(bystander, "PAUSE_S", 0.0)
    fake, journal = FakeHeed(), Journal()
    plain, number = fake.answer, 0

    def answer(body: dict[str, Any]) -> str:
        nonlocal number
        number += 1
        return plain(body) + ("!" if number == 2 else "")

    async with met(fake, journal) as found:
        fake.answer = answer  # type: ignore[method-assign]
        await found.ask_again(1)
    assert (seen(journal)["changed"], number) == (0, 2 * 3 + 2)
    assert (seen(journal)["again"], seen(journal)["tries"]) == (1, bystander.ROUNDS)


async def test_after_an_interruption_the_answers_from_before_count() -> None:
    """Recorded answers are in the journal; no person is taught or asked a second time."""
    fake, journal = FakeHeed(), Journal()
    async with met(fake, journal):
        pass
    taught, asked = len(fake.training), len(fake.asked)
    async with met(fake, Journal(journal.run_id, journal.records, journal.done)):
        assert (len(fake.training), len(fake.asked)) == (taught, asked)
