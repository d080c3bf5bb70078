"""bot.monitoring.logs: what a line of the log looks like, and which call it is about."""

import asyncio
import json
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from bot.monitoring import logs
from tests.bot.conftest import Heed

Lines = Callable[[], list[str]]


@pytest.fixture
def lines(capsys: pytest.CaptureFixture[str]) -> Iterator[Lines]:
    """What is written to standard error from now on; afterwards the root logger is as it was."""
    level, handlers = logging.root.level, list(logging.root.handlers)
    yield lambda: capsys.readouterr().err.splitlines()
    logging.root.setLevel(level)
    for handler in [handler for handler in logging.root.handlers if handler not in handlers]:
        logging.root.removeHandler(handler)


async def test_a_call_is_one_object_with_its_id(heed: Heed, lines: Lines) -> None:
    """By route: neither the person in the path nor what was said is in the line."""
    logs.begin("info", "json")
    await heed.ask("secret bees", user="ana-maria")
    response = await heed.client.get("/v1/users/ana-maria/notes")
    told: list[dict[str, Any]] = [json.loads(line) for line in lines()]
    (noted,) = [line for line in told if line["message"].startswith("GET /v1/users/{user}/notes: 200 in ")]
    assert noted["request_id"] == response.headers["X-Request-Id"]
    assert (noted["level"], noted["logger"], noted["timestamp"][-6:]) == ("INFO", "bot.http.protocol.errors", "+00:00")
    ours = [str(line) for line in told if line["logger"] != "aiohttp.access"]  # the test server's; heed has it off
    assert [line for line in ours if "ana-maria" in line or "bees" in line] == []


async def test_what_a_call_begins_goes_on_under_its_id(lines: Lines) -> None:
    """A task that outlives the call; what nobody called for has none."""

    async def later() -> None:
        await asyncio.sleep(0)
        logging.getLogger("x").warning("later")

    logs.begin("warning", "json")
    with logs.call("req_1"):
        task = asyncio.create_task(later())
    await task
    logging.getLogger("x").warning("nobody's")
    assert [json.loads(line).get("request_id") for line in lines()] == ["req_1", None]


def test_an_error_is_one_line(lines: Lines) -> None:
    """With its traceback."""
    logs.begin("warning", "json")
    logging.getLogger("x").error("it failed", exc_info=ValueError("two\nlines"))
    (line,) = lines()
    assert "ValueError: two\nlines" in json.loads(line)["exc_info"]


def test_for_people_it_is_text(lines: Lines) -> None:
    """Level, logger, message."""
    logs.begin("warning", "text")
    logging.getLogger("x").info("too little")
    logging.getLogger("x").warning("beware of %s", "llamas")
    assert lines() == ["WARNING x: beware of llamas"]


def test_what_strangers_can_cause_is_a_line_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    """The first at once, the next after a minute, with the number of those in between."""
    now = [100.0]
    sparing = logs.Sparing(logging.getLogger("test"), lambda: now[0])
    for now[0] in (100.0, 101.0, 159.0, 160.0, 161.0, 220.0):
        sparing.warning("a %s", "thing")
    assert caplog.messages == ["a thing", "a thing (and 2 more like it)", "a thing (and 1 more like it)"]
