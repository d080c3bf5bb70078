"""Ports of loopback that are ours while no server listens on them."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def reserved_port() -> Iterator[int]:
    """Provide a port on which nothing listens: connections are refused.

    It stays bound meanwhile, so no other process is given it. A server that reuses addresses (SO_REUSEADDR), as heed
    does, may listen there.
    """
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        port: int = holder.getsockname()[1]
        yield port
