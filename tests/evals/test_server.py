"""A heed of one's own to measure."""

import asyncio
import os
import socket
from pathlib import Path

import pytest
from pydantic import SecretStr

from bot import config
from bot.config import DiscordSettings, TelegramSettings
from evals import server
from evals.client import Client
from evals.errors import HeedUnreachable, StartFailed
from evals.server import HeedServer
from tests.evals.fake_heed import FakeHeed, serving
from tests.live_heed import LiveHeed


async def test_a_heed_that_cannot_start_is_reported_with_its_last_words() -> None:
    """The message is heed's own; its folder is gone afterwards."""
    own = HeedServer({"HEED_MODEL": "no-such-model"})
    try:
        with pytest.raises(StartFailed, match="no-such-model"):
            await own.start()
    finally:
        await own.stop()
    assert not own.folder.exists()


async def test_a_heed_that_ignores_sigterm_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopping takes bounded time even if the child ignores it."""
    monkeypatch.setattr(server, "STOP_TIMEOUT_S", 0.2)
    own = HeedServer()
    own._process = await asyncio.create_subprocess_exec(
        "python3", "-c", "import signal, time; signal.signal(15, signal.SIG_IGN); print(1, flush=True); time.sleep(60)",
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert own._process.stdout is not None
    await own._process.stdout.readline()
    pid = own.pid
    await own.stop()
    assert pid is not None
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_stopping_what_never_started_is_no_error() -> None:
    """A start that failed early is cleaned up the same way."""
    own = HeedServer()
    await own.stop()
    assert not own.folder.exists()


async def test_a_given_address_is_used_as_it_is() -> None:
    """No heed is started beside one that runs."""
    async with serving(FakeHeed()) as url, server.running(url) as used:
        assert used == url


async def test_a_given_address_must_be_ready() -> None:
    """A heed that is still starting, or none at all, is refused at once."""
    fake = FakeHeed()
    fake.is_ready = False
    async with serving(fake) as url:
        with pytest.raises(HeedUnreachable, match="no heed is ready"):
            async with server.running(url):
                pass


async def test_its_port_is_given_to_no_other_before_it_listens() -> None:
    """Nor between an end and another start; when it is stopped anybody may have it."""
    own = HeedServer()
    with socket.socket() as other:
        with pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", own.port))
        await own.stop()
        other.bind(("127.0.0.1", own.port))


def test_its_data_is_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Despite the environment, the measured heed writes into a folder of its own and asks for no key."""
    monkeypatch.setenv("HEED_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("HEED_HTTP_API_KEYS", '{"ana": "0123456789abcdef"}')
    own = HeedServer({"HEED_MODEL": "x"})
    environment = own._environment()
    own.folder.rmdir()
    assert Path(environment["HEED_DATA_DIR"]).parent == own.folder
    assert (environment["HEED_HTTP_API_KEYS"], environment["HEED_MODEL"]) == ("{}", "x")
    assert int(environment["HEED_VERSIONS_KEEP"]) >= 1000


@pytest.mark.parametrize("name", ["TELEGRAM_BOT_TOKEN", "HEED_TELEGRAM_TOKEN"])
def test_peoples_chats_are_left_to_their_own_heed(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Two heeds on one token would take each other's messages: the measured one has no bot that it was not given."""
    monkeypatch.setenv(name, "123:of-the-real-bot")
    monkeypatch.setenv("HEED_DISCORD_TOKEN", "of-the-real-bot")
    assert [bot.token for bot in bots_of(monkeypatch, HeedServer())] == [None, None]
    given = HeedServer({"TELEGRAM_BOT_TOKEN": "456:of-a-test", "HEED_TELEGRAM_API_BASE": "http://127.0.0.1:1"})
    telegram, discord = bots_of(monkeypatch, given)
    assert (telegram.token, telegram.api_base) == (SecretStr("456:of-a-test"), "http://127.0.0.1:1")
    assert discord.token is None


def bots_of(monkeypatch: pytest.MonkeyPatch, own: HeedServer) -> tuple[TelegramSettings, DiscordSettings]:
    """The bots that a heed of one's own would be told to run."""
    environment = own._environment()
    own.folder.rmdir()
    with monkeypatch.context() as patch:
        patch.setattr(os, "environ", environment)
        settings = config.load()
    return settings.telegram, settings.discord


@pytest.mark.engine
@pytest.mark.slow
async def test_a_started_heed_answers_and_leaves_nothing(live_heed: LiveHeed) -> None:
    """The session's heed is one of these: it is ready and answers."""
    async with Client(live_heed.url) as client:
        assert await client.is_ready()
        assert (await client.ask("server-test", ["hello"]))[0].text
