"""bot.platforms.telegram.webhook: Telegram's calls to heed."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from bot.platforms.telegram.arrivals import Arrivals
from bot.platforms.telegram.webhook import BODY_LIMIT_BYTES, SECRET_HEADER, Webhook
from storage.errors import StorageError
from tests.bot.platforms.telegram_bench import SECRET, WEBHOOK, Taken
from tests.contract.telegram_server import ANA, Json, private

PATH = "/telegram/updates"
HEADERS = {SECRET_HEADER: SECRET}
UPDATE: Json = {
    "update_id": 7,
    "message": {"message_id": 1, "date": 1, "chat": private(ANA), "from": ANA, "text": "bees?"},
}

Client = TestClient[web.Request, web.Application]


@pytest.fixture
def taken() -> Taken:
    """An inbox."""
    return Taken()


@pytest.fixture
async def client(taken: Taken) -> AsyncIterator[Client]:
    """An HTTP server with the webhook alone."""
    app = web.Application()
    app.add_routes(Webhook(WEBHOOK, SECRET, Arrivals("123", "heed_bot", taken.take).take_all).routes())
    async with TestClient(TestServer(app)) as client:
        yield client


async def test_an_update_is_taken(client: Client, taken: Taken) -> None:
    """200 says that it is committed."""
    answer = await client.post(PATH, json=UPDATE, headers=HEADERS)
    assert answer.status == 200
    assert taken.texts == ["bees?"]


async def test_nothing_is_answered_before_the_commit(client: Client, taken: Taken) -> None:
    """Telegram keeps the update until then."""
    taken.gate.clear()
    calling = asyncio.create_task(client.post(PATH, json=UPDATE, headers=HEADERS))
    await taken.until(lambda: taken.num_calls)
    assert not calling.done()
    taken.gate.set()
    assert (await calling).status == 200


async def test_what_was_not_committed_is_brought_again(client: Client, taken: Taken) -> None:
    """503, not 200."""
    taken.problem = StorageError("disk full")
    assert (await client.post(PATH, json=UPDATE, headers=HEADERS)).status == 503
    taken.problem = None
    assert (await client.post(PATH, json=UPDATE, headers=HEADERS)).status == 200


async def test_a_replay_is_taken_once(client: Client, taken: Taken) -> None:
    """However often it is called."""
    for _ in range(20):
        assert (await client.post(PATH, json=UPDATE, headers=HEADERS)).status == 200
    assert taken.texts == ["bees?"]


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {SECRET_HEADER: ""},
        {SECRET_HEADER: "wrong"},
        {SECRET_HEADER: SECRET[:-1]},
        {SECRET_HEADER: SECRET + "x"},
        {SECRET_HEADER: SECRET.upper()},
        {SECRET_HEADER: "gehöim"},
        {SECRET_HEADER: "x" * 7000},
    ],
)
async def test_a_forged_call_is_refused(client: Client, taken: Taken, headers: dict[str, str]) -> None:
    """Before its body is read."""
    answer = await client.post(PATH, data=endless(), headers={"Content-Type": "application/json", **headers})
    assert answer.status == 403
    assert taken.num_calls == 0


async def endless() -> AsyncIterator[bytes]:
    """A body that never ends."""
    while True:
        yield b" " * 1024
        await asyncio.sleep(0.001)


async def test_a_body_that_is_too_long_is_refused(client: Client) -> None:
    """Whether it says how long it is or not."""
    headers = {"Content-Type": "application/json", **HEADERS}
    long = json.dumps({**UPDATE, "padding": "x" * BODY_LIMIT_BYTES}).encode()
    assert (await client.post(PATH, data=long, headers=headers)).status == 413
    assert (await client.post(PATH, data=endless(), headers=headers)).status == 413


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"{}", b'{"update_id": "7"}', b"[" * 100_000, b"\xff\xfe"])
async def test_a_malformed_body_is_refused(client: Client, taken: Taken, body: bytes) -> None:
    """It is not JSON, or no update."""
    answer = await client.post(PATH, data=body, headers={"Content-Type": "application/json", **HEADERS})
    assert answer.status == 400
    assert taken.num_calls == 0


async def test_another_type_is_refused(client: Client) -> None:
    """Telegram sends JSON; it may say in which character set."""
    body = json.dumps(UPDATE)
    text = {"Content-Type": "text/plain", **HEADERS}
    named = {"Content-Type": "application/json; charset=utf-8", **HEADERS}
    assert (await client.post(PATH, data=body, headers=text)).status == 415
    assert (await client.post(PATH, data=body, headers=named)).status == 200


async def test_it_serves_the_path_of_its_address() -> None:
    """And the root where the address has none."""

    async def take_all(_: object) -> None: ...

    assert [route.path for route in Webhook(WEBHOOK, SECRET, take_all).routes()] == [PATH]
    assert [route.path for route in Webhook("https://heed.example", SECRET, take_all).routes()] == ["/"]
