"""bot.http.protocol.request_ids: every response has an id."""

import logging

import pytest

from tests.bot.conftest import Heed


@pytest.mark.parametrize("path", ["/healthz", "/v1/models", "/v1/nothing", "/"])
async def test_every_answer_has_one(heed: Heed, path: str) -> None:
    """Each response has an id of its own, errors and files included."""
    first, second = [(await heed.client.get(path)).headers["X-Request-Id"] for _ in range(2)]
    assert first.startswith("req_")
    assert first != second


@pytest.mark.parametrize("given", ["trace-1", "a" * 128, "0af7651916cd43dd:b7ad6b71"])
async def test_a_callers_own_is_kept(heed: Heed, given: str) -> None:
    """A caller's usable id is returned, so that a program finds its call in the log."""
    assert (await heed.client.get("/healthz", headers={"X-Request-Id": given})).headers["X-Request-Id"] == given


@pytest.mark.parametrize("given", ["", "a" * 129, "two words", "<b>", "übung"])
async def test_anything_else_is_not(heed: Heed, given: str) -> None:
    """An id that could break a log line or a page is replaced."""
    response = await heed.client.get("/healthz", headers={"X-Request-Id": given})
    assert response.headers["X-Request-Id"].startswith("req_")


async def test_the_log_names_it(heed: Heed, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """An unexpected error is logged with the id that the caller got."""

    async def fails(*_: object) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr(heed.core.gateway, "person", fails)
    with caplog.at_level(logging.ERROR, "bot.http.protocol.errors"):
        response = await heed.client.post("/v1/chat/completions", json={"messages": [{"role": "user", "content": "x"}]})
    assert response.status == 500
    assert response.headers["X-Request-Id"] in caplog.text
