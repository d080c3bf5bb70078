"""A headless Chromium for tests of the pages, and the chat page of a running heed in it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, ConsoleMessage, Page, async_playwright, expect

from bot.http.api import health
from tests.bot.conftest import Heed, StartHeed, heeds
from tests.patience import PATIENCE_S

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
PATIENCE_MS = 1000 * PATIENCE_S


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser(chromium_path: str) -> AsyncIterator[Browser]:
    """Yield a headless Chromium that talks only to heed; each page has its own profile."""
    expect.set_options(timeout=PATIENCE_MS)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium_path, args=ARGUMENTS)
        yield browser
        await browser.close()


@pytest_asyncio.fixture(loop_scope="module")
async def start_heed(browser: Browser, tmp_path: Path) -> AsyncIterator[StartHeed]:
    """Start heeds on the browser's loop; close their pages before they end."""
    async with heeds(tmp_path / "data") as start:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(health, "LOOK_S", PATIENCE_S)  # how slow a machine is nothing to complain about on a page
            yield start
        for context in browser.contexts:
            await context.close()


@pytest.fixture
def complaints() -> list[str]:
    """Return the list of the browser console's warnings and errors."""
    return []


async def open_page(heed: Heed, browser: Browser, complaints: list[str], width: int = 1280) -> Page:
    """Open the page of a running heed and wait until it is ready."""
    await heed.client.start_server()
    context = await browser.new_context(viewport={"width": width, "height": 800})
    page = await context.new_page()
    page.set_default_timeout(PATIENCE_MS)

    def hear(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            complaints.append(f"{message.text} ({message.location['url']})")

    page.on("console", hear)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    await page.goto(str(heed.client.make_url("/")))
    await expect(page.locator("#state")).to_have_text("pocket")
    await expect(page.locator("#versions li")).not_to_have_count(0)
    return page
