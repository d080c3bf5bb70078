"""Learning that is paused or resumed at one gateway is so at every other one within seconds."""

from bot.core.lessons import PAUSED, LearningService
from storage import settings
from storage.database import Database

LOOK_EVERY_S = 2.0


class SharedPause:
    """Looks at what storage says of learning, and tells this gateway's lessons."""

    def __init__(self, database: Database, lessons: LearningService) -> None:
        self._database = database
        self._lessons = lessons

    async def look(self) -> None:
        """Once. Raises StorageError."""
        is_paused = bool(await self._database.read(lambda s: settings.get(s, PAUSED)))
        if is_paused != self._lessons.is_paused:
            await self._lessons.know_paused(is_paused, by_file=False)
