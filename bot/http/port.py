"""heed's port: opened at the start, served by aiohttp behind the bounds of `bot.http.protocol.connections`.

Invariants: what strangers send fills no log: a malformed request and a connection that could not be accepted are a line
a minute, without a byte of what came; a child process never holds the port.
"""

import asyncio
import errno
import logging
import os
import resource
import socket
import weakref
from contextlib import AsyncExitStack
from typing import Any

from aiohttp import web
from aiohttp.http import HttpProcessingError

from bot.errors import PortInUse, StartError
from bot.http.protocol.app_keys import CORE
from bot.http.protocol.connections import ConnectionLimits, Connections
from bot.monitoring.logs import Sparing

logger = logging.getLogger(__name__)

BACKLOG = 512  # connections that may wait to be accepted
ACCEPTED_AT_ONCE = 4  # of those, before what else is due has its turn
KEEP_ALIVE_S = 75.0  # between two requests: longer than the 60 s for which proxies keep a connection
WANTED_FILES = 65_536  # descriptors; more make old programs that try every number slow
ACCEPT_FAILED = "socket.accept() out of system resource"  # asyncio's words

_listeners: "weakref.WeakSet[socket.socket]" = weakref.WeakSet()


async def serve(
    stack: AsyncExitStack, app: web.Application, listener: socket.socket, drain_timeout_s: float
) -> Connections:
    """Answer on the port until the stack ends: then no connection is taken, and running requests get their time."""
    loop = asyncio.get_running_loop()
    runner = web.AppRunner(
        app,
        handler_cancellation=True,
        access_log=None,
        shutdown_timeout=drain_timeout_s,
        keepalive_timeout=KEEP_ALIVE_S,
        logger=RequestLog(),
    )
    stack.push_async_callback(runner.cleanup)
    await runner.setup()
    assert runner.server is not None
    stack.callback(loop.set_exception_handler, loop.get_exception_handler())
    loop.set_exception_handler(LoopErrors())
    limits = ConnectionLimits.of(app[CORE].settings.http, raise_file_limit())
    connections = Connections(runner.server, limits)
    server = await loop.create_server(connections, sock=listener, backlog=ACCEPTED_AT_ONCE)
    listener.listen(BACKLOG)  # asyncio has cut the queue to as many as it accepts at once
    stack.callback(connections.end_waiting)
    stack.callback(server.close)
    return connections


def raise_file_limit() -> int:
    """Let this process open as many files as it may, WANTED_FILES at most, and return how many it can open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = WANTED_FILES if hard == resource.RLIM_INFINITY else min(hard, WANTED_FILES)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return wanted if soft == resource.RLIM_INFINITY else soft
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted


class RequestLog:
    """aiohttp's log of requests that it could not handle."""

    def __init__(self) -> None:
        self._malformed = Sparing(logger)

    def exception(self, message: str, *args: Any, exc_info: BaseException | None = None) -> None:
        """Log an error with its trace, and a malformed request by its kind alone: its bytes may hold a key."""
        if isinstance(exc_info, HttpProcessingError):
            self._malformed.warning("a malformed request was refused: %s", type(exc_info).__name__)
        else:
            logger.error(message, *args, exc_info=exc_info or True)

    def debug(self, *_args: Any, **_options: Any) -> None:
        """Log nothing: what ends here is bytes that are no HTTP at all."""


class LoopErrors:
    """The event loop's errors: connections that cannot be accepted are a line a minute, all others are asyncio's."""

    def __init__(self) -> None:
        self._accepts = Sparing(logger)

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Log one error."""
        if context.get("message") == ACCEPT_FAILED:
            self._accepts.warning("a connection could not be accepted: %s", context.get("exception"))
        else:
            loop.default_exception_handler(context)


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket. Raises PortInUse or StartError with the remedy."""
    try:
        family, kind, protocol, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise StartError(f"HEED_HTTP_HOST: {host} is no address of this machine ({error.strerror}).") from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(where)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise _cannot_listen(error, host, port) from error
    listener.setblocking(False)
    _listeners.add(listener)
    return listener


def _cannot_listen(error: OSError, host: str, port: int) -> StartError:
    if error.errno == errno.EADDRINUSE:
        return PortInUse(f"Port {port} on {host} is in use. Stop what listens there, or set HEED_HTTP_PORT to another.")
    if error.errno == errno.EACCES:
        return StartError(f"Port {port} needs more rights than heed has. Set HEED_HTTP_PORT to 1024 or above.")
    return StartError(f"Port {port} on {host} cannot be used ({error.strerror}). Set HEED_HTTP_HOST or HEED_HTTP_PORT.")


def address(listener: socket.socket, host: str) -> str:
    """Return what to open in a browser."""
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{listener.getsockname()[1]}"


def _drop_in_child() -> None:
    # A forked child must not keep the port of a heed that was killed.
    for listener in list(_listeners):
        listener.close()


os.register_at_fork(after_in_child=_drop_in_child)
