"""storage.lease_keeper: a thing is one process's, which goes on with it before anything else is done."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from types import SimpleNamespace

import pytest

from storage import fencing, lease_keeper, leases
from storage.database import Database
from storage.errors import LeaseHeld, StorageError
from storage.fencing import Tokens
from storage.lease_keeper import LeaseKeeper
from storage.people import people
from tests.patience import PATIENCE_S
from tests.storage.postgres_server import PostgresServer


class Keeper:
    """A process with leases, and what it was told."""

    def __init__(self, url: str, name: str, duration_s: float) -> None:
        self.told: list[str] = []
        self.error: Exception | None = None
        self.tokens = Tokens(f"{name}/1")
        self.database = Database.enter(url, name, self.tokens)
        self.leases = LeaseKeeper(self.database, self.tokens, self._taken, self._lost, duration_s)

    async def _taken(self, user_id: str) -> None:
        if self.error is not None:
            raise self.error
        self.told.append(f"took {user_id}")

    def _lost(self, user_id: str) -> None:
        self.told.append(f"lost {user_id}")


Make = Callable[[str, float], Keeper]


@pytest.fixture
async def make(postgres: PostgresServer) -> AsyncIterator[Make]:
    """Make a process of one cluster."""
    async with AsyncExitStack() as stack:
        url = postgres.url(stack.enter_context(postgres.database()))

        def made(name: str, duration_s: float = 60.0) -> Keeper:
            keeper = Keeper(url, name, duration_s)
            stack.push_async_callback(keeper.database.close)
            return keeper

        yield made


async def person(keeper: Keeper) -> str:
    """Somebody new."""
    return (await keeper.database.write(lambda s: people.resolve(s, "http", "ana"))).id


async def lease_of(keeper: Keeper, user_id: str) -> leases.Lease | None:
    """A person's lease, None where its time is over by the database's clock."""
    return await keeper.database.read(lambda s: leases.of(s, fencing.person(user_id)))


async def test_a_person_is_taken_over_once(make: Make) -> None:
    """However many calls come for them at the same time."""
    one = make("one", 60.0)
    ana = await person(one)
    await asyncio.gather(*(one.leases.hold(ana, ana) for _ in range(5)))
    assert one.told == [f"took {ana}"]
    assert one.leases.held == {ana}
    assert one.tokens.of(fencing.person(ana)) == 1


async def test_another_ones_person_is_refused_with_the_owners_name(make: Make) -> None:
    """The caller asks there."""
    one, two = make("one", 60.0), make("two", 60.0)
    ana = await person(one)
    await one.leases.hold(ana, ana)
    with pytest.raises(LeaseHeld) as refused:
        await two.leases.hold(ana, ana)
    assert refused.value.owner == "one/1"
    assert two.leases.held == set()


async def test_a_released_person_can_be_taken_at_once(make: Make) -> None:
    """What waited for them is forgotten where they were."""
    one, two = make("one", 60.0), make("two", 60.0)
    ana = await person(one)
    await one.leases.hold(ana, ana)
    await one.leases.release()
    await two.leases.hold(ana, ana)
    assert one.told == [f"took {ana}", f"lost {ana}"]
    assert two.tokens.of(fencing.person(ana)) == 2


async def test_a_takeover_that_fails_is_tried_again(make: Make) -> None:
    """The lease is held in the database, but nothing is done for the person before it worked."""
    one = make("one", 60.0)
    ana = await person(one)
    one.error = StorageError("busy")
    with pytest.raises(StorageError):
        await one.leases.hold(ana, ana)
    assert (one.leases.held, one.tokens.of(fencing.person(ana))) == (set(), None)
    one.error = None
    await one.leases.hold(ana, ana)
    assert one.leases.held == {ana}


async def test_a_lease_outlives_its_time_while_its_engine_lives(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is lengthened, here when its time is over already; another process, which could have had it, is refused."""
    monkeypatch.setattr(lease_keeper, "RENEWALS", 600)
    one, two = make("one", 60.0), make("two", 60.0)
    ana = await person(one)
    await one.leases.hold(ana, ana)
    await one.database.write(lambda s: leases.release(s, fencing.person(ana), one.tokens.owner))
    assert await lease_of(one, ana) is None
    watching = asyncio.create_task(one.leases.watch())
    async with asyncio.timeout(PATIENCE_S):
        while await lease_of(one, ana) is None:  # noqa: ASYNC110  it tells nobody else
            await asyncio.sleep(0.01)
    watching.cancel()
    with pytest.raises(LeaseHeld):
        await two.leases.hold(ana, ana)


async def test_a_lease_that_another_took_is_noticed(make: Make) -> None:
    """The process slept past its end."""
    one, two = make("one", 0.1), make("two", 60.0)
    ana = await person(one)
    await one.leases.hold(ana, ana)
    await asyncio.sleep(0.2)
    await two.leases.hold(ana, ana)
    watching = asyncio.create_task(one.leases.watch())
    async with asyncio.timeout(PATIENCE_S):
        while one.leases.held:  # noqa: ASYNC110  it tells nobody else
            await asyncio.sleep(0.01)
    watching.cancel()
    assert one.told == [f"took {ana}", f"lost {ana}"]


async def test_a_process_is_sure_of_a_lease_until_it_ends(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its own clock, whether the database can be asked or not."""
    now_s = [0.0]
    monkeypatch.setattr(lease_keeper, "time", SimpleNamespace(monotonic=lambda: now_s[0]))
    one = make("one", 60.0)
    ana = await person(one)
    assert not one.leases.is_sure_of(ana)
    await one.leases.hold(ana, ana)
    assert one.leases.is_sure_of(ana)
    now_s[0] = 59.0
    assert one.leases.is_sure_of(ana)
    now_s[0] = 61.0
    assert not one.leases.is_sure_of(ana)
    await one.leases.renew()
    assert one.leases.is_sure_of(ana)


async def test_leases_of_two_kinds_do_not_meet(make: Make) -> None:
    """A platform that is called as a person is; it counts as no person."""
    one = make("one")
    ana = await person(one)
    platforms = LeaseKeeper(one.database, one.tokens, one._taken, one._lost, named=fencing.platform)
    await one.leases.hold(ana, ana)
    await platforms.hold(ana)
    assert await one.database.read(leases.people) == {ana}
    await platforms.let_go(ana)
    assert (one.leases.held, platforms.held) == ({ana}, set())
