"""One connection to a PostgreSQL server, through asyncpg, for threads: each thread of a Database uses one at a time.

Owns the connection and the event loop it lives in; the loop turns only while a thread uses it. Invariants: one
use at a time; a connection that failed is never used again, and the next use makes a new one; a forked child holds no
copy of it: with an orphan of a killed heed it would look to the server as if that heed lived.
"""

import asyncio
import contextlib
import os
import weakref
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import asyncpg
from sqlalchemy import Connection, event
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import DisconnectionError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from storage.errors import DatabaseLost, StorageError

T = TypeVar("T")

CLOSE_TIMEOUT_S = 5.0  # a server that answers closes at once; one that does not is left
_DRIVER_ERRORS = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError)
_LOST = ("08", "57P")  # SQLSTATE: the connection failed, the server stops or starts

_open_connections: weakref.WeakSet["PgConnection"] = weakref.WeakSet()


class PgConnection:
    """A thread's connection to the server. `greet` is told of each new connection before its first use."""

    def __init__(self, engine: AsyncEngine, greet: Callable[[Any], None] | None = None) -> None:
        self._engine = engine
        self._greet = greet
        self._loop = asyncio.SelectorEventLoop()  # not the policy's: heed's libraries choose that one
        self._socket: Any = None
        event.listen(engine.sync_engine, "connect", lambda connection, _: self._take(connection))
        event.listen(engine.sync_engine, "checkout", _try)
        event.listen(engine.sync_engine, "handle_error", _lost)
        _open_connections.add(self)

    def connected(self, use: Callable[[Connection], T]) -> T:
        """Run `use` on the connection, which is tried first and made anew where it is gone.

        Blocking: in a thread without a running loop. Raises DatabaseLost where there is no connection or it ends on
        the way, the cause says why; and what `use` and `greet` raise.
        """
        return self._loop.run_until_complete(self._use(use))

    def close(self) -> None:
        """Close the connection and the loop; harmless to repeat. Blocking: as `connected`."""
        if self._loop.is_closed():
            return
        with contextlib.suppress(TimeoutError):  # a task of its own, which is never cancelled
            self._loop.run_until_complete(asyncio.wait_for(self._engine.dispose(), CLOSE_TIMEOUT_S))  # noqa: TID251
        self._loop.close()

    def drop_in_child(self) -> None:
        """Close a forked child's copy of the connection; the parent's goes on."""
        if self._socket is not None and self._socket.fileno() >= 0:
            os.close(self._socket.fileno())

    async def _use(self, use: Callable[[Connection], T]) -> T:
        connection = await self._connect()
        try:
            return await connection.run_sync(use)
        finally:
            await connection.close()

    async def _connect(self) -> AsyncConnection:
        try:
            return await self._engine.connect()
        except StorageError:
            raise
        except (OSError, SQLAlchemyError) as error:
            raise DatabaseLost(f"the database server cannot be reached ({first_line(error)})") from error

    def _take(self, connection: Any) -> None:
        self._socket = connection.driver_connection._transport.get_extra_info("socket")
        try:
            if self._greet is not None:
                self._greet(connection)
        except BaseException:
            connection.terminate()
            raise


def first_line(error: BaseException) -> str:
    """Return what a driver says, without the lines that may quote rows."""
    original = getattr(error, "orig", None) or error
    cause = original.__cause__ if isinstance(original.__cause__, _DRIVER_ERRORS) else original
    return (str(cause) or type(cause).__name__).splitlines()[0]


def sqlstate(error: BaseException | None) -> str:
    """Return the server's code for an error, "" where it did not come from there."""
    return getattr(error, "sqlstate", None) or getattr(getattr(error, "orig", None), "sqlstate", None) or ""


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """Return an error and what it came from, the outermost first."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _try(connection: Any, *_: object) -> None:
    """One round trip; SQLAlchemy's own takes three."""
    try:
        connection.run_async(lambda driver: driver.execute("SELECT"))
    except _DRIVER_ERRORS as error:
        raise DisconnectionError from error


def _lost(context: ExceptionContext) -> DatabaseLost | None:
    """In place: drop a connection that broke or timed out, so that it is never used again."""
    error = context.original_exception
    if not (context.is_disconnect or isinstance(error, OSError) or sqlstate(error).startswith(_LOST)):
        return None
    context.is_disconnect = True
    return DatabaseLost(f"the connection to the database server was lost ({first_line(error)})")


def _drop_in_child() -> None:
    for connection in list(_open_connections):
        connection.drop_in_child()


os.register_at_fork(after_in_child=_drop_in_child)
