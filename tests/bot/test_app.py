"""bot.app: starts in order, serves, drains, and leaves nothing behind where it cannot start."""

import asyncio
import gc
import json
import shutil
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from bot import app as composition
from bot.app import App, ChannelFactory, engine_config, model_path
from bot.cli import local_admin
from bot.cli.client import HeedClient
from bot.config import HttpSettings, Settings
from bot.errors import ModelNotFound, PortInUse, SettingsError, StartError
from engine.config import EngineConfig, HostConfig, LearnConfig
from engine.errors import EngineStartError, ModelNotFoundError
from storage.database import Database
from storage.errors import DataDirectoryLocked, StorageNotWritable
from storage.files.lock import DataDirectoryLock
from tests.bot.fake_engine import FakeEngine
from tests.patience import PATIENCE_S, until


@pytest.fixture
def model(tmp_path: Path) -> str:
    """A folder that looks like a model."""
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({}))
    return str(folder)


@pytest.fixture
def settings(tmp_path: Path, model: str) -> Settings:
    """A heed on a free port with a data directory that does not exist yet."""
    return Settings(data_dir=tmp_path / "data", model=model, http={"port": 0})


class Started:
    """A running App with what it said."""

    def __init__(
        self,
        settings: Settings,
        factory: Callable[[EngineConfig, Database], FakeEngine] = FakeEngine,
        channels: ChannelFactory = lambda *_: [],
    ) -> None:
        self.lines: list[str] = []
        self.engines: list[FakeEngine] = []
        self.ready = asyncio.Event()

        def made(config: EngineConfig, database: Database) -> FakeEngine:
            self.engines.append(factory(config, database))
            return self.engines[-1]

        self.app = App(settings, self._hear, made, channels)  # type: ignore[arg-type]

    def _hear(self, line: str) -> None:
        self.lines.append(line)
        if line.startswith("ready"):
            self.ready.set()


@asynccontextmanager
async def running(settings: Settings) -> AsyncIterator[Started]:
    """A heed from ready to stopped."""
    started = Started(settings)
    task = asyncio.create_task(started.app.run())
    await asyncio.wait_for(started.ready.wait(), PATIENCE_S)
    try:
        yield started
    finally:
        started.app.stop()
        await asyncio.wait_for(task, PATIENCE_S)


async def test_what_a_ready_heed_has_is_not_looked_through_again(settings: Settings) -> None:
    """A whole garbage collection while people wait goes over what came after the start only."""
    gc.unfreeze()
    async with running(settings):
        assert gc.get_freeze_count() > len(gc.get_objects())


async def test_a_start_says_where_to_go(settings: Settings) -> None:
    """Progress, then ready with the address, where the page answers."""
    async with running(settings) as started, aiohttp.ClientSession() as session:
        assert started.lines[0] == "model answers here; HEED_MODEL chooses another: `heed models` lists them."
        assert started.lines[1].startswith("loading")
        assert started.lines[-1].endswith(started.app.url)
        async with session.get(started.app.url) as response:
            assert response.status == 200
    assert started.lines[-1] == "stopping"


@pytest.mark.parametrize("days", [None, 30])
async def test_periodic_tasks_run_as_long_as_heed_does(settings: Settings, days: int | None) -> None:
    """Both files are checked while heed runs, and old answers are dropped only if that is set."""
    names = {"obeying the file PAUSE", "reading the settings again"} | ({"dropping old answers"} if days else set())
    async with running(settings.model_copy(update={"keep_completions_days": days})):
        assert names <= tasks()
        assert ("dropping old answers" in tasks()) is (days is not None)
    assert not names & tasks()


def tasks() -> set[str]:
    """What runs in this loop, by name."""
    return {task.get_name() for task in asyncio.all_tasks()}


async def test_beyond_loopback_a_start_needs_a_key(settings: Settings) -> None:
    """Without one nothing is left on disk; one that `heed keys` made will do."""
    exposed = settings.model_copy(update={"http": HttpSettings(host="0.0.0.0", port=0)})  # noqa: S104
    with pytest.raises(StartError, match="heed keys add you"):
        await Started(exposed).app.run()
    assert not settings.data_dir.exists()
    await local_admin.add_key(exposed, local_admin.NewKey("ana", "chat"))
    async with running(exposed) as started:
        assert any(line.startswith("ready") for line in started.lines)


async def test_whether_a_key_is_needed_is_known_from_the_start(settings: Settings) -> None:
    """Storage that goes away before anybody has called shuts nobody out who needs none."""
    async with running(settings) as started, aiohttp.ClientSession(started.app.url) as http:
        await started.engines[0]._database.close()
        async with http.get("/metrics") as response:
            assert response.status == 200


async def test_http_answers_while_the_model_loads(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the engine is ready, /readyz says so instead of refusing the connection; stop ends a start, too."""

    async def slow_start(self: FakeEngine, progress: Callable[[str], None]) -> None:
        await asyncio.sleep(60)

    monkeypatch.setattr(FakeEngine, "start", slow_start)
    started = Started(settings)
    task = asyncio.create_task(started.app.run())
    await until(lambda: started.engines)
    async with HeedClient(started.app.url) as client:
        assert (await client.ready())["status"] == "not ready"
    started.app.stop()
    await asyncio.wait_for(task, PATIENCE_S)
    assert "ready" not in " ".join(started.lines)


async def test_a_stop_lets_running_answers_end(settings: Settings) -> None:
    """An answer being written when heed is told to stop comes out whole."""
    async with running(settings) as started:
        started.engines[0].token_delay_s = 0.02
        async with HeedClient(started.app.url) as client:
            pieces = client.ask("bees")
            await anext(pieces)
            started.app.stop()
            reasons = [choice["finish_reason"] async for chunk in pieces for choice in chunk["choices"]]
    assert reasons[-1] == "stop"


async def test_pending_feedback_is_taken_up_after_a_restart(settings: Settings) -> None:
    """Feedback that waited for its update when heed stopped is learned by the next one."""
    async with running(settings) as started, HeedClient(started.app.url, "ana") as client:
        chunks = [chunk async for chunk in client.ask("bees")]
        started.engines[0].learn_delay_s = 60
        body = {"completion_id": chunks[0]["id"], "kind": "correction", "text": "too long", "wait": False}
        assert (await client.feedback(body))["status"] == "queued"
    async with running(settings) as started, HeedClient(started.app.url, "ana") as client:
        assert (await client.get())["active_version"] == 1


async def test_a_foreground_that_ends_ends_heed(settings: Settings) -> None:
    """When the terminal chat is closed, heed stops."""

    async def chat(app: App) -> None:
        async with HeedClient(app.url) as client:
            await client.ready()

    await asyncio.wait_for(Started(settings).app.run(chat), PATIENCE_S)


async def test_a_port_in_use_changes_nothing(settings: Settings) -> None:
    """The message names the port and the setting; no data directory is made."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        busy = settings.model_copy(update={"http": settings.http.model_copy(update={"port": port})})
        with pytest.raises(PortInUse, match=f"Port {port} .*HEED_HTTP_PORT"):
            await Started(busy).app.run()
    assert not settings.data_dir.exists()


async def test_a_second_heed_on_the_data_is_refused(settings: Settings) -> None:
    """The first one goes on, its data directory stays."""
    async with running(settings) as started:
        with pytest.raises(DataDirectoryLocked):
            await Started(settings).app.run()
        async with HeedClient(started.app.url) as client:
            assert (await client.ready())["status"] == "ready"


async def test_the_loser_of_two_first_starts_leaves_the_winners_directory(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other heed has made the directory after this one saw that there is none."""
    winner = DataDirectoryLock(settings.data_dir)

    class LateLock(DataDirectoryLock):
        def acquire(self) -> None:
            winner.acquire()
            (settings.data_dir / "heed.db").touch()
            super().acquire()

    monkeypatch.setattr(composition, "DataDirectoryLock", LateLock)
    with pytest.raises(DataDirectoryLocked):
        await Started(settings).app.run()
    assert (settings.data_dir / "heed.db").exists()
    winner.release()


async def test_a_directory_that_another_start_filled_meanwhile_stays(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was made, used and left between this start's first look and its lock: a failure removes nothing of it."""

    class LateLock(DataDirectoryLock):
        def acquire(self) -> None:
            super().acquire()
            (settings.data_dir / "other.txt").touch()

    async def fails(self: FakeEngine, progress: Callable[[str], None]) -> None:
        raise EngineStartError("no memory")

    monkeypatch.setattr(composition, "DataDirectoryLock", LateLock)
    monkeypatch.setattr(FakeEngine, "start", fails)
    with pytest.raises(EngineStartError):
        await Started(settings).app.run()
    assert (settings.data_dir / "other.txt").exists()


async def test_a_start_closes_the_data_to_other_users(settings: Settings) -> None:
    """A directory with wider rights is for its owner only from the next start on, and all of heed's files in it."""
    async with running(settings):
        pass
    for path in (settings.data_dir, *settings.data_dir.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    async with running(settings):
        modes = {path.name: path.stat().st_mode & 0o077 for path in (settings.data_dir, *settings.data_dir.rglob("*"))}
    assert set(modes.values()) == {0}, modes


@pytest.mark.parametrize("where", ["/proc/heed-data", "FILE/data"])
async def test_a_data_directory_without_permission_is_refused(settings: Settings, tmp_path: Path, where: str) -> None:
    """One error with the remedy, and the port is free again."""
    (tmp_path / "file").write_text("")
    denied = settings.model_copy(update={"data_dir": Path(where.replace("FILE", str(tmp_path / "file")))})
    with pytest.raises(StorageNotWritable, match="HEED_DATA_DIR"):
        await Started(denied).app.run()
    async with running(settings):
        pass


@pytest.mark.parametrize("error", [ModelNotFoundError("no such model"), EngineStartError("no memory")])
async def test_a_first_start_that_fails_leaves_nothing(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """A data directory this start made goes again; one that was there stays with everything in it."""

    async def fails(self: FakeEngine, progress: Callable[[str], None]) -> None:
        raise error

    async with running(settings.model_copy(update={"data_dir": settings.data_dir.with_name("old")})):
        pass
    monkeypatch.setattr(FakeEngine, "start", fails)
    for data_dir, remains in ((settings.data_dir, False), (settings.data_dir.with_name("old"), True)):
        with pytest.raises(type(error)):
            await Started(settings.model_copy(update={"data_dir": data_dir})).app.run()
        assert data_dir.exists() is remains


def test_a_first_start_that_fails_keeps_a_model_that_was_fetched(tmp_path: Path) -> None:
    """Everything else of the new data directory goes, and without a model the directory, too."""
    (tmp_path / "models" / "smollm2").mkdir(parents=True)
    (tmp_path / "logs").mkdir()
    (tmp_path / "heed.db").touch()
    composition.remove_all_but_models(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["models"]
    shutil.rmtree(tmp_path / "models")
    composition.remove_all_but_models(tmp_path)
    assert not tmp_path.exists()


@pytest.mark.parametrize("model", ["nonsense", "./no/such/folder", "/no/such/folder", ".", "a/b/c"])
async def test_a_model_that_cannot_be_is_refused_first(settings: Settings, model: str) -> None:
    """Before the port, the data directory and the engine; the message names the setting."""
    with pytest.raises(ModelNotFound, match="HEED_MODEL"):
        await Started(settings.model_copy(update={"model": model})).app.run()
    assert not settings.data_dir.exists()


def test_a_name_on_a_hub_is_left_to_the_engine() -> None:
    """Only the engine can tell whether it is reachable."""
    assert model_path("Qwen/Qwen3-8B") == "Qwen/Qwen3-8B"


async def test_settings_that_contradict_each_other_are_named(settings: Settings) -> None:
    """What only the engine's whole configuration sees is a settings error, too."""
    wrong = settings.model_copy(update={"learn": LearnConfig(lora_rank=64), "host": HostConfig(max_lora_rank=16)})
    with pytest.raises(SettingsError, match="lora_rank"):
        await Started(wrong).app.run()


async def test_a_heed_that_is_alone_has_one_connection_to_discord(settings: Settings) -> None:
    """Several are shared by gateways; nothing is made before that is said."""
    several = settings.model_copy(update={"discord": settings.discord.model_copy(update={"shards": 2})})
    with pytest.raises(SettingsError, match=r"discord\.shards"):
        await Started(several).app.run()
    assert not settings.data_dir.exists()


def test_the_chat_side_brings_no_model_libraries() -> None:
    """Importing everything of bot/ imports neither torch nor vLLM, so that commands start quickly."""
    code = "import sys, bot.cli.main; print([m for m in ('torch', 'vllm', 'transformers', 'peft') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    assert done.stdout == "[]\n"


def test_thinking_reaches_the_engine(tmp_path: Path) -> None:
    """Off by itself."""
    assert not engine_config(Settings(data_dir=tmp_path)).is_thinking
    assert engine_config(Settings(data_dir=tmp_path, thinking=True)).is_thinking
