"""One gateway's place among the others of a cluster: its name in the database, and the leases it may hold."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bot.config import Settings
from bot.errors import SettingsError
from bot.housekeeping.periodic import PeriodicTask
from storage import fencing
from storage.database import Database
from storage.fencing import Tokens
from storage.lease_keeper import LeaseKeeper
from storage.tables import new_id

NEEDS_SERVER = "A cluster needs HEED_DATABASE_URL=postgresql://..., one database for all of its processes."


def database_url(settings: Settings) -> str:
    """Return the address of the cluster's database. Raises SettingsError if there is none."""
    if not settings.database_url:
        raise SettingsError(NEEDS_SERVER)
    return settings.database_url


class Membership:
    """A gateway that is there once under its name."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._tokens = Tokens(f"{name}/{new_id()}")  # one that comes back under the name is another owner

    def enter(self, settings: Settings) -> Database:
        """Enter the cluster's database. Blocking. Raises as Database.enter."""
        return Database.enter(database_url(settings), self.name, self._tokens)

    def leases(self, database: Database) -> "GatewayLeases":
        """Return the leases that the gateway may hold."""

        def keeper(named: Callable[[str], str]) -> LeaseKeeper:
            return LeaseKeeper(database, self._tokens, _taken, _lost, named=named)

        return GatewayLeases(keeper(fencing.platform), keeper(fencing.agent_work))


@dataclass(frozen=True)
class GatewayLeases:
    """The leases of one gateway, on chat platforms by name and on agents' sessions by id."""

    platforms: LeaseKeeper
    agent_works: LeaseKeeper

    def periodic_tasks(self) -> Iterator[PeriodicTask]:
        """Yield what lengthens them."""
        yield PeriodicTask("lengthening leases on platforms", self.platforms.renew, self.platforms.renewal_s)
        yield PeriodicTask("lengthening leases on sessions", self.agent_works.renew, self.agent_works.renewal_s)

    async def release(self) -> None:
        """End all of them."""
        await self.platforms.release()
        await self.agent_works.release()


async def _taken(_key: str) -> None:
    """Go on with nothing: the one who asked for the lease does."""


def _lost(_key: str) -> None:
    """Forget nothing: the one who holds the lease looks."""
