"""Engines as Ray actors: started by name, found by name, called with a name for what went wrong.

Plain Ray: an actor is one engine's process, detached, so that it outlives the gateway that started it. Ray's ports are
for the machines of the cluster alone: who reaches them may run anything there.
"""

import asyncio
import logging
import re
import signal
import socket
import threading
from collections.abc import AsyncGenerator, Awaitable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

import ray
from ray.exceptions import RayActorError, RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from engine.cluster import IS_SECRET_GIVEN, SECRET_SETTING, cores
from engine.cluster.engine_process import EngineProcess, EngineSettings
from engine.cluster.fleet import EngineHandle, EngineIdentity, EngineState
from engine.config import EngineConfig
from engine.errors import EngineGone, EngineStartError
from engine.requests import Delta, GenerateRequest
from storage.tables import new_id

T = TypeVar("T")

NAMESPACE = "heed"
OBJECT_STORE_BYTES = 100_000_000  # answers, lessons and adapters are small
NO_RAY = "no Ray runs here: `ray start --head` on one machine, `ray start --address=THAT:6379` on the others"
NO_SECRET = f"set {SECRET_SETTING} to one secret on every machine of the cluster: who knows it may run anything there"
OTHER_SECRET = (
    "what listens at {address} does not let heed in: every machine of the cluster needs the same " + SECRET_SETTING
)
LISTENS_WITHIN_S = 2.0
AT_ONCE = 1000  # calls of one engine that may wait or run


class RayEngine:
    """The way to one engine: an EngineHandle."""

    def __init__(self, name: str, actor: Any) -> None:
        self.name = name
        self._actor = actor

    async def stop(self) -> None:
        """End the engine and its process; harmless if it is gone."""
        with suppress(EngineGone):
            await _called(self._actor.stop.remote())
        ray.kill(self._actor)

    async def drain(self) -> None:
        """See EngineProcess."""
        await _called(self._actor.drain.remote())

    async def identity(self) -> EngineIdentity:
        """See EngineHandle."""
        found: EngineIdentity = await _called(self._actor.identity.remote())
        return found

    async def state(self) -> EngineState:
        """See EngineHandle."""
        found: EngineState = await _called(self._actor.state.remote())
        return found

    async def call(self, method: str, *arguments: Any) -> Any:
        """See EngineHandle."""
        return await _called(self._actor.call.remote(method, arguments))

    async def generate(self, request: GenerateRequest) -> AsyncGenerator[Delta, None]:
        """See EngineHandle."""
        stop_id = new_id()
        stopping = asyncio.create_task(self._stop_with(request.stop, stop_id))
        try:
            async for reference in self._actor.generate.remote(replace(request, stop=None), stop_id):
                delta: Delta = await _called(reference)
                yield delta
        except RayError as error:
            raise EngineGone(str(error)) from error
        finally:
            stopping.cancel()

    async def _stop_with(self, stop: asyncio.Event | None, stop_id: str) -> None:
        if stop is not None:
            await stop.wait()
            await _called(self._actor.stop_generating.remote(stop_id))


def begin(folder: str) -> None:
    """Start Ray on this machine alone, for the life of this process, with its logs in a folder. Blocking."""
    ray.init(
        "local", namespace=NAMESPACE, include_dashboard=False, log_to_driver=False, configure_logging=False,
        object_store_memory=OBJECT_STORE_BYTES, _temp_dir=folder,
    )  # fmt: skip


def join() -> None:
    """Join the Ray that runs on this machine, or that RAY_ADDRESS names. Blocking. Raises EngineStartError."""
    if not IS_SECRET_GIVEN:
        raise EngineStartError(NO_SECRET)
    logging.getLogger("ray").setLevel(logging.ERROR)  # it warns that it leaves the signals to us
    try:
        ray.init("auto", namespace=NAMESPACE, log_to_driver=False, configure_logging=False)
    except (ConnectionError, RayError, RuntimeError) as error:
        raise EngineStartError(_refusal(str(error).splitlines()[0])) from error


def _refusal(reason: str) -> str:
    """Return what to do about a Ray that cannot be joined. Blocking. Ray names its address, and not a wrong secret."""
    found = re.search(r"\bat ([\w.-]+):(\d+)", reason)
    if found is not None:
        with suppress(OSError), socket.create_connection((found[1], int(found[2])), LISTENS_WITHIN_S):
            return OTHER_SECRET.format(address=f"{found[1]}:{found[2]}")
    return f"{NO_RAY} ({reason})"


def take_signals_back() -> None:
    """Let SIGTERM and SIGINT go where they went before Ray was begun or joined, which writes a stack trace at each.

    In the main thread; harmless elsewhere.
    """
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.getsignal(number))
            signal.siginterrupt(number, False)


def end() -> None:
    """Leave Ray; what was begun here ends with all of its processes, what was joined goes on. Blocking."""
    ray.shutdown()


def started(name: str, config: EngineConfig, database_url: str, environment: Mapping[str, str]) -> RayEngine:
    """Make an engine's process, again whenever it ends. Blocking. Raises ValueError where one of that name runs.

    `environment`: see `engine.cluster.cores`.
    """
    return _made(name, EngineSettings(name, config, database_url), environment)


def here(name: str, config: EngineConfig, database_url: str) -> RayEngine:
    """Return the engine of that name, made on this machine if there is none, with one of its GPUs if it has any.

    Blocking.
    """
    with suppress(ValueError):  # there is none
        return RayEngine(name, ray.get_actor(name, NAMESPACE))
    node_id = ray.get_runtime_context().get_node_id()
    nodes: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
    offered = next(node["Resources"] for node in nodes if node["NodeID"] == node_id)
    stays = NodeAffinitySchedulingStrategy(node_id, soft=False)
    settings = EngineSettings(name, config, database_url)
    environment = cores.among_unknown(cores.allowed_here(), cores.all_here())
    num_gpus = min(1, int(offered.get("GPU", 0)))
    return _made(name, settings, environment, scheduling_strategy=stays, num_gpus=num_gpus)


def _made(name: str, settings: EngineSettings, environment: Mapping[str, str], **where: Any) -> RayEngine:
    reads = {"env_vars": dict(environment)}
    options = {"name": name, "namespace": NAMESPACE, "lifetime": "detached", "max_concurrency": AT_ONCE}
    made = ray.remote(EngineProcess).options(num_cpus=0, max_restarts=-1, runtime_env=reads, **options, **where)
    return RayEngine(name, made.remote(settings))


async def found() -> dict[str, EngineHandle]:
    """Return every engine of the cluster, by name."""
    return await asyncio.to_thread(_found)


def _found() -> dict[str, EngineHandle]:
    engines: dict[str, EngineHandle] = {}
    for actor in ray.util.list_named_actors(all_namespaces=True):
        if actor["namespace"] == NAMESPACE:
            with suppress(ValueError):  # it ended meanwhile
                engines[actor["name"]] = RayEngine(actor["name"], ray.get_actor(actor["name"], NAMESPACE))
    return engines


async def _called(reference: Awaitable[T]) -> T:
    """Return what a call gave, raise what it raised. Raises EngineGone."""
    try:
        return await reference
    except RayTaskError as error:
        raise error.cause if isinstance(error.cause, Exception) else error from None
    except RayActorError as error:
        raise EngineGone(str(error).splitlines()[0]) from error
