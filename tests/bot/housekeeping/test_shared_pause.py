"""bot.housekeeping.shared_pause: learning that another gateway pauses or resumes."""

from bot.core.lessons import PAUSED
from bot.housekeeping.shared_pause import SharedPause
from storage import settings
from tests.bot.conftest import Heed


async def test_a_pause_of_another_gateway_is_heard(heed: Heed) -> None:
    """And its end; what waits is begun by the gateway that resumed."""
    database, lessons = heed.core.database, heed.core.lessons
    pause = SharedPause(database, lessons)
    await pause.look()
    assert not lessons.is_paused
    await database.write(lambda s: settings.put(s, PAUSED, True))
    await pause.look()
    assert (lessons.is_paused, lessons.is_paused_by_file) == (True, False)
    await database.write(lambda s: settings.remove(s, PAUSED))
    await pause.look()
    assert not lessons.is_paused
