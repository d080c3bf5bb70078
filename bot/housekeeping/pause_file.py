"""The emergency stop that needs no running command line: a file PAUSE in the data directory.

Owns the file's meaning: nothing is learned while it is there. Invariants: the file pauses within a second, also where
heed starts with it; taking it away resumes what the file paused and never what an admin did; only its being there
counts, not what it says.
"""

import asyncio
import logging
from pathlib import Path

from bot.core.lessons import LearningService

logger = logging.getLogger(__name__)

PAUSE_FILE = "PAUSE"
LOOK_EVERY_S = 1.0


class PauseFile:
    """Looks for the file, and pauses and resumes learning as it comes and goes."""

    def __init__(self, path: Path, lessons: LearningService) -> None:
        self._path = path
        self._lessons = lessons

    async def look(self) -> None:
        """Once. Raises StorageError."""
        is_there = await asyncio.to_thread(self._path.exists)
        if is_there and not self._lessons.is_paused:
            await self._lessons.pause(by_file=True)
            logger.warning("learning is paused as long as %s is there", self._path)
        elif not is_there and self._lessons.is_paused_by_file:
            await self._lessons.resume()
