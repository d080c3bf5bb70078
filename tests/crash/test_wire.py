"""A wire carries both ways; while it is cut nothing passes, and afterwards everything does, in order."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.crash.echo import echo_server, port_of
from tests.crash.wire import Wire, wire
from tests.patience import PATIENCE_S


@pytest_asyncio.fixture
async def echo() -> AsyncIterator[Wire]:
    """A wire to a server that says what it hears."""
    server = await echo_server()
    port = port_of(server)
    async with server, wire(lambda: asyncio.open_connection("127.0.0.1", port)) as made:
        yield made


async def test_what_is_said_comes_back_and_an_end_ends_both(echo: Wire) -> None:
    """Also in several pieces."""
    async with asyncio.timeout(PATIENCE_S):
        reader, writer = await asyncio.open_connection("127.0.0.1", echo.port)
        for word in (b"one", b"two"):
            writer.write(word)
            assert await reader.readexactly(3) == word
        writer.write_eof()
        assert await reader.read() == b""
        writer.close()


async def test_nothing_passes_a_cut_wire_and_all_of_it_comes_late(echo: Wire) -> None:
    """A connection that is begun meanwhile is silent, too."""
    async with asyncio.timeout(PATIENCE_S):
        reader, writer = await asyncio.open_connection("127.0.0.1", echo.port)
        cut = asyncio.create_task(echo.cut(0.3))
        await asyncio.sleep(0)
        new_reader, new_writer = await asyncio.open_connection("127.0.0.1", echo.port)
        writer.write(b"one")
        new_writer.write(b"two")
        first = [asyncio.create_task(one.readexactly(3)) for one in (reader, new_reader)]
        await asyncio.wait([cut, *first], return_when=asyncio.FIRST_COMPLETED)
        assert cut.done()
        assert await asyncio.gather(*first) == [b"one", b"two"]
        writer.close()
        new_writer.close()


async def test_each_piece_waits_on_a_slow_wire(echo: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    """In each direction."""
    waits: list[float] = []
    real = asyncio.sleep

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        await real(0)

    async with asyncio.timeout(PATIENCE_S):
        reader, writer = await asyncio.open_connection("127.0.0.1", echo.port)
        monkeypatch.setattr(asyncio, "sleep", sleep)
        echo.delay_s = 60.0
        writer.write(b"one")
        assert await reader.readexactly(3) == b"one"
        assert waits == [60.0, 60.0]
        writer.close()


async def test_a_far_end_that_is_gone_closes_the_near_one() -> None:
    """As a server that ended does."""

    async def refused() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        raise ConnectionRefusedError

    async with asyncio.timeout(PATIENCE_S), wire(refused) as made:
        reader, writer = await asyncio.open_connection("127.0.0.1", made.port)
        assert await reader.read() == b""
        writer.close()
