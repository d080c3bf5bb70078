"""bot.http.admin.engine: the timeline, the queue and the machine."""

import pytest

from tests.bot.http.admin.rig import Operator
from tests.bot.http.admin.taught import pupil


@pytest.mark.parametrize("minutes", [5, 15, 60, 360])
async def test_the_timeline_has_both(operator: Operator, minutes: int) -> None:
    """The timeline has a span for each answer and each update, beside slots, memory and times."""
    await pupil(operator.heed)
    page = await operator.text(f"/admin/engine?minutes={minutes}")
    assert page.count('class="decode"') == 2
    assert page.count('class="train"') == 1
    for words in ("Concurrent answers", "Whole answer", "Answers being written: 0 of 32", "GPU"):
        assert words in page


async def test_the_timeline_as_a_file(operator: Operator) -> None:
    """The CSV file has the begin and end of each span."""
    await pupil(operator.heed)
    lines = (await operator.text("/admin/engine?format=csv")).splitlines()
    assert [line.split(",")[0] for line in lines] == ["what", "decode", "decode", "train"]
