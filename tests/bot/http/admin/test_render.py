"""bot.http.admin.render: figures in words."""

import math

import pytest

from bot.http.admin import render


@pytest.mark.parametrize(("value", "expected"), [(None, "-"), (math.nan, "-"), (1234.5678, "1,234.57")])
def test_figures(value: float | None, expected: str) -> None:
    """A missing figure is a dash, and thousands are separated."""
    assert render.number(value, 2) == expected


def test_moments_and_times() -> None:
    """Moments are in UTC, and a missing one is a dash."""
    assert render.when(0.5) == "01 Jan 00:00:00"
    assert render.when(None) == "-"
    assert (render.took(None), render.took(120.0), render.took(1234.0)) == ("-", "120 ms", "1.2 s")


def test_no_template_switches_escaping_off_or_has_code_in_it() -> None:
    """No template has `|safe`, inline scripts, handlers or styles."""
    templates = list(render.TEMPLATES.glob("*.html"))
    assert len(templates) >= 12
    for path in templates:
        text = path.read_text(encoding="utf-8")
        for words in ("|safe", "| safe", "autoescape", " style=", " onclick=", " onload=", "javascript:"):
            assert words not in text, (path.name, words)
        assert text.count("<script") == text.count('<script type="module" src="/static/admin.js"></script>')
