"""bot.membership: a gateway's place among others."""

import asyncio
from pathlib import Path

import pytest

from bot.config import Settings
from bot.errors import SettingsError
from bot.membership import Membership, database_url
from storage.errors import DatabaseLocked, LeaseHeld
from tests.storage.postgres_server import PostgresServer


def test_a_cluster_has_a_servers_database(tmp_path: Path) -> None:
    """A file's is one process's."""
    with pytest.raises(SettingsError, match="HEED_DATABASE_URL"):
        database_url(Settings(data_dir=tmp_path))


async def test_what_one_gateway_has_another_has_not(postgres: PostgresServer, tmp_path: Path) -> None:
    """Until it lets go; and no two have one name."""
    with postgres.database() as name:
        settings = Settings(data_dir=tmp_path, database_url=postgres.url(name))
        entered = [Membership("gateway-a"), Membership("gateway-b")]
        databases = [await asyncio.to_thread(member.enter, settings) for member in entered]
        with pytest.raises(DatabaseLocked, match="is called gateway-a"):
            await asyncio.to_thread(Membership("gateway-a").enter, settings)
        a, b = (member.leases(database) for member, database in zip(entered, databases, strict=True))
        await a.platforms.hold("telegram")
        await a.agent_works.hold("telegram")  # another kind of thing
        with pytest.raises(LeaseHeld):
            await b.platforms.hold("telegram")
        for task in a.periodic_tasks():
            await task.work()
        await a.release()
        await b.platforms.hold("telegram")
        for database in databases:
            await database.close()
