"""bot.http.protocol.connections: bounds and deadlines of connections."""

import asyncio
import json
from dataclasses import replace

import pytest

from bot.config import HttpSettings
from bot.http.protocol import connections
from bot.http.protocol.connections import HELD_BYTES, OWN_FILES, ConnectionLimits
from tests.bot.conftest import StartHeed
from tests.bot.http.served import GET, HALF, Raw, served
from tests.patience import PATIENCE_S, until

SLOW_POST = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 400\r\n\r\n{"


async def test_a_half_sent_head_is_not_waited_for(start_heed: StartHeed) -> None:
    """A client that begins a request and does not end it is let go, as one that sends nothing."""
    async with served(start_heed, client_timeout_s=0.1) as heed:
        for raw in [await heed.connect(HALF), await heed.connect()]:
            assert await raw.ended()


async def test_aiohttp_hears_of_whole_heads_only(start_heed: StartHeed, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that dribbles a head makes no handler before its end, and is answered then."""
    async with served(start_heed) as heed:
        made, make = list[object](), heed.connections._make_handler
        monkeypatch.setattr(heed.connections, "_make_handler", lambda: made.append(make()) or made[-1])
        raw = await heed.connect(GET[:1])
        await until(lambda: heed.connections._all.number == 1)
        for place in range(1, len(GET)):
            assert made == []
            await raw.send(GET[place : place + 1])
            await asyncio.sleep(0)
        assert await raw.whole_answer() == 200
        assert len(made) == 1


@pytest.mark.parametrize(
    ("head", "is_begun"),
    [
        (HALF, False),
        (GET, True),
        (GET + HALF, True),
        (GET.replace(b"\r", b""), True),
        (HALF + b"a" * HELD_BYTES, True),
        (b"\x16\x03\x01", True),
        (b"\r\n", True),
    ],
)
def test_what_aiohttp_begins_with(head: bytes, is_begun: bool) -> None:
    """A whole head, one too long to be held, and bytes that begin no request."""
    assert connections.is_for_handler(head) == is_begun


async def test_clients_that_wait_do_not_keep_heed_from_ending(start_heed: StartHeed) -> None:
    """At heed's end their connections are closed, whatever of a request they have sent."""
    async with served(start_heed) as heed:
        raws = [await heed.connect(HALF), await heed.connect(), await heed.connect(GET)]
        assert await raws[-1].whole_answer() == 200
        heed.connections.end_waiting()
        assert [await raw.ended() for raw in raws] == [True] * 3


async def test_a_body_that_does_not_come_is_refused(start_heed: StartHeed) -> None:
    """A request whose body stops half-way is answered with 408."""
    async with served(start_heed, client_timeout_s=0.1) as heed:
        heed.connections.limits = replace(heed.connections.limits, timeout_s=PATIENCE_S)  # the head has come
        raw = await heed.connect(SLOW_POST)
        assert await raw.status() == 408


async def test_an_answer_may_take_longer_than_its_request(
    start_heed: StartHeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once the body is there, the deadlines are over, those of the head and of the body."""
    deadlines, wait = list[asyncio.TimerHandle](), connections.Connection._wait

    def noted(connection: connections.Connection) -> None:
        wait(connection)
        assert connection._deadline is not None
        deadlines.append(connection._deadline)

    monkeypatch.setattr(connections.Connection, "_wait", noted)
    async with served(start_heed, client_timeout_s=1.0) as heed:
        heed.connections.limits = replace(heed.connections.limits, timeout_s=PATIENCE_S)
        heed.heed.engine.token_delay_s, heed.heed.engine.hold_at = 0.05, -1
        body = json.dumps({"messages": [{"role": "user", "content": "bees"}]}).encode()
        head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
        raw = await heed.connect(head.encode() + body[:5])
        await raw.send(body[5:])
        await until(lambda: heed.connections.num_busy)
        assert [deadline.cancelled() for deadline in deadlines] == [True]
        heed.heed.engine.go_on()
        assert await raw.whole_answer() == 200


async def test_a_client_that_reads_nothing_is_let_go(start_heed: StartHeed) -> None:
    """An answer that nobody takes ends with its connection."""
    async with served(start_heed, client_timeout_s=0.1) as heed:
        raw = await heed.connect()
        raw.writer.transport.pause_reading()  # type: ignore[attr-defined]
        asked = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 30
        with pytest.raises(ConnectionError):
            async with asyncio.timeout(PATIENCE_S):
                await _send_for_ever(raw, asked)


async def _send_for_ever(raw: Raw, data: bytes) -> None:
    while True:
        await raw.send(data)
        await asyncio.sleep(0)


async def test_new_connections_take_the_place_of_idle_ones(start_heed: StartHeed) -> None:
    """Those that never sent a request go first, then those between two requests; the oldest first."""
    async with served(start_heed, max_connections=3) as heed:
        kept = await heed.connect(GET)
        assert await kept.whole_answer() == 200
        halves = [await heed.connect(HALF) for _ in range(2)]
        for _ in range(2):
            newer = await heed.connect(GET)
            assert await newer.whole_answer() == 200
        assert [await half.ended() for half in halves] == [True, True]
        await kept.send(GET)
        assert await kept.whole_answer() == 200


async def test_a_running_request_keeps_its_connection(start_heed: StartHeed) -> None:
    """Where every connection is busy the new one is closed, and said so once in the log."""
    async with served(start_heed, max_connections=1) as heed:
        slow = await heed.connect(SLOW_POST)
        await until(lambda: heed.connections.num_busy)
        assert await (await heed.connect(GET)).ended()
        await slow.send(b" " * 399)
        assert await slow.status() == 400


@pytest.mark.parametrize(("proxies", "is_bounded"), [((), True), (("127.0.0.0/8",), False)])
async def test_an_address_has_its_share(start_heed: StartHeed, proxies: tuple[str, ...], is_bounded: bool) -> None:
    """One address cannot hold all connections; a proxy, behind which are many, can."""
    limits = {"max_connections_per_address": 1, "trusted_proxies": proxies}
    async with served(start_heed, **limits) as heed:
        first, second = await heed.connect(HALF), await heed.connect(GET)
        assert await second.whole_answer() == 200
        if is_bounded:
            assert await first.ended()
        else:
            await first.send(b"alhost\r\n\r\n")
            assert await first.whole_answer() == 200


def test_heed_keeps_descriptors_for_its_own_files() -> None:
    """However many connections are allowed, not all descriptors are theirs."""
    assert ConnectionLimits.of(HttpSettings(), 65_536).in_all == 4096
    assert ConnectionLimits.of(HttpSettings(), 1024).in_all == 1024 - OWN_FILES
    assert ConnectionLimits.of(HttpSettings(), 100).in_all == 1


def test_a_large_file_has_more_time() -> None:
    """The deadline of a body grows with its length, up to a bound."""
    assert connections._body_timeout_s(0, 30) == 30
    assert connections._body_timeout_s(64 * 1024 * 90, 30) == 120
    assert connections._body_timeout_s(10**15, 30) == 30 + connections.MAX_BODY_S
