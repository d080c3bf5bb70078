"""bot.http.protocol.errors: every failure is a status and one kind of body."""

import logging

import pytest

from engine.errors import EngineDown
from storage.errors import DatabaseBusy, StorageBroken, StorageFull
from tests.bot.conftest import Heed


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/nowhere", 404), ("GET", "/v1/feedback", 405), ("DELETE", "/", 405), ("GET", "/static/none.js", 404),
     ("GET", "/static/../config.py", 404), ("GET", "/static/%2e%2e/auth.py", 404), ("GET", "/static/", 404)],
)  # fmt: skip
async def test_wrong_paths_have_the_error_body(heed: Heed, method: str, path: str, status: int) -> None:
    """404 and 405 come as JSON, and static files cannot leave their folder."""
    response = await heed.client.request(method, path)
    assert response.status == status
    assert set((await response.json())["error"]) == {"type", "message", "param", "code"}


async def test_the_unexpected_is_a_500_without_a_trace(heed: Heed, caplog: pytest.LogCaptureFixture) -> None:
    """An unexpected error is in the log and the metrics, and its body tells nothing of the code."""
    heed.engine.failure = ZeroDivisionError("/secret/path.py line 3")
    with caplog.at_level(logging.ERROR):
        status, body = await heed.post("/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}]})
    assert (status, body["error"]["type"]) == (500, "server_error")
    assert "secret" not in str(body)
    assert "ZeroDivisionError" in caplog.text
    assert 'heed_unexpected_errors_total{edge="http"} 1.0' in heed.core.metrics.render().decode()


@pytest.mark.parametrize(("failure", "status"), [(DatabaseBusy("a long read"), 503), (StorageBroken("the disk"), 500)])
async def test_storage_errors_say_what_to_do(heed: Heed, failure: Exception, status: int) -> None:
    """A storage error's own message reaches the person; a passing error is 503."""
    heed.engine.failure = failure
    got, body = await heed.post("/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}]})
    assert (got, body["error"]["message"]) == (status, str(failure))


@pytest.mark.parametrize(
    "failure",
    [
        StorageFull("no space to write /srv/heed/data/heed.db-wal (No space left on device)"),
        EngineDown("The model process died 7 times within 600 s. See /srv/heed/data/logs/vllm.log and restart heed."),
    ],
)
async def test_no_path_of_the_server_is_told(heed: Heed, failure: Exception) -> None:
    """A caller reads what happened, and to which file."""
    heed.engine.failure = failure
    status, body = await heed.post("/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}]})
    assert status == 503
    assert "/srv" not in body["error"]["message"]
    assert body["error"]["message"].startswith(str(failure)[:12])


async def test_a_long_path_is_not_repeated_in_full(heed: Heed) -> None:
    """The message quotes at most 200 characters of it."""
    _, body = await heed.get("/" + "x" * 3000)
    assert len(body["error"]["message"]) < 300
