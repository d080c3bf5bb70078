"""bot.account_settings: who may work with the agent, and where."""

from pathlib import Path

import pytest

from bot import config
from bot.account_settings import AgentSettings
from bot.errors import SettingsError


@pytest.mark.parametrize(
    ("allow", "platform", "account", "may"),
    [
        (("http:local",), "http", "local", True),
        (("http:local",), "http", "ana", False),
        (("http:ana",), "http", "ana/laptop", True),
        (("http:*",), "http", "anyone", True),
        (("http:*",), "telegram", "1", False),
        (("telegram:1",), "telegram", "1", True),
        (("telegram:1",), "telegram", "12", False),
        (("telegram:1",), "discord", "1", False),
        ((), "http", "local", False),
    ],
)
def test_accounts_are_allowed_by_name(allow: tuple[str, ...], platform: str, account: str, *, may: bool) -> None:
    """A person behind a key is as the key; everyone on HTTP is no one on a platform."""
    assert AgentSettings(allow=allow).may(platform, account) is may


def test_by_default_this_machines_own_people_may() -> None:
    """In their own scratch folders, and no one on a platform."""
    settings = AgentSettings()
    assert (settings.may("http", "local"), settings.may("telegram", "1"), settings.folders) == (True, False, ())


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        ({"allow": ["ana"]}, "HEED_AGENT_ALLOW"),
        ({"allow": ["telegram:*"]}, "telegram:<number>"),
        ({"folders": ["site"]}, "no whole path"),
        ({"folders": ["/"]}, "no whole path"),
        ({"folders": ["/srv/site", "/home/site"]}, "Two folders are called 'site'"),
        ({"scratch_mb": 0}, "HEED_AGENT_SCRATCH_MB"),
    ],
)
def test_a_wrong_setting_is_named(agent: dict[str, object], words: str) -> None:
    """With what to write instead."""
    with pytest.raises(SettingsError, match=words):
        config.load(agent=agent)


def test_folders_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """As JSON, like every list."""
    monkeypatch.setenv("HEED_AGENT_FOLDERS", '["/srv/site"]')
    assert config.load().agent.folders == (Path("/srv/site"),)
