"""The time each dashboard takes to load with much stored: real database, real pages, over HTTP.

Lists are asked for at their beginning and from somewhere in the middle of the log.
"""

import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from bench import stored
from bench.config import BenchConfig
from bench.figures import Row, row
from bench.instant import InstantEngine
from bot.access import admin_password
from bot.config import Settings
from bot.core.core import Core
from bot.http.admin.gate import COOKIE
from bot.http.admin.sessions import ADMIN_SESSIONS
from bot.http.server import application
from bot.monitoring.metrics import Metrics
from engine.config import EngineConfig
from evals.study import Advance
from storage.database import Database
from storage.reports import dashboards

TARGET_MS = 300.0
STEPS = 10  # of the progress bar while the database is filled
Samples = dict[str, list[float]]


def units(config: BenchConfig) -> int:
    """Return steps of the progress bar."""
    return STEPS + config.rounds + 1


async def measure(config: BenchConfig, advance: Advance) -> Samples:
    """Milliseconds of each page, by its name."""
    samples: Samples = {}
    with tempfile.TemporaryDirectory(prefix="heed-bench-") as folder:
        database = Database.open(Path(folder))
        try:
            await stored.fill(database, config.completions, config.stored, config.seed, _every_tenth(config, advance))
            pages = await _pages(database)
            async with _served(Path(folder), database) as client:
                for number in range(config.rounds + 1):
                    for name, path in pages.items():
                        took_ms = await _timed(client, path)
                        if number:  # the first time templates are read and caches are filled
                            samples.setdefault(name, []).append(took_ms)
                    advance("dashboards")
        finally:
            await database.close()
    return samples


def rows(samples: Samples) -> list[Row]:
    """Return the rows of the table."""
    return [row(f"dashboard {name}", "ms", took_ms, TARGET_MS, "p95") for name, took_ms in samples.items()]


async def _pages(database: Database) -> dict[str, str]:
    """Return every dashboard with an address, the single ones of a person with much."""
    found = await database.read(lambda s: dashboards.updates(s, 1))
    middle = found.rows[0].seq // 2
    talks = await database.read(lambda s: dashboards.conversations(s, 50))
    talk, person = talks.rows[0], found.rows[0].user_id
    return {
        "overview": "/admin",
        "conversations": "/admin/conversations",
        "conversations, older": f"/admin/conversations?before={talks.rows[-1].newest}",
        "one conversation": f"/admin/conversations/{talk.user_id}/{talk.chat_id or 'calls'}",
        "updates": "/admin/updates",
        "updates, in the middle": f"/admin/updates?before={middle}",
        "updates that failed (none)": "/admin/updates?status=failed",
        "updates of one person": f"/admin/updates?person={person}",
        "one update": f"/admin/updates/{found.rows[0].id}",
        "people": "/admin/people",
        "one person": f"/admin/people/{person}",
        "two versions": f"/admin/people/{person}/diff?first=0&second=1",
        "evaluations": "/admin/evals",
        "engine": "/admin/engine?minutes=360",
    }


@asynccontextmanager
async def _served(folder: Path, database: Database) -> AsyncIterator[aiohttp.ClientSession]:
    """Provide a client that is signed in to a heed over this database."""
    settings = Settings(data_dir=folder)
    engine: Any = InstantEngine()
    engine.config = EngineConfig("instant", folder)
    metrics = Metrics()
    app = application(Core.build(settings, database, engine, metrics))
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    await admin_password.first(database)
    cookies = {COOKIE: app[ADMIN_SESSIONS].open(await admin_password.current(database))}
    host, port = runner.addresses[0][:2]
    jar = aiohttp.CookieJar(unsafe=True)
    try:
        async with aiohttp.ClientSession(f"http://{host}:{port}", cookies=cookies, cookie_jar=jar) as client:
            yield client
    finally:
        await runner.cleanup()


async def _timed(client: aiohttp.ClientSession, path: str) -> float:
    """Return the milliseconds until a page has come whole."""
    started_s = time.perf_counter()
    async with client.get(path, allow_redirects=False, raise_for_status=True) as response:
        await response.read()
        assert response.status == 200, path
    return (time.perf_counter() - started_s) * 1000


def _every_tenth(config: BenchConfig, advance: Advance) -> stored.Told:
    done, told, whole = 0, 0, max(config.completions - config.stored, 1)

    def tell(number: int) -> None:
        nonlocal done, told
        done += number
        while told < min(STEPS * done // whole, STEPS):
            told += 1
            advance("dashboards")

    return tell
