"""Clients that say next to nothing."""

import asyncio

from bench import idle_clients
from tests.patience import until


async def test_they_hold_connections_and_come_back() -> None:
    """Idle and slow clients connect, send half a request, and connect again where they are let go."""
    heads, connected = list[bytes](), list[asyncio.StreamWriter]()

    async def listening(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connected.append(writer)
        number = len(connected)
        heads.append(await reader.read(10))
        if number <= 3:
            writer.close()

    async with await asyncio.start_server(listening, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with idle_clients.connected(url, num_idle=1, num_slow=2):
            await until(lambda: len(heads) >= 6)
        for writer in connected:
            writer.close()
    assert {head.split()[0] for head in heads} == {b"GET", b"POST"}
