"""bot.http.web.page: the page and its files, without outside assets. test_page_in_chromium.py drives it."""

import re

import pytest

from bot.http.web.page import PAGE, STATIC
from tests.bot.conftest import Heed

FILES = sorted(path.name for path in STATIC.iterdir())


async def test_the_policy_lets_nothing_else_in(heed: Heed) -> None:
    """The policy allows only heed's own scripts and styles, no frames and no type guessing."""
    response = await heed.client.get("/")
    policy = response.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert response.headers["Content-Type"].startswith("text/html")


async def test_answers_are_not_cached(heed: Heed) -> None:
    """Answers are never cached; page and files are revalidated each time."""
    assert (await heed.client.get("/v1/models")).headers["Cache-Control"] == "no-store"
    assert (await heed.client.get("/")).headers["Cache-Control"] == "no-cache"
    assert (await heed.client.get("/static/style.css")).headers["Cache-Control"] == "no-cache"


@pytest.mark.parametrize("name", FILES)
async def test_each_file_is_served_with_its_type(heed: Heed, name: str) -> None:
    """Each file has its media type, because browsers are told not to guess."""
    kinds = {"js": ("text/javascript", "application/javascript"), "css": ("text/css",), "svg": ("image/svg+xml",)}
    response = await heed.client.get(f"/static/{name}")
    assert response.headers["Content-Type"].split(";")[0] in kinds[name.rpartition(".")[2]]


@pytest.mark.parametrize("path", [PAGE, *STATIC.iterdir()], ids=lambda path: path.name)
def test_nothing_is_fetched_from_elsewhere(path: object) -> None:
    """No file has another site's address, an inline script, style or handler."""
    text = path.read_text()  # type: ignore[attr-defined]
    assert re.findall(r"(?:https?:)?//(?!www\.w3\.org/2000/svg)[\w.-]+\.\w", text) == []
    assert not re.search(r"<script(?![^>]*src=)|<style|\son\w+=|\sstyle=|innerHTML|eval\(", text)


def test_every_module_used_exists() -> None:
    """Every file that the page and the scripts import exists."""
    for path in [PAGE, *STATIC.glob("*.js")]:
        for name in re.findall(r'"/static/([\w.-]+)"', path.read_text()):
            assert (STATIC / name).is_file(), f"{path.name} names {name}"
