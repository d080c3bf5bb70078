"""bot.http.web.page: the page and its files, without anything from elsewhere. A browser drives it in test_page.py."""

import re

import pytest

from bot.http.web.page import PAGE, STATIC
from tests.bot.conftest import Heed

FILES = sorted(path.name for path in STATIC.iterdir())


async def test_the_policy_lets_nothing_else_in(heed: Heed) -> None:
    """Only heed's own scripts and styles, no frames, no guessing of types."""
    response = await heed.client.get("/")
    policy = response.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert response.headers["Content-Type"].startswith("text/html")


async def test_answers_are_not_cached(heed: Heed) -> None:
    """What people say stays out of caches; page and files are checked for changes each time."""
    assert (await heed.client.get("/v1/models")).headers["Cache-Control"] == "no-store"
    assert (await heed.client.get("/")).headers["Cache-Control"] == "no-cache"
    assert (await heed.client.get("/static/style.css")).headers["Cache-Control"] == "no-cache"


@pytest.mark.parametrize("name", FILES)
async def test_each_file_is_served_with_its_type(heed: Heed, name: str) -> None:
    """Scripts as scripts, or a browser that does not guess would refuse them."""
    kinds = {"js": ("text/javascript", "application/javascript"), "css": ("text/css",), "svg": ("image/svg+xml",)}
    response = await heed.client.get(f"/static/{name}")
    assert response.headers["Content-Type"].split(";")[0] in kinds[name.rpartition(".")[2]]


@pytest.mark.parametrize("path", [PAGE, *STATIC.iterdir()], ids=lambda path: path.name)
def test_nothing_is_fetched_from_elsewhere(path: object) -> None:
    """No address of another site, no inline script, style or handler."""
    text = path.read_text()  # type: ignore[attr-defined]
    assert re.findall(r"(?:https?:)?//(?!www\.w3\.org/2000/svg)[\w.-]+\.\w", text) == []
    assert not re.search(r"<script(?![^>]*src=)|<style|\son\w+=|\sstyle=|innerHTML|eval\(", text)


def test_every_module_used_exists() -> None:
    """Imports between the scripts, and the files the page names."""
    for path in [PAGE, *STATIC.glob("*.js")]:
        for name in re.findall(r'"/static/([\w.-]+)"', path.read_text()):
            assert (STATIC / name).is_file(), f"{path.name} names {name}"
