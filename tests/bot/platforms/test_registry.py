"""bot.platforms.registry: which platforms are switched on."""

from pathlib import Path

import pytest
from pydantic import SecretStr

from bot.config import Settings
from bot.platforms.registry import switched_on


def test_a_token_switches_its_platform_on(tmp_path: Path) -> None:
    """Without tokens there are no bots."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("TELEGRAM_BOT_TOKEN", "DISCORD_BOT_TOKEN"):
            patch.delenv(name, raising=False)
        assert switched_on(Settings(data_dir=tmp_path), None) == []  # type: ignore[arg-type]
        on = Settings(data_dir=tmp_path, telegram={"token": SecretStr("123456:ABC-DEF")})
        (channel,) = switched_on(on, None)  # type: ignore[arg-type]
        assert (channel.platform, channel.bot_id) == ("telegram", "123456")
