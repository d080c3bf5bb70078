"""bot.http.api.health: liveness, readiness and metrics."""

import asyncio
import shutil
import time
from types import SimpleNamespace
from typing import Any

import pytest

from bot.http.api import health
from bot.http.api.health import LOW_BYTES
from engine.requests import ModelLearning
from tests.bot.conftest import Heed, StartHeed
from tests.storage.postgres_server import PostgresServer


async def test_alive_also_while_loading(heed: Heed) -> None:
    """/healthz is 200 as soon as the event loop runs, /readyz only when the engine is ready."""
    heed.engine.is_ready = False
    assert (await heed.client.get("/healthz")).status == 200
    status, body = await heed.get("/readyz")
    assert (status, body["status"], body["parts"]["model"]) == (503, "not ready", "starting")


async def test_a_model_that_is_not_trained_is_ready_and_says_so(heed: Heed) -> None:
    """A quantised model answers; /readyz has the reason why it does not learn, and if its rates were measured."""
    assert (await heed.get("/readyz"))[1]["learning"] == {"is_on": True, "reason": "", "is_calibrated": False}
    heed.engine.learning = ModelLearning("This model is quantised (AWQ).", is_measured=True)
    status, body = await heed.get("/readyz")
    assert (status, body["status"]) == (200, "ready")
    assert body["learning"] == {"is_on": False, "reason": "This model is quantised (AWQ).", "is_calibrated": False}


async def test_ready_with_every_part(heed: Heed) -> None:
    """/readyz is 200 with the model's name and each part's state."""
    status, body = await heed.get("/readyz")
    assert (status, body["model"], set(body["parts"].values())) == (200, "pocket", {"ok"})


@pytest.mark.parametrize(
    ("free_bytes", "state", "status"), [(0, "low: 0 MiB free", "degraded"), (LOW_BYTES, "ok", "ready")]
)
async def test_a_disk_that_is_nearly_full_is_told(
    heed: Heed, monkeypatch: pytest.MonkeyPatch, free_bytes: int, state: str, status: str
) -> None:
    """A nearly full disk is reported by /readyz and /metrics while heed still answers."""
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: SimpleNamespace(free=free_bytes))
    code, body = await heed.get("/readyz")
    assert (code, body["status"], body["parts"]["disk"]) == (200, status, state)
    text = await (await heed.client.get("/metrics")).text()
    assert f'heed_part_up{{part="disk"}} {float(state == "ok")}' in text


async def test_no_path_of_the_server_is_told(heed: Heed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Anyone may ask for the health."""
    state = "down: the model process died 7 times. See /srv/heed/data/logs/vllm.log and restart heed."
    monkeypatch.setattr(heed.engine, "health", lambda: {"model": state})
    assert (await heed.get("/readyz"))[1]["parts"]["model"] == state.replace("/srv/heed/data/logs/", "")
    assert "/srv" not in await (await heed.client.get("/v1/health")).text()


async def test_a_data_directory_that_is_gone_is_told(heed: Heed, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing data directory is reported as down."""

    def gone(_folder: object) -> None:
        raise FileNotFoundError

    monkeypatch.setattr(shutil, "disk_usage", gone)
    assert (await heed.get("/readyz"))[1]["parts"]["disk"] == "down: the data directory cannot be reached"


async def test_a_database_that_is_gone_is_told(start_heed: StartHeed, postgres: PostgresServer) -> None:
    """While the database is away heed is alive but not ready, and recovers when it is back."""
    with postgres.database() as name:
        heed = await start_heed(database_url=postgres.url(name))
        assert (await heed.get("/readyz"))[1]["parts"]["database"] == "ok"
        assert 'heed_part_up{part="database"} 1.0' in await (await heed.client.get("/metrics")).text()
        await asyncio.to_thread(postgres.stop)
        status, body = await heed.get("/readyz")
        assert (status, body["status"], body["parts"]["database"]) == (503, "not ready", "down: DatabaseLost")
        assert (await heed.client.get("/healthz")).status == 200
        assert 'heed_part_up{part="database"} 0.0' in await (await heed.client.get("/metrics")).text()
        call = {"messages": [{"role": "user", "content": "x"}]}
        response = await heed.client.post("/v1/chat/completions", json=call)
        assert (response.status, "Retry-After" in response.headers) == (503, True)
        await asyncio.to_thread(postgres.start)
        assert (await heed.get("/readyz"))[0] == 200
        assert (await heed.post("/v1/chat/completions", call))[0] == 200


async def test_a_database_that_does_not_answer_is_told(heed: Heed, monkeypatch: pytest.MonkeyPatch) -> None:
    """heed is not ready then; nothing is left that still waits for it."""
    waiting: list[asyncio.Task[Any] | None] = []

    async def never(_work: object) -> None:
        waiting.append(asyncio.current_task())
        await asyncio.Event().wait()

    monkeypatch.setattr(heed.core.database, "read", never)
    monkeypatch.setattr(health, "LOOK_S", 0.01)
    status, body = await heed.get("/readyz")
    assert (status, body["parts"]["database"]) == (503, "down: no answer")
    assert [task is not None and task.cancelled() for task in waiting] == [True]


async def test_a_process_that_stood_still_calls_no_database_slow(heed: Heed, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer that came meanwhile counts, however long that was."""
    read = heed.core.database.read

    async def read_beside_a_halt(work: Any) -> Any:
        asyncio.get_running_loop().call_soon(time.sleep, 1.1 * health.NUM_LOOKS * health.LOOK_S)
        return await read(work)

    monkeypatch.setattr(heed.core.database, "read", read_beside_a_halt)
    monkeypatch.setattr(health, "LOOK_S", 0.2)
    status, body = await heed.get("/readyz")
    assert (status, body["parts"]["database"]) == (200, "ok")


async def test_while_loading_calls_say_when_to_come_back(heed: Heed) -> None:
    """A chat call before the engine is ready is 503 with Retry-After."""
    heed.engine.is_ready = False
    response = await heed.client.post("/v1/chat/completions", json={"messages": [{"role": "user", "content": "x"}]})
    assert (response.status, response.headers["Retry-After"]) == (503, "5")


async def test_what_happened_is_counted(heed: Heed) -> None:
    """/metrics counts answers, tokens, feedback, updates and requests, without people and texts."""
    first = await heed.ask("secret bees", user="ana-maria")
    await heed.correct(first["id"], "far too long", user="ana-maria")
    text = await (await heed.client.get("/metrics")).text()
    for line in (
        'heed_answers_total{finish_reason="stop"} 1.0',
        'heed_feedback_total{kind="correction"} 1.0',
        'heed_lessons_total{status="learned"} 1.0',
        'heed_http_requests_total{route="/v1/feedback",status="200"} 1.0',
        'heed_part_up{part="model"} 1.0',
    ):
        assert line in text
    assert not any(word in text for word in ("ana-maria", "secret", "far too"))


async def test_unknown_paths_are_one_route(heed: Heed) -> None:
    """Requests for unknown paths share one series."""
    for path in ("/a", "/b", "/v1/users/x/y/z"):
        await heed.client.get(path)
    text = await (await heed.client.get("/metrics")).text()
    assert 'heed_http_requests_total{route="none",status="404"} 3.0' in text


async def test_claas_health_says_whether_its_worker_works(heed: Heed) -> None:
    """CLaaS's health is always 200 and tells the state of the worker."""
    for path in ("/health", "/v1/health"):
        assert await heed.get(path) == (200, {"status": "healthy", "worker": {"status": "healthy", "error": None}})
    heed.engine.is_ready = False
    status, found = await heed.get("/v1/health")
    assert (status, found["status"], found["worker"]["status"]) == (200, "degraded", "unhealthy")
    assert "model" in found["worker"]["error"]
