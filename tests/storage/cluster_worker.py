"""Processes of a cluster that teach people until they are killed, and tell through a pipe what they did and saw.

Each takes a person's lease, allocates versions on the one that is active, "trains" for a while and accepts them; in
between it looks which version somebody has. Lines are `accept`, `accepted` or `saw`, then person, version and the time.

Two controls, without which the test has lost its power if it does not catch them: `teach_unfenced` takes leases, too,
but its sessions carry no tokens, so that a process which slept past its lease goes on; `teach_from_memory` tells which
version somebody has as it last saw it.
"""

import asyncio
import os
import random
import time

from storage import fencing, leases
from storage.database import Database
from storage.errors import LeaseHeld, LeaseLost, StorageError
from storage.fencing import Tokens
from storage.learning import versions
from storage.people import people

LEASE_S = 0.3
LONGEST_LESSON_S = 0.2
PAUSE_S = 0.01


def teach(url: str, member: str, user_ids: list[str], pipe: int) -> None:
    """Teach as a member of the cluster does."""
    tokens = _tokens(member)
    asyncio.run(_teach(Database.enter(url, member, tokens), tokens, user_ids, pipe))


def teach_unfenced(url: str, member: str, user_ids: list[str], pipe: int) -> None:
    """Teach with leases alone."""
    tokens = _tokens(member)
    database = Database.enter(url, member, tokens)
    database._writer._info.clear()
    asyncio.run(_teach(database, tokens, user_ids, pipe))


def teach_from_memory(url: str, member: str, user_ids: list[str], pipe: int) -> None:
    """Teach as a member does, and look up a person's version once."""
    tokens = _tokens(member)
    asyncio.run(_teach(Database.enter(url, member, tokens), tokens, user_ids, pipe, remembered={}))


def _tokens(member: str) -> Tokens:
    return Tokens(f"{member}/{os.getpid()}")


async def _teach(
    database: Database, tokens: Tokens, user_ids: list[str], pipe: int, remembered: dict[str, int] | None = None
) -> None:
    os.write(pipe, b"ready\n")
    while True:
        user_id = random.choice(user_ids)
        name = fencing.person(user_id)
        try:
            await _look(database, random.choice(user_ids), pipe, remembered)
            lease = await database.write(lambda s: leases.take(s, name, tokens.owner, LEASE_S, user_id))  # noqa: B023
            tokens.keep(name, lease.token)
            for _ in range(random.randint(1, 4)):
                await _lesson(database, user_id, pipe)
            await database.write(lambda s: leases.release(s, name, tokens.owner))  # noqa: B023
        except (LeaseHeld, LeaseLost):
            await asyncio.sleep(PAUSE_S)
        except StorageError as error:
            if not error.retryable:
                raise
        finally:
            tokens.drop(name)


async def _look(database: Database, user_id: str, pipe: int, remembered: dict[str, int] | None) -> None:
    begun_s = time.monotonic()
    number = (remembered or {}).get(user_id)
    if number is None:
        number = await database.read(lambda s: people.get(s, user_id).active_version)
    if remembered is not None:
        remembered[user_id] = number
    _tell(pipe, "saw", user_id, number, begun_s)


async def _lesson(database: Database, user_id: str, pipe: int) -> None:
    version = await database.write(
        lambda s: versions.allocate(s, user_id, people.get(s, user_id).active_version, "pocket", None, None)
    )
    await asyncio.sleep(random.uniform(0, LONGEST_LESSON_S))
    begun_s = time.monotonic()
    _tell(pipe, "accept", user_id, version.number, begun_s)
    await database.write(lambda s: versions.accept(s, user_id, version.number, "0", 1))
    _tell(pipe, "accepted", user_id, version.number, begun_s)


def _tell(pipe: int, what: str, user_id: str, number: int, begun_s: float) -> None:
    """Write a line at once; a pipe takes a short one whole or not at all. Times are of the machine's one clock."""
    os.write(pipe, f"{what} {user_id} {number} {begun_s} {time.monotonic()}\n".encode())
