"""bot.http.admin.engine: when heed wrote and trained, what waits, what it uses."""

import pytest

from tests.bot.http.admin.rig import Operator
from tests.bot.http.admin.taught import pupil


@pytest.mark.parametrize("minutes", [5, 15, 60, 360])
async def test_the_timeline_has_both(operator: Operator, minutes: int) -> None:
    """A span for each answer and each update; slots, memory and times beside it."""
    await pupil(operator.heed)
    page = await operator.text(f"/admin/engine?minutes={minutes}")
    assert page.count('class="decode"') == 2
    assert page.count('class="train"') == 1
    for words in ("Concurrent answers", "Whole answer", "Answers being written: 0 of 32", "GPU"):
        assert words in page


async def test_the_timeline_as_a_file(operator: Operator) -> None:
    """Begin and end of each span."""
    await pupil(operator.heed)
    lines = (await operator.text("/admin/engine?format=csv")).splitlines()
    assert [line.split(",")[0] for line in lines] == ["what", "decode", "decode", "train"]
