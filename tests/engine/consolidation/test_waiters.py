"""engine.consolidation.waiters: who waits for a chore."""

import pytest

from engine.consolidation.waiters import Waiters


@pytest.fixture
def asked() -> Waiters[str]:
    """Nobody waits yet."""
    return Waiters()


async def test_whoever_asks_twice_waits_for_the_same_one(asked: Waiters[str]) -> None:
    """And everybody gets the one outcome."""
    first, second = asked.ask("ana"), asked.ask("ana")
    assert "ana" in asked
    asked.answer("ana", "done")
    assert (await first, await second, "ana" in asked) == ("done", "done", False)


async def test_an_outcome_nobody_waits_for_is_no_error(asked: Waiters[str]) -> None:
    """Chores are also done unasked, and whoever asked may have gone."""
    asked.answer("ana", "done")
    asked.ask("eve").cancel()
    asked.answer("eve", "done")


async def test_one_or_everybody_is_dropped(asked: Waiters[str]) -> None:
    """Those who are not meant go on waiting."""
    ana, eve = asked.ask("ana"), asked.ask("eve")
    asked.drop("ana")
    assert (ana.cancelled(), eve.done()) == (True, False)
    asked.drop()
    assert eve.cancelled()
