"""bot.core.core: every service of one heed, built once."""

from bot.core.core import Core
from bot.events import Author
from tests.bot.conftest import Heed


async def test_services_share_one_database(heed: Heed) -> None:
    """A person that the gateway makes is known to every other service, and each core has services of its own."""
    core = heed.core
    user_id = await core.gateway.person(Author("telegram", "5", "Ana"))
    other = Core.build(core.settings, core.database, core.engine, core.metrics)
    assert await core.consent.needs_greeting(user_id) == await other.consent.needs_greeting(user_id)
    assert (other.gateway is core.gateway, other.access is core.access, other.keys is core.keys) == (False,) * 3
