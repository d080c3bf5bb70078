"""evals.ports: a reserved port is refused, is given to no other, and can be listened on."""

import socket

import pytest

from bot.http import port
from evals.ports import reserved_port


def test_a_reserved_port_is_free_for_its_own_server_only() -> None:
    """Before it listens, and after it has stopped, connections are refused."""
    with reserved_port() as number:
        for _ in range(2):
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", number))
            with socket.socket() as careless, pytest.raises(OSError, match="in use"):
                careless.bind(("127.0.0.1", number))
            with port.listen("127.0.0.1", number), socket.create_connection(("127.0.0.1", number)):
                pass
