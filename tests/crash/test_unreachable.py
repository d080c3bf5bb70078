"""Nothing passes to a port that is parted from the others, and what was sent meanwhile comes afterwards."""

import asyncio

import psutil
import pytest

from tests.crash import unreachable
from tests.crash.echo import echo_server, port_of
from tests.patience import PATIENCE_S

SILENT_S = 0.5

pytestmark = pytest.mark.skipif(not unreachable.is_there(), reason="needs nftables and root")


async def test_a_port_is_silent_for_a_while_and_then_hears_all() -> None:
    """Over a connection that is there, and over one that is begun meanwhile."""
    server = await echo_server()
    port = port_of(server)
    assert port in unreachable.ports_of(psutil.Process())
    async with server, asyncio.timeout(PATIENCE_S):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"zero")
        assert await reader.readexactly(4) == b"zero"
        async with unreachable.parted([port]):
            writer.write(b"one")
            heard = asyncio.create_task(reader.readexactly(3))
            begun = asyncio.create_task(asyncio.open_connection("127.0.0.1", port))
            arrived, _ = await asyncio.wait([heard, begun], timeout=SILENT_S)
            assert not arrived
        assert await heard == b"one"
        _, late_writer = await begun
        writer.close()
        late_writer.close()
