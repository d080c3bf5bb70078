"""bot.housekeeping.pause_file: the file that stops learning."""

from pathlib import Path

import pytest

from bot.core.lessons import LearningService
from bot.housekeeping.pause_file import PAUSE_FILE, PauseFile
from storage.errors import StorageFull
from tests.bot.conftest import Heed, StartHeed
from tests.patience import until


def file_of(heed: Heed) -> Path:
    """Where the file would lie."""
    return heed.core.settings.data_dir / PAUSE_FILE


def watching(heed: Heed) -> PauseFile:
    """What looks for it."""
    return PauseFile(file_of(heed), heed.core.lessons)


async def test_the_file_pauses_and_its_going_resumes(heed: Heed) -> None:
    """Corrections wait meanwhile, consolidations are held, and what waited is learned."""
    lessons, looks = heed.core.lessons, watching(heed)
    file_of(heed).touch()
    await looks.look()
    assert (lessons.is_paused, heed.engine.is_consolidation_paused) == (True, True)
    answer = await heed.ask("bees")
    assert (await heed.correct(answer["id"], "too long"))["status"] == "queued"
    file_of(heed).unlink()
    await looks.look()
    await until(lambda: not lessons.is_paused and heed.engine.num_learned == 1)
    assert not heed.engine.is_consolidation_paused


async def test_what_an_admin_paused_the_file_does_not_resume(heed: Heed) -> None:
    """It comes and goes, and learning stays paused."""
    await heed.core.lessons.pause()
    for act in (file_of(heed).touch, file_of(heed).unlink):
        act()
        await watching(heed).look()
        assert heed.core.lessons.is_paused


async def test_a_heed_that_starts_with_the_file_learns_nothing(heed: Heed, start_heed: StartHeed) -> None:
    """Not even what an earlier one left; and when the file is taken away while none runs, the next one resumes."""
    file_of(heed).touch()
    await watching(heed).look()
    later = (await start_heed()).core.lessons
    await PauseFile(file_of(heed), later).look()
    await later.start()
    assert (later.is_paused, later.is_paused_by_file) == (True, True)
    file_of(heed).unlink()
    last = (await start_heed()).core.lessons
    await last.start()
    await PauseFile(file_of(heed), last).look()
    assert not last.is_paused


async def test_resuming_by_command_needs_the_file_away(heed: Heed) -> None:
    """Or it would be paused again a second later; the answer says what to remove."""
    file_of(heed).touch()
    await watching(heed).look()
    status, body = await heed.post("/v1/users/local/commands", {"text": "/resume"})
    assert (status, PAUSE_FILE in body["error"]["message"]) == (400, True)
    assert heed.core.lessons.is_paused


async def test_a_look_that_fails_is_taken_again(heed: Heed, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk keeps it from being written down; the next look tries again."""

    async def full(_: LearningService, *, by_file: bool) -> None:
        raise StorageFull("no room")

    file_of(heed).touch()
    with monkeypatch.context() as patch:
        patch.setattr(LearningService, "pause", full)
        with pytest.raises(StorageFull):
            await watching(heed).look()
    await watching(heed).look()
    assert heed.core.lessons.is_paused
