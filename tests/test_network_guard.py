"""The guard that keeps tests on this machine."""

import asyncio
import socket
from collections.abc import Iterator

import pytest

from tests.network_guard import NetworkGuard, is_loopback


@pytest.fixture
def violations(network_guard: NetworkGuard) -> Iterator[list[str]]:
    """Return the calls the guard saw, forgotten after the test: these tests reach out on purpose."""
    yield network_guard.violations
    network_guard.violations.clear()


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.10", "::1", "localhost", "0.0.0.0", "::"])  # noqa: S104 - as clients
def test_loopback_is_this_machine(host: str) -> None:
    """Each way of writing loopback is allowed."""
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["192.0.2.1", "10.0.0.1", "169.254.169.254", "2001:db8::1", "example.com"])
def test_everything_else_is_not(host: str) -> None:
    """Private networks and names are beyond this machine."""
    assert not is_loopback(host)


def test_a_connection_beyond_loopback_is_refused_and_remembered(violations: list[str]) -> None:
    """A TCP connection to another machine raises at once and is on record for the end of the test."""
    with socket.socket() as sock, pytest.raises(OSError, match="refused"):
        sock.connect(("192.0.2.1", 80))
    assert violations == ["connection to ('192.0.2.1', 80)"]


async def test_asyncio_is_watched_too(violations: list[str]) -> None:
    """A connection made by the event loop, by name, is refused at the look-up."""
    with pytest.raises(OSError, match="refused"):
        await asyncio.open_connection("heed.invalid", 443)
    assert violations == ["look-up of 'heed.invalid'"]


async def test_a_local_server_can_be_reached(network_guard: NetworkGuard) -> None:
    """A server and a client on loopback still work."""
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    async with server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        assert await reader.read() == b""
        writer.close()
    assert network_guard.violations == []
