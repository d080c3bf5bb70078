"""bot.pausing: the file that stops learning."""

from pathlib import Path

import pytest

from bot.lessons import Lessons
from bot.pausing import PAUSE_FILE, PauseFile
from storage.errors import StorageFull
from tests.bot.conftest import Heed, StartHeed
from tests.patience import until


def file_of(heed: Heed) -> Path:
    """Where the file would lie."""
    return heed.services.settings.data_dir / PAUSE_FILE


def watching(heed: Heed) -> PauseFile:
    """What looks for it."""
    return PauseFile(file_of(heed), heed.services.lessons, look_every_s=0.01)


async def test_the_file_pauses_and_its_going_resumes(heed: Heed) -> None:
    """Corrections wait meanwhile, consolidations are held, and what waited is learned."""
    looks = watching(heed)
    looks.start()
    file_of(heed).touch()
    lessons = heed.services.lessons
    await until(lambda: lessons.is_paused)
    assert heed.engine.is_consolidation_paused
    answer = await heed.ask("bees")
    assert (await heed.correct(answer["id"], "too long"))["status"] == "queued"
    file_of(heed).unlink()
    await until(lambda: not lessons.is_paused and heed.engine.num_learned == 1)
    assert not heed.engine.is_consolidation_paused
    await looks.stop()


async def test_what_an_admin_paused_the_file_does_not_resume(heed: Heed) -> None:
    """It comes and goes, and learning stays paused."""
    await heed.services.lessons.pause()
    for act in (file_of(heed).touch, file_of(heed).unlink):
        act()
        await watching(heed).look()
        assert heed.services.lessons.is_paused


async def test_a_heed_that_starts_with_the_file_learns_nothing(heed: Heed, start_heed: StartHeed) -> None:
    """Not even what an earlier one left; and when the file is taken away while none runs, the next one resumes."""
    file_of(heed).touch()
    await watching(heed).look()
    later = (await start_heed()).services.lessons
    await PauseFile(file_of(heed), later).look()
    await later.start()
    assert (later.is_paused, later.is_paused_by_file) == (True, True)
    file_of(heed).unlink()
    last = (await start_heed()).services.lessons
    await last.start()
    await PauseFile(file_of(heed), last).look()
    assert not last.is_paused


async def test_resuming_by_command_needs_the_file_away(heed: Heed) -> None:
    """Or it would be paused again a second later; the answer says what to remove."""
    file_of(heed).touch()
    await watching(heed).look()
    status, body = await heed.post("/v1/users/local/commands", {"text": "/resume"})
    assert (status, PAUSE_FILE in body["error"]["message"]) == (422, True)
    assert heed.services.lessons.is_paused


async def test_a_look_that_fails_is_not_the_last(heed: Heed, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk keeps it from being written down; the next look tries again."""
    looks, real = [0], Lessons.pause

    async def full(self: Lessons, *, by_file: bool = False) -> None:
        looks[0] += 1
        if looks[0] == 1:
            raise StorageFull("no room")
        await real(self, by_file=by_file)

    monkeypatch.setattr(Lessons, "pause", full)
    watch = watching(heed)
    file_of(heed).touch()
    watch.start()
    await until(lambda: heed.services.lessons.is_paused)
    await watch.stop()
    assert looks == [2]
