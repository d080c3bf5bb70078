"""Tests of the waiters of background tasks."""

import pytest

from engine.consolidation.waiters import Waiters


@pytest.fixture
def asked() -> Waiters[str]:
    """Return waiters without callers."""
    return Waiters()


async def test_whoever_asks_twice_waits_for_the_same_one(asked: Waiters[str]) -> None:
    """All callers get the one outcome."""
    first, second = asked.ask("ana"), asked.ask("ana")
    assert "ana" in asked
    asked.answer("ana", "done")
    assert (await first, await second, "ana" in asked) == ("done", "done", False)


async def test_an_outcome_nobody_waits_for_is_no_error(asked: Waiters[str]) -> None:
    """Tasks also run without a request, and a caller may have gone."""
    asked.answer("ana", "done")
    asked.ask("eve").cancel()
    asked.answer("eve", "done")


async def test_one_or_everybody_is_dropped(asked: Waiters[str]) -> None:
    """Callers of other people go on waiting."""
    ana, eve = asked.ask("ana"), asked.ask("eve")
    asked.drop("ana")
    assert (ana.cancelled(), eve.done()) == (True, False)
    asked.drop()
    assert eve.cancelled()
