"""The page of an evaluation: its tables and pictures in one HTML file that needs nothing else.

Everything on it is escaped; the pictures are in it, and lie beside it as PNG, too.
"""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from rich.table import Table
from rich.text import Text

PAGE = "report.html"
_TEMPLATES = Path(__file__).with_name("templates")
_KINDS = (("red", "bad"), ("yellow", "fair"), ("green", "good"))  # colour of a terminal -> class of the page
_ENVIRONMENT = Environment(loader=FileSystemLoader(_TEMPLATES), autoescape=True, undefined=StrictUndefined)


@dataclass(frozen=True)
class Picture:
    """A picture with its words."""

    name: str  # of its file
    title: str
    caption: str
    png: bytes

    @property
    def data(self) -> str:
        """The picture as an address that holds it."""
        return f"data:image/png;base64,{base64.b64encode(self.png).decode()}"


@dataclass(frozen=True)
class Cell:
    """One cell of a table, and how it is shown."""

    text: str
    kind: str = ""


@dataclass(frozen=True)
class Grid:
    """A table as the page shows it."""

    title: str
    head: Sequence[Cell]
    rows: Sequence[Sequence[Cell]]


def grid(table: Table) -> Grid:
    """Return what a table of the terminal has in it."""
    columns = table.columns
    head = [Cell(_plain(column.header), "number" if column.justify == "right" else "") for column in columns]
    rows = zip(*([_cell(cell, column.justify) for cell in column.cells] for column in columns), strict=True)
    return Grid(_plain(table.title), head, list(rows))


def _cell(content: Any, justify: str) -> Cell:
    colours = " ".join(str(span.style) for span in content.spans) if isinstance(content, Text) else ""
    colours += f" {content.style}" if isinstance(content, Text) else ""
    kinds = [kind for colour, kind in _KINDS if colour in colours]
    return Cell(_plain(content), " ".join([*kinds[:1], *(["number"] if justify == "right" else [])]))


def _plain(content: Any) -> str:
    return content.plain if isinstance(content, Text) else str(content or "")


def page(title: str, facts: Mapping[str, Any], tables: Sequence[Table], pictures: Sequence[Picture]) -> str:
    """Return the HTML; a mapping among the facts is shown as key=value words."""
    template = _ENVIRONMENT.get_template(PAGE)
    return template.render(title=title, facts=facts, tables=[grid(table) for table in tables], pictures=pictures)


def write(
    folder: Path,
    title: str,
    facts: Mapping[str, Any],
    tables: Sequence[Table],
    pictures: Sequence[Picture],
    name: str = PAGE,
) -> None:
    """Write the page and its pictures into a folder. Blocking."""
    for picture in pictures:
        (folder / picture.name).write_bytes(picture.png)
    (folder / name).write_text(page(title, facts, tables, pictures), encoding="utf-8")
