"""bot.http.admin.evals: a run is uploaded as its summary.json, and drawn."""

import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from storage.reports import eval_runs
from tests.bot.http.admin.rig import Operator

RESULT = Path(__file__).parents[4] / "evals" / "results" / "2026-11-22-learning.json"


async def hand_over(operator: Operator, content: bytes) -> aiohttp.ClientResponse:
    """Upload a file as the form does."""
    form = aiohttp.FormData()
    form.add_field("csrf", operator.csrf)
    form.add_field("summary", content, filename="summary.json")
    return await operator.post("/admin/evals", form)  # type: ignore[arg-type]


async def test_a_run_is_taken_in_and_drawn(operator: Operator) -> None:
    """An uploaded run shows each figure's arms; two runs make a trend; both are in the CSV files."""
    content = RESULT.read_bytes()
    response = await hand_over(operator, content)
    assert response.status == 303
    page = await operator.text(response.headers["Location"])
    assert "six in a row: held at the end" in page
    assert page.count("<rect") >= 20
    assert "<polyline" not in await operator.text("/admin/evals")
    await hand_over(operator, content)
    assert "<polyline" in await operator.text("/admin/evals")
    one = len((await operator.text(f"{response.headers['Location']}?format=csv")).splitlines())
    assert len((await operator.text("/admin/evals?format=csv")).splitlines()) == 2 * one - 1


GOOD: dict[str, Any] = {"config": {}, "figures": [{"name": "a", "unit": "%", "median": {"w": 1.0}, "worst": {"w": 1}}]}


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"{}", b"\xff", b"nothing", b"[" * 100_000,
     json.dumps(GOOD | {"config": []}).encode(), json.dumps(GOOD | {"figures": [{}]}).encode(),
     json.dumps(GOOD | {"figures": 1}).encode(), json.dumps(GOOD).replace("1.0", '"1"').encode(),
     json.dumps(GOOD).replace("1.0", "NaN").encode(), json.dumps(GOOD).replace('"a"', "1").encode()],
)  # fmt: skip
async def test_what_is_no_summary_is_refused(operator: Operator, content: bytes) -> None:
    """A file that is no summary is refused and not stored."""
    assert (await hand_over(operator, content)).status == 400
    assert await operator.heed.core.database.read(lambda s: eval_runs.recent(s, 9)) == []


async def test_the_least_that_is_one_is_taken_in(operator: Operator) -> None:
    """The smallest valid summary is stored: the control of the test above."""
    response = await hand_over(operator, json.dumps(GOOD).encode())
    assert "<h3>a</h3>" in await operator.text(response.headers["Location"])
