"""A cluster each of whose parts has a wire of its own to the database, and all one to the object store."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.crash.wire import Wire, wire
from tests.live_cluster import LiveCluster
from tests.storage.postgres_server import PostgresServer
from tests.storage.s3_server import BUCKET, S3Server

ENGINES, GATEWAYS = ("one", "two"), ("a", "b")
SOCKET = ".s.PGSQL.5432"


@dataclass(frozen=True)
class WiredCluster:
    """The cluster and its wires."""

    parts: LiveCluster
    to_database: dict[str, Wire]  # by part
    to_store: Wire


@asynccontextmanager
async def wired_cluster(
    folder: Path, server: PostgresServer, database: str, store: S3Server, engine_program: str = "bot"
) -> AsyncIterator[WiredCluster]:
    """Provide one with two engines and two gateways. `engine_program`: see LiveCluster."""
    async with AsyncExitStack() as stack:
        to_store = await stack.enter_async_context(wire(partial(asyncio.open_connection, *store.address)))
        connect = partial(asyncio.open_unix_connection, server.folder / SOCKET)
        to_database = {name: await stack.enter_async_context(wire(connect)) for name in (*ENGINES, *GATEWAYS)}
        settings = {
            "HEED_HTTP_NEW_PEOPLE_PER_HOUR": "1000",
            "HEED_OBJECT_STORE": f"s3://{BUCKET}",
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{to_store.port}",
        }
        own = {
            name: {"HEED_DATABASE_URL": f"postgresql://heed@127.0.0.1:{one.port}/{database}"}
            for name, one in to_database.items()
        }
        parts = LiveCluster(folder, server.url(database), settings, own, engine_program)
        stack.push_async_callback(parts.stop)
        await parts.start(ENGINES, GATEWAYS)
        yield WiredCluster(parts, to_database, to_store)
