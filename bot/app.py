"""The composition root: builds storage, engine, core, HTTP and the bots, starts them in order, drains them at the end.

Invariants: nothing is made on disk before the model and the port are known to be usable; HTTP answers (not
ready) while the model loads, and the bots begin when it is there; at the end they stop first and no new work is taken,
running answers get `chat.drain_timeout_s`, and what was pending is still pending in storage. A first start that fails
leaves no data directory behind.
"""

import asyncio
import gc
import re
import shutil
import socket
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bot.access import admin_password
from bot.agent.service import REST_S, AgentService
from bot.channel import Channel
from bot.config import Settings
from bot.core.core import Core
from bot.errors import ModelNotFound, SettingsError
from bot.housekeeping import pause_file as pausing
from bot.housekeeping import settings_reload, shared_pause
from bot.housekeeping.pause_file import PAUSE_FILE, PauseFile
from bot.housekeeping.periodic import DAY_S, PeriodicTask, running
from bot.housekeeping.retention import AnswerRetention
from bot.housekeeping.settings_reload import SettingsFile
from bot.housekeeping.shared_pause import SharedPause
from bot.http import port
from bot.http.protocol.app_keys import Platforms
from bot.http.server import application
from bot.membership import GatewayLeases, Membership
from bot.messaging.leased_channels import LeasedChannels
from bot.messaging.supervisor import ChannelSupervisor
from bot.monitoring.metrics import Metrics
from bot.monitoring.redaction import hide
from bot.platforms.registry import switched_on
from engine.config import ConfigError, EngineConfig
from engine.models import MODELS_FOLDER
from engine.pocket import PACKAGED
from storage.database import Database
from storage.files.lock import LOCK_NAME, DataDirectoryLock
from storage.files.owner_only import make_owner_only

if TYPE_CHECKING:
    from engine.engine import Engine

Progress = Callable[[str], None]
EngineFactory = Callable[[EngineConfig, Database], "Engine"]
ChannelFactory = Callable[[Settings, Database], Sequence[Channel]]
Foreground = Callable[["App"], Awaitable[None]]

SMOLLM2 = "smollm2"  # `engine.sources.smollm2` fetches it
SHARDS_ALONE = "discord.shards: a heed that is alone has one connection to Discord; gateways share several."
HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")


def build_engine(config: EngineConfig, database: Database) -> "Engine":
    """Return the real engine; imported here because it brings the model's libraries along."""
    from engine.engine import Engine

    return Engine(config, database)


@dataclass(frozen=True)
class OpenedParts:
    """The parts opened before the engine starts and used after it."""

    core: Core
    channels: ChannelSupervisor | LeasedChannels
    agents: AgentService


class App:
    """One running heed."""

    def __init__(
        self,
        settings: Settings,
        progress: Progress,
        engine_factory: EngineFactory = build_engine,
        channel_factory: ChannelFactory = switched_on,
        membership: Membership | None = None,
    ) -> None:
        """`membership`: this is one gateway among several; None for a heed that is alone."""
        self.settings = settings.model_copy(deep=True)
        self._settings_file = SettingsFile(self.settings)
        self.url = ""
        self.key = ""  # what the terminal chat in this process calls with
        self.stopping = asyncio.Event()
        self._progress = progress
        self._engine_factory = engine_factory
        self._channel_factory = channel_factory
        self._membership = membership
        self._started_s = time.monotonic()
        self._is_ready = False

    def stop(self) -> None:
        """Begin to drain."""
        self.stopping.set()

    async def run(self, foreground: Foreground | None = None) -> None:
        """Serve until `stop` is called, or until `foreground` (the terminal chat) ends.

        Raises StartError, EngineError or StorageError where heed cannot start.
        """
        config = engine_config(self.settings)
        if self._membership is None and self.settings.discord.shards > 1:
            raise SettingsError(SHARDS_ALONE)
        self._progress(self.settings.model_line)
        with port.listen(self.settings.http.host, self.settings.http.port) as listener:
            self.url = port.address(listener, self.settings.http.host)
            async with AsyncExitStack() as stack:
                await self._take_data_directory(stack)
                parts = await self._open(stack, config, listener)
                self._is_ready = await self._unless_stopping(parts.core.engine.start(self._progress))
                if self._is_ready:
                    await self._serve(stack, parts, foreground)
                self._progress("stopping")

    async def _take_data_directory(self, stack: AsyncExitStack) -> None:
        """Lock the data directory, close it to other users, and remove it again if it is new and the start fails."""
        data_dir = self.settings.data_dir
        is_missing = not data_dir.exists()
        stack.enter_context(DataDirectoryLock(data_dir))
        if is_missing and [path.name for path in data_dir.iterdir()] == [LOCK_NAME]:
            stack.push(self._leave_nothing)
        await asyncio.to_thread(make_owner_only, data_dir)

    def _leave_nothing(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, Exception) and not self._is_ready:
            remove_all_but_models(self.settings.data_dir)

    async def _open(self, stack: AsyncExitStack, config: EngineConfig, listener: socket.socket) -> OpenedParts:
        settings = self.settings
        hide(settings.curriculum.api_key)
        database = await asyncio.to_thread(self._opened_database)
        stack.push_async_callback(database.close)
        engine = self._engine_factory(config, database)
        stack.push_async_callback(engine.stop)
        metrics = Metrics()
        core = Core.build(settings, database, engine, metrics)
        stack.push_async_callback(core.lessons.drain)
        await core.keys.require_some()
        self.key = core.keys.own
        leases = await self._leases(stack, core)
        agents = AgentService(core, None if leases is None else leases.agent_works)
        channels = self._channels(core, agents, leases)
        timeout_s = settings.chat.drain_timeout_s
        http = application(core, Platforms(channels.health, tuple(channels.routes)), agents)
        await port.serve(stack, http, listener, timeout_s)
        stack.push_async_callback(channels.stop, timeout_s)
        return OpenedParts(core, channels, agents)

    def _opened_database(self) -> Database:
        settings, membership = self.settings, self._membership
        if membership is not None:
            return membership.enter(settings)
        return Database.open(settings.data_dir, settings.database_url)

    async def _leases(self, stack: AsyncExitStack, core: Core) -> GatewayLeases | None:
        """Return the leases of a gateway among several, which are lengthened until all else has ended."""
        if self._membership is None:
            return None
        leases = self._membership.leases(core.database)
        stack.push_async_callback(leases.release)
        await stack.enter_async_context(running(leases.periodic_tasks()))
        return leases

    def _channels(
        self, core: Core, agents: AgentService, leases: GatewayLeases | None
    ) -> ChannelSupervisor | LeasedChannels:
        def make() -> Sequence[Channel]:
            return self._channel_factory(self.settings, core.database)

        def supervised(channels: Sequence[Channel]) -> ChannelSupervisor:
            return ChannelSupervisor(channels, core, core.metrics, agents)

        return supervised(make()) if leases is None else LeasedChannels(make, supervised, leases.platforms)

    async def _serve(self, stack: AsyncExitStack, parts: OpenedParts, foreground: Foreground | None) -> None:
        await self._tell_password(parts.core.database)
        pause_file = PauseFile(self.settings.data_dir / PAUSE_FILE, parts.core.lessons)
        await parts.core.consent.start()
        await pause_file.look()
        await parts.core.lessons.start()
        await stack.enter_async_context(running(self._periodic_tasks(parts, pause_file)))
        keep_for_good()
        parts.channels.start()
        seconds = time.monotonic() - self._started_s
        self._progress(f"ready in {seconds:.1f} s: open {self.url}")
        if foreground is None:
            await self.stopping.wait()
        else:
            await self._unless_stopping(foreground(self))

    def _periodic_tasks(self, parts: OpenedParts, pause_file: PauseFile) -> Iterator[PeriodicTask]:
        database = parts.core.database
        if self._membership is not None:
            pause = SharedPause(database, parts.core.lessons)
            yield PeriodicTask("hearing of pauses", pause.look, shared_pause.LOOK_EVERY_S)
            yield PeriodicTask("letting sessions go", parts.agents.let_rest_go, REST_S)
        yield PeriodicTask(f"obeying the file {PAUSE_FILE}", pause_file.look, pausing.LOOK_EVERY_S)
        yield PeriodicTask("reading the settings again", self._settings_file.look, settings_reload.LOOK_EVERY_S)
        if self.settings.keep_completions_days is not None:
            retention = AnswerRetention(database, self.settings.keep_completions_days)
            yield PeriodicTask("dropping old answers", retention.drop, DAY_S)

    async def _tell_password(self, database: Database) -> None:
        """Show the password at the first start only: it is stored nowhere."""
        password = await admin_password.first(database)
        if password is not None:
            self._progress(f"the password of the dashboards at {self.url}/admin, shown this once: {password}")

    async def _unless_stopping(self, work: Awaitable[None]) -> bool:
        """Await `work`; True if it ended by itself, False if heed was told to stop before."""
        task = asyncio.ensure_future(work)
        stopping = asyncio.create_task(self.stopping.wait(), name="stopping")
        try:
            await asyncio.wait({task, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                await task
            return not self.stopping.is_set()
        finally:
            for waiting in (task, stopping):
                waiting.cancel()
            await asyncio.gather(task, stopping, return_exceptions=True)


def remove_all_but_models(data_dir: Path) -> None:
    """Remove a data directory, but for models that were fetched: they are whole, and fetching them takes minutes."""
    if not (data_dir / MODELS_FOLDER).is_dir():
        shutil.rmtree(data_dir, ignore_errors=True)
        return
    for path in data_dir.iterdir():
        if path.is_dir() and path.name != MODELS_FOLDER:
            shutil.rmtree(path, ignore_errors=True)
        elif not path.is_dir():
            path.unlink(missing_ok=True)


def keep_for_good() -> None:
    """Tell the garbage collector that what is there now stays until the end.

    Blocking: for one whole collection. Looking through all of it took 90 ms, every few hundred messages.
    """
    gc.collect()
    gc.freeze()


def engine_config(settings: Settings) -> EngineConfig:
    """Return the engine's part of the settings. Raises ModelNotFound or SettingsError."""
    try:
        return EngineConfig(
            model=model_path(settings.model),
            data_dir=settings.data_dir,
            object_store=settings.object_store or "",
            host=settings.host,
            learn=settings.learn,
            gate=settings.gate,
            sleep=settings.sleep,
            curriculum=settings.curriculum,
            audit=settings.audit,
            versions=settings.versions,
            is_thinking=settings.thinking,
            chosen=settings.chosen,
        )
    except ConfigError as error:
        raise SettingsError(f"{error}.") from None


def model_path(model: str) -> str:
    """Return a model's folder, or its name on a hub. Raises ModelNotFound if it can be neither."""
    if model == SMOLLM2:
        return model
    folder = PACKAGED.get(model) or Path(model).expanduser()
    if (folder / "config.json").is_file():
        return str(folder)
    if HUB_NAME.fullmatch(model) and not folder.exists():
        return model
    missing = f"{folder} has no config.json" if folder.is_dir() else f"There is no model {model!r}"
    choices = "`pocket`, `workshop`, `smollm2`, a model folder, or a name such as Qwen/Qwen3-8B"
    raise ModelNotFound(f"HEED_MODEL: {missing}. Give {choices}.")
