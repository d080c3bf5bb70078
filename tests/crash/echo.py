"""A server that says what it hears."""

import asyncio


async def echo_server() -> asyncio.Server:
    """Listen at a free port of this machine."""
    return await asyncio.start_server(_say_again, "127.0.0.1", 0)


def port_of(server: asyncio.Server) -> int:
    """Return the port at which a server listens."""
    return int(server.sockets[0].getsockname()[1])


async def _say_again(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while piece := await reader.read(100):
        writer.write(piece)
    writer.close()
