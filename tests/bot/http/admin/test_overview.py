"""bot.http.admin.overview: counts, health and the newest updates."""

from tests.bot.http.admin.rig import Operator
from tests.bot.http.admin.taught import pupil


async def test_figures_parts_and_the_newest_updates(operator: Operator) -> None:
    """The overview has today's counts, the health of each part, and a link to each update."""
    known = await pupil(operator.heed)
    page = await operator.text("/admin")
    assert '2 <span class="soft">today' in page
    assert "1 in 7 days, 1 in total" in page
    assert f"/admin/updates/{known.update_id}" in page
    assert "<span>trainer</span>" in page
    assert "Learning is on." in page
    operator.heed.engine.is_ready = False
    assert "starting" in await operator.text("/admin")


async def test_the_days_as_a_file(operator: Operator) -> None:
    """The CSV file has fourteen days, the last one today."""
    await pupil(operator.heed)
    lines = (await operator.text("/admin?format=csv")).splitlines()
    assert (lines[0], len(lines)) == ("day,answers,feedback,updates", 15)
    assert lines[-1].endswith(",2,1,1")
