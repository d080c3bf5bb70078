"""The connections of heed's port: their number, and how long a client may keep one waiting.

Owns the bounds (in all and from one address) and the deadlines: for the head of a request, for its body, and for taking
an answer. Invariants: where a bound is reached, a connection without a request makes room for a new one, first the
oldest that never sent any; a request under way is never ended for another connection; heed's own files have
descriptors left when every connection is taken; aiohttp hears of a connection once the head of a request is there, so
that a client who says nothing costs next to nothing.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field

from aiohttp import web
from aiohttp.typedefs import Handler

from bot.config import HttpSettings
from bot.errors import BodyTooSlow
from bot.http.protocol import messages
from bot.http.protocol.addresses import Network, counted, is_in, networks, parsed
from bot.http.protocol.app_keys import CORE
from bot.monitoring.logs import Sparing

logger = logging.getLogger(__name__)

LEAST_BYTES_PER_S = 64 * 1024  # of a body: a large file has more time
MAX_BODY_S = 1800.0
HELD_BYTES = 1024  # of a head that is not there yet; longer ones are read as they come
SPREAD = 0.2  # of a deadline: a crowd that came at one moment is not let go at one
OWN_FILES = 256  # descriptors left to the database, adapters, platforms and the model's processes


@dataclass(frozen=True)
class ConnectionLimits:
    """The bounds and the deadline; `trusted` addresses, the proxies, are bounded in all only."""

    in_all: int = 4096  # a silent one is 2.3 kB, and cheaper to hold than to turn away each second
    per_address: int = 2048
    timeout_s: float = 30.0  # for a request's head, and for taking any part of an answer
    trusted: tuple[Network, ...] = ()

    @classmethod
    def of(cls, settings: HttpSettings, num_files: int) -> "ConnectionLimits":
        """Return the limits of the settings, as far as `num_files` descriptors allow."""
        in_all = max(1, min(settings.max_connections, num_files - OWN_FILES))
        trusted = networks(settings.trusted_proxies)
        return cls(in_all, settings.max_connections_per_address, settings.client_timeout_s, trusted)


@dataclass(eq=False)
class _Group:
    """Connections that are bounded together; of those without a request, the oldest comes first."""

    number: int = 0
    new: "dict[Connection, None]" = field(default_factory=dict)  # no request yet
    kept: "dict[Connection, None]" = field(default_factory=dict)  # between two requests

    def oldest_waiting(self) -> "Connection | None":
        """Return the connection that makes room first, None if every one has a request under way."""
        return next(iter(self.new or self.kept), None)


class Connections:
    """Every connection of one port; called by asyncio for each that it has accepted."""

    def __init__(self, make_handler: Callable[[], asyncio.Protocol], limits: ConnectionLimits) -> None:
        """`make_handler` makes aiohttp's protocol for one connection."""
        self.limits = limits
        self._make_handler = make_handler
        self._all = _Group()
        self._addresses: dict[str, _Group] = {}
        self._refusals = Sparing(logger)

    def __call__(self) -> "Connection":
        """Return the protocol of a new connection."""
        return Connection(self, self._make_handler)

    def end_waiting(self) -> None:
        """Close every connection without a request: at heed's end, aiohttp does not know all of them."""
        for connection in [*self._all.new, *self._all.kept]:
            connection.end()

    @property
    def num_busy(self) -> int:
        """The connections with a request under way."""
        return self._all.number - len(self._all.new) - len(self._all.kept)

    def admit(self, connection: "Connection") -> bool:
        """Count a connection if there is, or can be made, room for it."""
        for group, limit in self._bounded(connection):
            if group.number >= limit and not _make_room(group):
                self._refusals.warning("a connection was refused: %d have a request under way", group.number)
                return False
        for group in self._groups(connection):
            group.number += 1
            group.new[connection] = None
        return True

    def move(self, connection: "Connection", *, is_busy: bool) -> None:
        """Note that a request has begun or ended on a connection."""
        for group in self._groups(connection):
            group.new.pop(connection, None)
            group.kept.pop(connection, None)
            if not is_busy:
                group.kept[connection] = None

    def forget(self, connection: "Connection") -> None:
        """Count a connection no more."""
        for group in self._groups(connection):
            group.number -= 1
            group.new.pop(connection, None)
            group.kept.pop(connection, None)
        if not self._addresses[connection.address].number:
            del self._addresses[connection.address]

    def _groups(self, connection: "Connection") -> tuple[_Group, _Group]:
        return self._all, self._addresses.setdefault(connection.address, _Group())

    def _bounded(self, connection: "Connection") -> Iterable[tuple[_Group, int]]:
        in_all, of_address = self._all, self._addresses.get(connection.address)
        if of_address is not None and not connection.is_proxy:
            yield of_address, self.limits.per_address
        yield in_all, self.limits.in_all


class Connection(asyncio.Protocol):
    """One connection: aiohttp's protocol, with the bounds and deadlines around it."""

    def __init__(self, connections: Connections, make_handler: Callable[[], asyncio.Protocol]) -> None:
        self.address = ""
        self.is_proxy = False
        self._connections = connections
        self._make_handler = make_handler
        self._handler: asyncio.Protocol | None = None  # none before a head is there
        self._head = b""  # what came before
        self._transport: asyncio.Transport | None = None  # none while it is not counted
        self._deadline: asyncio.TimerHandle | None = None

    def end(self) -> None:
        """Close the connection at once."""
        transport = self._transport
        self._leave()
        if transport is not None:
            transport.abort()

    @contextmanager
    def busy(self) -> Iterator[None]:
        """For the duration of the block, a request is under way on the connection."""
        self._wait_no_more()
        if self._transport is not None:
            self._connections.move(self, is_busy=True)
        try:
            yield
        finally:
            if self._transport is not None:
                self._connections.move(self, is_busy=False)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Admit the connection, or close it."""
        assert isinstance(transport, asyncio.Transport)
        self._note_peer(str((transport.get_extra_info("peername") or ("",))[0]))
        if not self._connections.admit(self):
            transport.abort()
            return
        self._transport = transport
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._leave()
        if self._handler is not None:
            self._handler.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Hand on what came, a request's head in one piece."""
        if self._handler is None:
            self._head += data
            if self._transport is None or not is_for_handler(self._head):
                return
            self._handler, data, self._head = self._make_handler(), self._head, b""
            self._handler.connection_made(self._transport)
        self._handler.data_received(data)

    def eof_received(self) -> bool | None:
        """Hand on that no more comes."""
        return None if self._handler is None else self._handler.eof_received()

    def pause_writing(self) -> None:
        """Begin to wait for a client that does not read."""
        self._wait()
        if self._handler is not None:
            self._handler.pause_writing()

    def resume_writing(self) -> None:
        """Go on: the client reads again."""
        self._wait_no_more()
        if self._handler is not None:
            self._handler.resume_writing()

    def _note_peer(self, peer: str) -> None:
        address = parsed(peer)
        self.address = counted(peer)
        self.is_proxy = address is not None and is_in(address, self._connections.limits.trusted)

    def _wait(self) -> None:
        """Give the client its time, from now on."""
        self._wait_no_more()
        loop, timeout_s = asyncio.get_running_loop(), self._connections.limits.timeout_s
        self._deadline = loop.call_later(timeout_s * random.uniform(1, 1 + SPREAD), self.end)  # noqa: S311  no secret

    def _wait_no_more(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _leave(self) -> None:
        self._wait_no_more()
        if self._transport is not None:
            self._transport = None
            self._connections.forget(self)


def is_for_handler(head: bytes) -> bool:
    """Return True if aiohttp can begin with these first bytes: a whole head, a long one, or no request at all."""
    is_whole = b"\r\n\r\n" in head or b"\n\n" in head
    return is_whole or len(head) > HELD_BYTES or not head[:1].isupper()


@web.middleware
async def in_time(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Keep the connection for the length of the request. Raises BodyTooSlow."""
    protocol = request.transport.get_protocol() if request.transport is not None else None
    with protocol.busy() if isinstance(protocol, Connection) else nullcontext():
        if request.content.is_eof():
            return await handler(request)
        return await _while_body_comes(request, handler)


async def _while_body_comes(request: web.Request, handler: Handler) -> web.StreamResponse:
    timeout_s = request.app[CORE].settings.http.client_timeout_s
    try:
        async with asyncio.timeout(_body_timeout_s(request.content_length or 0, timeout_s)) as deadline:
            request.content.on_eof(lambda: _lift(deadline))
            return await handler(request)
    except TimeoutError:
        if deadline.expired():
            raise BodyTooSlow(messages.BODY_TOO_SLOW) from None
        raise


def _body_timeout_s(length_bytes: int, timeout_s: float) -> float:
    return timeout_s + min(length_bytes / LEAST_BYTES_PER_S, MAX_BODY_S)


def _lift(deadline: asyncio.Timeout) -> None:
    with suppress(RuntimeError):  # the handler has ended before the body
        deadline.reschedule(None)


def _make_room(group: _Group) -> bool:
    """End the connection that makes room first. Return False if there is none."""
    oldest = group.oldest_waiting()
    if oldest is not None:
        oldest.end()
    return oldest is not None
