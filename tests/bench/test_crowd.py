"""The part crowd."""

import asyncio

from bench import crowd
from bench.config import BenchConfig
from tests.evals.fake_heed import FakeHeed, serving
from tests.patience import until


def test_the_rows_compare_the_percentiles() -> None:
    """The ratio is that of the 99th percentiles; the log's growth is judged, too."""
    found = crowd.rows({"quiet_ms": [10.0] * 100, "crowded_ms": [15.0] * 100, "log_mb": [0.2]})
    assert [(row.median, row.is_met) for row in found] == [(10.0, None), (15.0, None), (1.5, False), (0.2, True)]


async def test_people_ask_for_as_long_as_they_are_asked_to() -> None:
    """Each of the few people has at least one answer, and the time to its first event is what is returned."""
    fake = FakeHeed()
    async with serving(fake) as url:
        found = await crowd._asking(BenchConfig(questions=2), url, "before", 0.01)
    assert len(found) >= crowd.PEOPLE
    assert all(value > 0 for value in found)


async def test_the_crowd_holds_connections_and_comes_back() -> None:
    """Idle and slow clients connect, send half a request, and connect again where they are let go."""
    heads, connected = list[bytes](), list[asyncio.StreamWriter]()

    async def listening(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connected.append(writer)
        heads.append(await reader.read(10))
        if len(connected) <= 3:
            writer.close()

    async with await asyncio.start_server(listening, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with crowd._crowd(BenchConfig(idle_clients=1, slow_clients=2), url):
            await until(lambda: len(heads) >= 6)
        for writer in connected:
            writer.close()
    assert {head.split()[0] for head in heads} == {b"GET", b"POST"}
