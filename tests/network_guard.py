"""Keeps tests on this machine: a connection or a name look-up beyond loopback is refused and fails the test.

Watches this process only. Datagram sockets may connect, since that sends nothing (vLLM finds its own address so).
"""

import errno
import ipaddress
import socket
from typing import Any

import pytest

LOCAL_NAMES = frozenset({"", "localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback"})


def is_address(host: str) -> bool:
    """Return True if the host is written as numbers, so that no look-up is needed."""
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Return True if the host is this machine, by its loopback address or name (0.0.0.0 reaches loopback, too)."""
    if not is_address(host):
        return host.lower() in LOCAL_NAMES
    address = ipaddress.ip_address(host.partition("%")[0])
    return address.is_loopback or address.is_unspecified


class NetworkGuard:
    """Refuses what leaves this machine and remembers it."""

    def __init__(self) -> None:
        self.violations: list[str] = []

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """In place: puts itself between the process and its sockets until monkeypatch is undone."""
        connect, connect_ex, getaddrinfo = socket.socket.connect, socket.socket.connect_ex, socket.getaddrinfo

        def guarded_connect(sock: socket.socket, address: Any) -> None:
            self.check_connect(sock, address)
            connect(sock, address)

        def guarded_connect_ex(sock: socket.socket, address: Any) -> int:
            self.check_connect(sock, address)
            return connect_ex(sock, address)

        def guarded_getaddrinfo(host: Any, *args: Any, **kwargs: Any) -> Any:
            self.check_lookup(host)
            return getaddrinfo(host, *args, **kwargs)

        monkeypatch.setattr(socket.socket, "connect", guarded_connect)
        monkeypatch.setattr(socket.socket, "connect_ex", guarded_connect_ex)
        monkeypatch.setattr(socket, "getaddrinfo", guarded_getaddrinfo)

    def check_connect(self, sock: socket.socket, address: Any) -> None:
        """Raise OSError for a connection that leaves this machine."""
        is_stream = sock.type & socket.SOCK_STREAM == socket.SOCK_STREAM
        if sock.family == socket.AF_UNIX or not is_stream:
            return
        host = str(address[0])
        if sock.family not in (socket.AF_INET, socket.AF_INET6) or not is_loopback(host):
            self._refuse(f"connection to {address!r}")

    def check_lookup(self, host: str | bytes | None) -> None:
        """Raise OSError for a name that this machine would ask another one about."""
        name = host.decode() if isinstance(host, bytes) else host or ""
        if not is_address(name) and not is_loopback(name) and name != socket.gethostname():
            self._refuse(f"look-up of {name!r}")

    def _refuse(self, what: str) -> None:
        self.violations.append(what)
        raise OSError(errno.ENETUNREACH, f"tests stay on this machine: {what} refused")
