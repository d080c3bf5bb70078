"""bot.housekeeping.settings_reload: what changes while heed runs, and what stays."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

from bot import config
from bot.config import Settings
from bot.events import Author, Message, Place
from bot.housekeeping.settings_reload import HOT, SettingsFile, is_hot
from tests.bot.conftest import StartHeed


@pytest.fixture
def toml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty settings file that is in use."""
    path = tmp_path / "heed.toml"
    path.touch()
    monkeypatch.setenv(config.CONFIG_VARIABLE, str(path))
    return path


@pytest.fixture
def settings(toml: Path) -> Settings:
    """What the empty file says."""
    assert toml.is_file()
    return config.load().model_copy(deep=True)


@pytest.fixture(autouse=True)
def root_level() -> Iterator[None]:
    """The log's level is as it was, afterwards."""
    level = logging.getLogger().level
    yield
    logging.getLogger().setLevel(level)


def edit(toml: Path, text: str) -> None:
    """The file says this now."""
    toml.write_text(text)


def drop(toml: Path) -> None:
    """There is no file any more."""
    toml.unlink()


async def test_a_part_sees_the_change_in_the_section_it_was_given(
    toml: Path, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    """Pydantic's and the engine's sections, and what stands in none; defaults, which others share, stay."""
    looks = SettingsFile(settings)
    chat, sleep = settings.chat, settings.sleep
    edit(toml, 'log_level = "info"\n[chat]\nmax_tokens = 7\n[sleep]\nwindow = "01:00-02:00"\n')
    await looks.look()
    assert (chat.max_tokens, sleep.window, settings.log_level) == (7, "01:00-02:00", "info")
    assert logging.getLogger().level == logging.INFO
    assert "chat.max_tokens is 7 from now on" in caplog.text
    assert Settings.model_fields["chat"].default.max_tokens == 1024
    edit(toml, "")
    await looks.look()
    assert chat.max_tokens == 1024


async def test_what_needs_a_restart_is_named_and_stays(
    toml: Path, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    """Without its value: it may be a secret."""
    looks = SettingsFile(settings)
    port = settings.http.port
    edit(toml, '[http]\nport = 1234\napi_keys = {ana = "0123456789abcdef"}\n')
    await looks.look()
    assert (settings.http.port, settings.http.api_keys) == (port, {})
    assert "http.port was changed: that holds when heed is restarted" in caplog.text
    assert "http.api_keys was changed" in caplog.text
    assert "0123456789abcdef" not in caplog.text


@pytest.mark.parametrize("mistake", ["[chat]\nmax_tokens = 0\n", "[chat\n", "[chat]\nmax_token = 1\n"])
async def test_a_mistake_changes_nothing(
    toml: Path, settings: Settings, caplog: pytest.LogCaptureFixture, mistake: str
) -> None:
    """Not what is right beside it either; the log says so once, and the next sound file counts."""
    looks = SettingsFile(settings)
    edit(toml, 'log_level = "error"\n' + mistake)
    await looks.look()
    await looks.look()
    assert (settings.chat.max_tokens, settings.log_level) == (1024, "warning")
    assert caplog.text.count("settings stay as they are") == 1
    edit(toml, "[chat]\nmax_tokens = 99\n")
    await looks.look()
    assert settings.chat.max_tokens == 99


async def test_a_file_that_goes_changes_nothing(toml: Path, settings: Settings) -> None:
    """HEED_CONFIG names no file then: a mistake like any other."""
    edit(toml, "[chat]\nmax_tokens = 7\n")
    looks = SettingsFile(settings)
    drop(toml)
    await looks.look()
    edit(toml, "[chat]\nmax_tokens = 8\n")
    await looks.look()
    assert settings.chat.max_tokens == 8


async def test_the_environment_wins(toml: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over the file's new value, too."""
    monkeypatch.setenv("HEED_CHAT_MAX_TOKENS", "5")
    looks = SettingsFile(settings)
    edit(toml, "[chat]\nmax_tokens = 7\n")
    await looks.look()
    assert settings.chat.max_tokens == 5


async def test_the_next_answer_follows_the_file(start_heed: StartHeed, toml: Path) -> None:
    """The gateway samples as the file says now."""
    heed = await start_heed(chat={"top_p": 1.0})
    looks = SettingsFile(heed.core.settings)
    edit(toml, "[chat]\nmax_tokens = 3\n")
    await looks.look()
    turn = await heed.core.gateway.turn(Message(Author("http", "ana", "ana"), Place("http", "web"), "bees"))
    assert turn.sampling.max_tokens == 3


def test_every_hot_setting_is_one() -> None:
    """No name here that the settings do not have, and none that is secret."""
    settings = Settings()
    for name in HOT:
        section, _, key = name.partition(".")
        owner = getattr(settings, section)
        assert not key or key in (type(owner).model_fields if isinstance(owner, BaseModel) else vars(owner))
    assert not any(map(is_hot, ("http.api_keys", "http.key", "telegram.token", "chat.drain_timeout_s", "sleepy")))
