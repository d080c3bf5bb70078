"""Every setting of heed in one tree: `heed.toml` below the environment, checked once at start.

Owns the names of settings, their defaults and the sentence a person reads when one is wrong. Nothing else
reads the environment. `HEED_HTTP_PORT` is `port` under `[http]`, `HEED_LEARN_LORA_RANK` is `lora_rank` under
`[learn]`; `TELEGRAM_BOT_TOKEN` and `DISCORD_BOT_TOKEN` are the tokens of `[telegram]` and `[discord]`. The engine's own
defaults live in `engine.config`.
"""

import dataclasses
import difflib
import ipaddress
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, TomlConfigSettingsSource
from pydantic_settings.exceptions import SettingsError as SourceError

from bot.account_settings import AccessSettings, AgentSettings
from bot.errors import SettingsError
from engine.config import (
    AuditConfig,
    BetterAnswersConfig,
    ConsolidationConfig,
    GateConfig,
    HostConfig,
    LearnConfig,
    VersionConfig,
    changed_settings,
)
from engine.models import title_of

ENV_PREFIX = "HEED_"
_CALIBRATED = ("learn", "gate")  # groups whose settings a model's calibration may replace
CONFIG_VARIABLE = "HEED_CONFIG"  # names the TOML file; ./heed.toml is read if it is not set
BOT_TOKENS = {"telegram": "TELEGRAM_BOT_TOKEN", "discord": "DISCORD_BOT_TOKEN"}  # the names that other bots use
KEY_NAME = re.compile(r"[A-Za-z0-9_.-]{1,32}")
WEBHOOK_SECRET = re.compile(r"[A-Za-z0-9_-]{16,256}")  # what Telegram takes, and long enough not to be guessed


class HttpSettings(BaseModel):
    """The web page and the HTTP calls."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    host: str = Field(default="127.0.0.1", description="an address of this machine, such as 127.0.0.1")
    port: int = Field(default=8080, ge=0, le=65535, description="a free port, 1 to 65535 (0: any)")
    api_keys: dict[str, SecretStr] = Field(
        default_factory=dict, description='names with keys of 16 characters or more: {"ana": "a long random text"}'
    )
    key: SecretStr | None = Field(
        default=None, description="the API key that heed's own commands use, if one is needed"
    )
    allowed_hosts: tuple[str, ...] = Field(default=(), description="further names a browser may use to reach heed")
    body_limit_bytes: int = Field(default=256 * 1024, ge=1024, description="the largest request, in bytes")
    max_streams: int = Field(default=32, ge=1, description="answers written at the same time, over all people")
    max_connections: int = Field(default=4096, ge=1, description="connections at the same time")
    max_connections_per_address: int = Field(default=2048, ge=1, description="of them from one address, if no proxy's")
    new_people_per_hour: int = Field(default=1000, ge=1, description="people whom one address may add in an hour")
    client_timeout_s: float = Field(
        default=30.0, gt=0, description="seconds a client has to send a request, and to take a part of an answer"
    )
    trusted_proxies: tuple[str, ...] = Field(
        default=("127.0.0.1", "::1"), description="addresses or networks whose X-Forwarded-For is believed"
    )
    max_streams_each: int = Field(default=16, ge=1, description="of these, for one API key, or one person without keys")
    max_waiting: int = Field(default=64, ge=0, description="calls that wait for a place among max_streams")

    @property
    def is_loopback(self) -> bool:
        """True if only this machine can connect."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @field_validator("trusted_proxies")
    @classmethod
    def _check_proxies(cls, proxies: tuple[str, ...]) -> tuple[str, ...]:
        for proxy in proxies:
            try:
                ipaddress.ip_network(proxy, strict=False)
            except ValueError:
                raise ValueError(f"{proxy!r} is no address and no network such as 10.0.0.0/8") from None
        return proxies

    @field_validator("api_keys")
    @classmethod
    def _check_keys(cls, keys: dict[str, SecretStr]) -> dict[str, SecretStr]:
        for name, key in keys.items():
            if not KEY_NAME.fullmatch(name):
                raise ValueError(f"the name {name!r} is not 1 to 32 letters, digits, '_', '.' or '-'")
            if len(key.get_secret_value()) < 16:
                raise ValueError(f"the key of {name} is shorter than 16 characters")
        return keys


class ChatSettings(BaseModel):
    """Defaults for requests that do not choose for themselves."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    temperature: float | None = Field(
        default=None, ge=0.0, le=2.0, description="0 (always the likeliest word) to 2 (unset: as the model asks for)"
    )
    top_p: float | None = Field(
        default=None, gt=0.0, le=1.0, description="above 0, at most 1 (unset: as the model asks for)"
    )
    max_tokens: int = Field(default=1024, ge=1, description="the longest answer, in tokens")
    retry_temperature: float = Field(
        default=0.8, ge=0.0, le=2.0, description="0 to 2, for an answer asked for once more"
    )
    history_turns: int = Field(
        default=20, ge=0, description="earlier turns of a conversation that are sent to the model"
    )
    text_limit_chars: int = Field(default=16_000, ge=1, description="the longest single text, in characters")
    stream_timeout_s: float = Field(
        default=120.0, gt=0, description="seconds without a token after which an answer ends"
    )
    learn_timeout_s: float = Field(default=120.0, gt=0, description="seconds a request waits for what it taught")
    drain_timeout_s: float = Field(default=10.0, ge=0, description="seconds given to running answers at the end")


def _http_address(address: str) -> str:
    if not address.startswith(("http://", "https://")):
        raise ValueError(f"{address!r} does not begin with http:// or https://")
    return address.rstrip("/")


HttpAddress = Annotated[str, AfterValidator(_http_address)]


def _bare(token: SecretStr | None) -> SecretStr | None:
    """Return a token without the blanks that copying brings along; nothing else is none."""
    given = token.get_secret_value().strip() if token else ""
    return SecretStr(given) if given else None


BotToken = Annotated[SecretStr | None, AfterValidator(_bare)]


class TelegramSettings(BaseModel):
    """The bot on Telegram; off without a token."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    token: BotToken = Field(default=None, description="what @BotFather gave: 123456:ABC...")
    api_base: HttpAddress = Field(default="https://api.telegram.org", description="the address of a Bot API server")
    webhook_url: str = Field(default="", description="https://... that Telegram can reach (empty: heed polls)")
    webhook_secret: SecretStr | None = Field(
        default=None, description="16 to 256 letters, digits, '_' and '-' that only Telegram and heed know"
    )

    @model_validator(mode="after")
    def _check_webhook(self) -> Self:
        if not self.webhook_url:
            return self
        if not self.webhook_url.startswith("https://"):
            raise ValueError("webhook_url must begin with https://: Telegram calls no other address")
        if not self.webhook_secret or not WEBHOOK_SECRET.fullmatch(self.webhook_secret.get_secret_value()):
            raise ValueError(
                "webhook_url needs HEED_TELEGRAM_WEBHOOK_SECRET, 16 to 256 letters, digits, '_' and '-': "
                "without it anyone could send updates in Telegram's name"
            )
        return self


class DiscordSettings(BaseModel):
    """The bot on Discord; off without a token."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    token: BotToken = Field(default=None, description="the bot token of the developer portal")
    api_base: HttpAddress = Field(default="https://discord.com/api/v10", description="the address of Discord's API")
    shards: int = Field(
        default=1, ge=1, le=4096, description="connections that share the bot's servers; more than one needs gateways"
    )
    training_permission: str = Field(
        default="", description="where Discord's permission to train on messages is written (empty: nothing is learned)"
    )


class BotTokens(PydanticBaseSettingsSource):
    """The bots' tokens by the plain names that other bots use, too."""

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        """Return the part of a section that comes from here."""
        token = os.environ.get(BOT_TOKENS.get(field_name, ""), "")
        return ({"token": token} if token else None), field_name, False

    def __call__(self) -> dict[str, Any]:
        """Return the sections that have a token."""
        fields = self.settings_cls.model_fields
        found = {name: self.get_field_value(fields[name], name)[0] for name in BOT_TOKENS}
        return {name: section for name, section in found.items() if section}


class Settings(BaseSettings):
    """The whole tree."""

    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX, env_nested_delimiter="_", env_nested_max_split=1, extra="forbid", frozen=True
    )

    model: str = Field(
        default="pocket",
        min_length=1,
        description="`pocket`, `workshop`, `smollm2`, a model folder, or a name such as Qwen/Qwen3-8B",
    )
    thinking: bool = Field(default=False, description="true lets a reasoning model think before it answers")
    data_dir: Path = Field(default=Path("data"), description="a directory heed may make and write")
    database_url: str | None = Field(default=None, description="postgresql://... (unset: SQLite in the data directory)")
    object_store: str | None = Field(
        default=None, description="s3://bucket/name or file:///folder, for copies of adapters (needs database_url)"
    )
    keep_updates_hours: int = Field(
        default=72,
        ge=48,
        description="hours for which updates of Telegram and Discord that were handled are known by their keys, "
        "48 or more: platforms may deliver them again",
    )
    keep_completions_days: int | None = Field(
        default=None,
        ge=1,
        description="days for which answers without feedback are kept, 1 or more (unset: for ever)",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="warning", description="debug, info, warning, error"
    )
    log_format: Literal["text", "json"] = Field(
        default="text", description="text (for people) or json (an object a line, for programs)"
    )
    http: HttpSettings = HttpSettings()
    chat: ChatSettings = ChatSettings()
    telegram: TelegramSettings = TelegramSettings()
    discord: DiscordSettings = DiscordSettings()
    access: AccessSettings = AccessSettings()
    agent: AgentSettings = AgentSettings()
    host: HostConfig = HostConfig()
    learn: LearnConfig = LearnConfig()
    gate: GateConfig = GateConfig()
    sleep: ConsolidationConfig = ConsolidationConfig()
    curriculum: BetterAnswersConfig = BetterAnswersConfig()
    audit: AuditConfig = AuditConfig()
    versions: VersionConfig = VersionConfig()
    _chosen: frozenset[str] = PrivateAttr(default=frozenset())

    @property
    def model_name(self) -> str:
        """The model as people see it: a folder without the way to it."""
        return Path(self.model).name if self.model.startswith(("/", ".", "~")) else self.model

    @property
    def model_line(self) -> str:
        """Say to people which model answers, and how to choose another."""
        return f"{title_of(self.model)} answers here; HEED_MODEL chooses another: `heed models` lists them."

    @field_validator("host", "learn", "gate", "sleep", "curriculum", "audit", "versions", mode="before")
    @classmethod
    def _check_names(cls, value: Any, info: Any) -> Any:
        kind = type(cls.model_fields[info.field_name].default)
        if isinstance(value, Mapping):
            known = [field.name for field in dataclasses.fields(kind)]
            for name in value:
                if name not in known:
                    raise ValueError(f"there is no {name!r}{_nearest(name, known)}")
        return value

    @model_validator(mode="after")
    def _check_copies(self) -> Self:
        if self.object_store and not self.database_url:
            raise ValueError(
                "object_store needs HEED_DATABASE_URL: the rows that say whose adapters those are would be on this "
                "machine alone"
            )
        return self

    @model_validator(mode="wrap")
    @classmethod
    def _note_chosen(cls, values: Any, handler: ModelWrapValidatorHandler["Settings"]) -> "Settings":
        """Remember which settings of learning were set, even to their default: a calibration leaves them alone."""
        settings = handler(values)
        groups = {name: values.get(name) for name in _CALIBRATED} if isinstance(values, Mapping) else {}
        settings._chosen = frozenset(f"{name}.{key}" for name, group in groups.items() for key in _names(group))
        return settings

    @property
    def chosen(self) -> frozenset[str]:
        """The settings of learning and gates that the operator has set, as "group.name"."""
        return self._chosen

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return the sources: arguments over the environment over the TOML file."""
        toml = TomlConfigSettingsSource(settings_cls, toml_file=config_path())
        return init_settings, env_settings, BotTokens(settings_cls), toml


def _names(group: Any) -> list[str]:
    """Return the names of a group's settings, however it was given: as a table, as JSON or as a record."""
    if dataclasses.is_dataclass(group):
        return changed_settings(group)
    return list(group) if isinstance(group, Mapping) else []


def config_path() -> Path:
    """Return the TOML file in use (it need not exist). Raises SettingsError if HEED_CONFIG names no file."""
    named = os.environ.get(CONFIG_VARIABLE)
    if named and not Path(named).is_file():
        raise SettingsError(f"{CONFIG_VARIABLE}: There is no file {named}. Name an existing one or unset it.")
    return Path(named or "heed.toml")


def load(**overrides: Any) -> Settings:
    """Read and check every setting. Raises SettingsError naming the key and the remedy."""
    try:
        return Settings(**overrides)
    except ValidationError as error:
        raise SettingsError(" ".join(_explain(item) for item in error.errors())) from None
    except SourceError as error:
        raise SettingsError(f'{error}: Write lists and tables in the environment as JSON, {{"ana": "..."}}.') from None
    except (OSError, ValueError) as error:
        raise SettingsError(f"{config_path()}: {error}.") from None


def unknown_variables() -> Iterator[str]:
    """Yield a warning for each HEED_* variable that is no setting (usually a typing error)."""
    known = [CONFIG_VARIABLE, *_variables()]
    for name in sorted(os.environ):
        if name.startswith(ENV_PREFIX) and name not in known:
            yield f"{name} is not a setting of heed{_nearest(name, known)}"


def _variables() -> Iterator[str]:
    for name, field in Settings.model_fields.items():
        section = field.default
        inner: list[str] = []
        if isinstance(section, BaseModel):
            inner = list(type(section).model_fields)
        elif dataclasses.is_dataclass(section):
            inner = [entry.name for entry in dataclasses.fields(section)]
        yield f"{ENV_PREFIX}{name}".upper()
        yield from (f"{ENV_PREFIX}{name}_{key}".upper() for key in inner)


def _nearest(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.7)
    return f" (did you mean {near[0]}?)" if near else ""


def _explain(item: Any) -> str:
    loc = [str(part) for part in item["loc"]]
    key = f"{ENV_PREFIX}{'_'.join(loc)}".upper() if loc else "settings"
    where = f" ({'.'.join(loc)} in {config_path()})" if config_path().is_file() else ""
    if item["type"] == "extra_forbidden":
        return f"{key}{where}: There is no such setting{_nearest(key, list(_variables()))}."
    message = item["msg"].removeprefix("Value error, ")
    remedy = _description(loc)
    got = f" (got {item['input']!r})" if isinstance(item["input"], str | int | float) else ""
    begun = message[:1].upper() if message.partition(" ")[0].isalpha() else message[:1]  # but for a setting's name
    return f"{key}{where}: {begun}{message[1:]}{got}.{f' Expected: {remedy}.' if remedy else ''}"


def _description(loc: list[str]) -> str:
    model: Any = Settings
    text = ""
    for part in loc:
        fields = getattr(model, "model_fields", {})
        if part not in fields:
            break
        text, model = fields[part].description or "", type(fields[part].default)
    return text
