"""bot.core.acquaintances: the people behind accounts, and strangers."""

import asyncio
from typing import Any

import pytest

from bot.core import acquaintances
from bot.core.acquaintances import Acquaintances, Caller
from bot.errors import QuotaUsed
from bot.events import Author
from tests.bot.conftest import Heed

EVE = Author("http", "eve", "eve", address="127.0.0.1")


async def test_a_stranger_keeps_their_id_once_they_are_made(heed: Heed) -> None:
    """Every call before it names the person that the first accepted one makes, also at the same time."""
    known = Acquaintances(heed.core.database, 10)
    before = await asyncio.gather(*(known.caller(EVE) for _ in range(3)))
    assert {caller.is_stranger for caller in before} == {True}
    assert (await known.known(EVE)).id == ""
    made = await asyncio.gather(*(known.person(EVE) for _ in range(3)))
    assert {*made} == {caller.user_id for caller in before}
    assert await known.caller(EVE) == Caller(made[0])


async def test_a_person_who_was_erased_is_a_stranger_with_another_id(heed: Heed) -> None:
    """Nothing leads from them to what was theirs."""
    known = Acquaintances(heed.core.database, 10)
    before = await known.person(EVE)
    await heed.engine.forget(before)
    known.drop(before)
    caller = await known.caller(EVE)
    assert caller.is_stranger
    assert caller.user_id != before


async def test_a_person_who_is_erased_while_they_are_looked_up_is_made_anew(
    heed: Heed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else every message of theirs would fail from then on: it would be stored for a person who is not there."""
    database = heed.core.database
    before = await Acquaintances(database, 10).person(EVE)
    known, write = Acquaintances(database, 10), database.write

    async def written(work: Any) -> Any:
        """Write, and have the person erased before the one who asked goes on."""
        monkeypatch.setattr(database, "write", write)
        found = await write(work)
        await heed.engine.forget(before)
        known.drop(before)
        return found

    monkeypatch.setattr(database, "write", written)
    after = await known.person(EVE)
    assert after != before
    assert (await known.known(EVE)).id == after == await known.person(EVE)


async def test_a_stranger_who_could_not_be_made_is_refused_at_once(heed: Heed) -> None:
    """Before the model has worked for them; looking counts for nothing."""
    known = Acquaintances(heed.core.database, 1)
    for _ in range(3):
        await known.caller(EVE)
    await known.person(EVE)
    with pytest.raises(QuotaUsed):
        await known.caller(Author("http", "cem", "cem", address="127.0.0.1"))
    assert await known.caller(EVE) == Caller(await known.person(EVE))


async def test_a_bounded_number_of_strangers_is_remembered(heed: Heed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever did not come by for longest is forgotten, and made with another id."""
    monkeypatch.setattr(acquaintances, "KNOWN_PEOPLE", 2)
    known = Acquaintances(heed.core.database, 10)
    names = [Author("http", name, name) for name in ("ana", "ben", "cem")]
    first = [await known.caller(name) for name in names]
    assert await known.caller(names[2]) == first[2]
    assert await known.caller(names[0]) != first[0]


async def test_who_was_erased_at_another_gateway_is_remembered_no_more(heed: Heed) -> None:
    """What it kept of them names a person that is not there."""
    database = heed.core.database
    database.is_shared = True
    known = Acquaintances(database, 10)
    before = await known.person(EVE)
    assert await known.person(EVE) == before
    await heed.engine.forget(before)  # the other gateway's caches are dropped, not this one's
    assert (await known.caller(EVE)).is_stranger
    assert await known.person(EVE) not in ("", before)
