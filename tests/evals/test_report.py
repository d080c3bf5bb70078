"""The page of an evaluation."""

import re
from pathlib import Path

import pytest
from playwright.async_api import Error, async_playwright
from rich.table import Table

from evals import picture, report, table
from evals.figure import figure
from evals.report import Cell, Picture

PNG = picture.bars(["held"], {"heed": [0.5]})
HARM = '<script>alert("x")</script>'


def rows() -> Table:
    """One figure that is missed."""
    held = figure("held", {"weights": [0.5]}, target=0.95, judged=("weights",))
    return table.figures([held], 1)


def test_a_table_of_the_terminal_becomes_one_of_the_page() -> None:
    """Title, head and cells, with the colour as a class."""
    grid = report.grid(rows())
    assert grid.title.startswith("What heed learns")
    assert [cell.text for cell in grid.head][:2] == ["figure", "target"]
    (row,) = grid.rows
    assert row[0] == Cell("held")
    assert row[4] == Cell("50.0 (50.0)", "bad number")
    assert row[-1] == Cell("missed", "bad")


def test_everything_is_escaped() -> None:
    """Titles, facts, cells and captions are escaped."""
    evil = Table("head" + HARM, title=HARM)
    evil.add_row(HARM)
    page = report.page(HARM, {HARM: HARM, "arguments": {HARM: HARM}}, [evil], [Picture("a.png", HARM, HARM, PNG)])
    assert "<script" not in page
    assert page.count("&lt;script&gt;") >= 8


def test_nothing_is_fetched_from_anywhere() -> None:
    """Every address on the page holds its picture, and the page forbids others."""
    page = report.page("Title", {"model": "pocket"}, [rows()], [Picture("a.png", "One", "Words.", PNG)])
    assert re.findall(r'(?:src|href)="(\w+):', page) == ["data"]
    assert "default-src 'none'" in page


def test_pictures_lie_beside_the_page(tmp_path: Path) -> None:
    """As files of their own."""
    report.write(tmp_path, "Title", {}, [], [Picture("a.png", "One", "Words.", PNG)], "other.html")
    assert (tmp_path / "a.png").read_bytes() == PNG
    assert "Title" in (tmp_path / "other.html").read_text()


@pytest.mark.browser
async def test_a_browser_shows_tables_and_pictures(tmp_path: Path, chromium_path: str) -> None:
    """Opened as a file: the picture is drawn, and nothing is complained about."""
    report.write(tmp_path, "Title", {"model": "pocket"}, [rows()], [Picture("a.png", "One", "Words.", PNG)])
    said: list[str] = []
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium_path, args=["--no-sandbox"])
        page = await browser.new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error) if isinstance(error, Error) else "error"))
        await page.goto((tmp_path / report.PAGE).as_uri())
        widths = await page.eval_on_selector_all("img", "images => images.map(image => image.naturalWidth)")
        assert (len(widths), await page.inner_text("td.bad >> nth=-1"), said) == (1, "missed", [])
        assert widths[0] > 100
        await browser.close()
