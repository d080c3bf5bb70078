"""The dashboards on a phone, in a headless Chromium: the row of tabs is wider than the screen."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, async_playwright, expect

from bot.access import admin_password
from tests.bot.conftest import Heed, heeds
from tests.bot.http.web.browsing import ARGUMENTS, PATIENCE_MS

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

WIDTH = 390


@pytest_asyncio.fixture(loop_scope="module")
async def heed(tmp_path: Path) -> AsyncIterator[Heed]:
    """Start a heed on the module's loop."""
    async with heeds(tmp_path / "data") as start:
        yield await start()


@pytest_asyncio.fixture(loop_scope="module")
async def phone(heed: Heed, chromium_path: str) -> AsyncIterator[Page]:
    """Yield a page of a phone's width, signed in to the dashboards."""
    password = await admin_password.another(heed.core.database)
    await heed.client.start_server()
    async with async_playwright() as playwright:
        browser: Browser = await playwright.chromium.launch(executable_path=chromium_path, args=ARGUMENTS)
        page = await (await browser.new_context(viewport={"width": WIDTH, "height": 844})).new_page()
        page.set_default_timeout(PATIENCE_MS)
        await page.goto(str(heed.client.make_url("/admin")))
        await page.fill("#password", password)
        await page.press("#password", "Enter")
        await expect(page.locator(".tabs")).to_be_visible()
        yield page
        await browser.close()


async def test_the_active_tab_is_visible_on_every_dashboard(phone: Page) -> None:
    """All of it, although the row of tabs does not fit; the page itself is no wider than the screen."""
    tabs = phone.locator(".tabs a")
    row = await phone.locator(".tabs").evaluate("row => [row.scrollWidth, row.clientWidth]")
    assert row[0] > row[1]
    for number in range(await tabs.count()):
        await phone.goto(await tabs.nth(number).evaluate("link => link.href"))
        active = phone.locator(".tabs a[aria-current]")
        await expect(active).to_have_count(1)
        await expect(active).to_be_in_viewport(ratio=1)
        assert await phone.evaluate("document.documentElement.scrollWidth") <= WIDTH
