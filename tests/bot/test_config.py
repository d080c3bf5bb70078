"""bot.config: one tree, checked at start, and errors that name the key and the remedy."""

from pathlib import Path

import pytest

from bot import config
from bot.account_settings import AccessSettings
from bot.errors import SettingsError


@pytest.fixture(autouse=True)
def empty_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No variable of heed's and no heed.toml from outside."""
    for name in list(config.os.environ):
        if name.startswith(config.ENV_PREFIX) or name in config.BOT_TOKENS.values():
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


def test_without_settings_heed_is_local_and_runs_the_pocket_model() -> None:
    """The defaults need no file and no variable."""
    settings = config.load()
    assert (settings.model, settings.http.host, settings.http.port) == ("pocket", "127.0.0.1", 8080)
    assert settings.http.is_loopback


@pytest.mark.parametrize(("model", "name"), [("/a/b/c", "c"), ("./c/", "c"), ("Qwen/Qwen3-8B", "Qwen/Qwen3-8B")])
def test_a_folder_is_shown_without_its_way(model: str, name: str) -> None:
    """Where the model lies is nobody's business."""
    assert config.load(model=model).model_name == name


def test_variables_reach_nested_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """HEED_HTTP_PORT, HEED_DATA_DIR, HEED_MODEL and the engine's groups are read from the environment."""
    for name, value in {"HTTP_PORT": "99", "DATA_DIR": "/d", "MODEL": "Qwen/Qwen3-8B", "LEARN_LORA_RANK": "8"}.items():
        monkeypatch.setenv(f"HEED_{name}", value)
    settings = config.load()
    assert (settings.http.port, settings.data_dir, settings.model) == (99, Path("/d"), "Qwen/Qwen3-8B")
    assert settings.learn.lora_rank == 8


def test_a_teacher_elsewhere_is_set_by_three_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """And one without a model's name is refused by the setting that is missing."""
    monkeypatch.setenv("HEED_CURRICULUM_URL", "https://teacher.example/v1")
    with pytest.raises(SettingsError, match=r"curriculum\.model"):
        config.load()
    monkeypatch.setenv("HEED_CURRICULUM_MODEL", "m")
    monkeypatch.setenv("HEED_CURRICULUM_API_KEY", "k" * 20)
    found = config.load().curriculum
    assert (found.url, found.model, found.api_key) == ("https://teacher.example/v1", "m", "k" * 20)


def test_the_environment_wins_over_the_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """heed.toml in the working directory is read; a variable replaces one value of it and leaves the others."""
    (tmp_path / "heed.toml").write_text('model = "x/y"\n[http]\nport = 7\nmax_streams = 3\n')
    monkeypatch.setenv("HEED_HTTP_PORT", "9")
    settings = config.load()
    assert (settings.model, settings.http.port, settings.http.max_streams) == ("x/y", 9, 3)


def test_a_named_file_is_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """HEED_CONFIG names the file."""
    (tmp_path / "other.toml").write_text('data_dir = "elsewhere"')
    monkeypatch.setenv("HEED_CONFIG", str(tmp_path / "other.toml"))
    assert config.load().data_dir == Path("elsewhere")


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("HEED_HTTP_PORT", "abc", "HEED_HTTP_PORT"),
        ("HEED_HTTP_PORT", "70000", "a free port"),
        ("HEED_SLEEP_WINDOW", "2 to 6", "HH:MM-HH:MM"),
        ("HEED_SLEEP_MIN_NEW", "many", "HEED_SLEEP_MIN_NEW"),
        ("HEED_HTTP_API_KEYS", '{"ana": "short"}', "16 characters"),
        ("HEED_HTTP_API_KEYS", '{"a/b": "0123456789abcdef"}', "a/b"),
        ("HEED_HTTP_API_KEYS", '{"ana', "JSON"),
        ("HEED_CHAT_TEMPERATURE", "3", "HEED_CHAT_TEMPERATURE"),
        ("HEED_LEARN_STEPS", "0", "learn.steps is 0"),
        ("HEED_LEARN_RANK", "8", "There is no 'rank'"),
        ("HEED_HTTP_PROT", "1", "did you mean HEED_HTTP_PORT"),
        ("HEED_CONFIG", "/no/such/file", "HEED_CONFIG"),
        ("HEED_TELEGRAM_API_BASE", "ftp://x", "HEED_TELEGRAM_API_BASE.*https?://"),
        ("HEED_TELEGRAM_WEBHOOK_URL", "http://x", "must begin with https://"),
        ("HEED_TELEGRAM_WEBHOOK_URL", "https://x", "HEED_TELEGRAM_WEBHOOK_SECRET"),
        ("HEED_OBJECT_STORE", "s3://bucket/heed", "needs HEED_DATABASE_URL"),
        ("HEED_ACCESS_MODE", "closed", "HEED_ACCESS_MODE.*a code an admin approves"),
        ("HEED_ACCESS_ADMINS", '["ana"]', "'ana' is not telegram:<number>"),
    ],
)
def test_a_wrong_value_is_named_with_its_remedy(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, words: str
) -> None:
    """The message names the key, and what to write instead."""
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError, match=words.replace("(", r"\(")):
        config.load()


def test_a_word_in_place_of_a_number_is_shown_with_what_is_expected(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message repeats the value and ends with the setting's own description."""
    monkeypatch.setenv("HEED_CHAT_MAX_TOKENS", "abc")
    with pytest.raises(SettingsError, match=r"\(got 'abc'\)\. Expected: the longest answer, in tokens\.$"):
        config.load()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("model = ", "heed.toml"),
        ("modl = 'x'", "did you mean HEED_MODEL"),
        ("[learn]\nstepz = 1", "did you mean steps"),
        ("[http]\nport = 'x'", r"http.port in heed.toml"),
    ],
)
def test_a_wrong_file_is_named_with_its_key(tmp_path: Path, text: str, words: str) -> None:
    """A broken file and a wrong key in it are told apart from the environment."""
    (tmp_path / "heed.toml").write_text(text)
    with pytest.raises(SettingsError, match=words):
        config.load()


def test_a_key_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """API keys do not appear when settings are printed."""
    monkeypatch.setenv("HEED_HTTP_API_KEYS", '{"ana": "0123456789abcdef"}')
    assert "0123456789abcdef" not in repr(config.load())


def test_with_keys_heed_may_be_reached_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host other than loopback is fine once there are keys."""
    monkeypatch.setenv("HEED_HTTP_API_KEYS", '{"ana": "0123456789abcdef"}')
    monkeypatch.setenv("HEED_HTTP_HOST", "0.0.0.0")  # noqa: S104
    assert not config.load().http.is_loopback


def test_unknown_variables_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """A HEED_ variable that is no setting gives a warning with the nearest name; a known one gives none."""
    monkeypatch.setenv("HEED_DATADIR", "x")
    monkeypatch.setenv("HEED_MODEL", "pocket")
    assert list(config.unknown_variables()) == ["HEED_DATADIR is not a setting of heed (did you mean HEED_DATA_DIR?)"]


def test_a_bot_token_has_its_plain_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """TELEGRAM_BOT_TOKEN joins what else is set for Telegram, wins over the file, and is never shown."""
    (tmp_path / "heed.toml").write_text('[telegram]\ntoken = "in the file"\n')
    monkeypatch.setenv("TELEGRAM_BOT_TOKEN", "123456:ABC")
    monkeypatch.setenv("HEED_TELEGRAM_API_BASE", "http://127.0.0.1:8081/")
    settings = config.load()
    assert settings.telegram.token is not None
    assert settings.telegram.token.get_secret_value() == "123456:ABC"
    assert settings.telegram.api_base == "http://127.0.0.1:8081"
    assert settings.discord.token is None
    assert "ABC" not in repr(settings)


@pytest.mark.parametrize("name", ["DISCORD_BOT_TOKEN", "HEED_DISCORD_TOKEN"])
@pytest.mark.parametrize("given", ["", " \n"])
def test_an_empty_bot_token_is_none(monkeypatch: pytest.MonkeyPatch, name: str, given: str) -> None:
    """DISCORD_BOT_TOKEN= as compose files have it switches nothing on."""
    monkeypatch.setenv(name, given)
    assert config.load().discord.token is None


@pytest.mark.parametrize("name", ["TELEGRAM_BOT_TOKEN", "HEED_TELEGRAM_TOKEN"])
def test_blanks_around_a_token_do_not_count(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Copying brings them along, and the platform would refuse the token."""
    monkeypatch.setenv(name, " 123456:ABC\n")
    token = config.load().telegram.token
    assert token is not None
    assert token.get_secret_value() == "123456:ABC"


def test_strangers_on_platforms_need_a_code() -> None:
    """Nobody has access to a new bot but by pairing."""
    assert config.load().access == AccessSettings(mode="pair", admins=())
