"""bot.http.admin.paging: keys and CSV files."""

import pytest
from aiohttp.test_utils import make_mocked_request

from bot.errors import InvalidField
from bot.http.admin import paging


@pytest.mark.parametrize(("query", "expected"), [("", None), ("before=", None), ("before=7", 7)])
def test_a_key_is_a_number(query: str, expected: int | None) -> None:
    """The key of a page is a number, or there is none."""
    assert paging.before(make_mocked_request("GET", f"/?{query}")) == expected


@pytest.mark.parametrize("value", ["x", "-1", "1.5", "%D9%A3", "9" * 19, "1%20or%201"])
def test_anything_else_is_refused(value: str) -> None:
    """A key that is no number is 400 and named."""
    with pytest.raises(InvalidField, match="before"):
        paging.before(make_mocked_request("GET", f"/?before={value}"))


@pytest.mark.parametrize("text", ["=1", "+1", "-1", "@x", "\tx", "\rx"])
def test_a_text_is_never_a_formula(text: str) -> None:
    """A text that looks like a formula gets a quote in front; numbers stay numbers."""
    assert paging.lines([[text, -1.5, None]]).decode().lstrip('"').startswith(f"'{text[0]}")
    assert paging.lines([[-1.5, None, "a,b"]]) == b'-1.5,,"a,b"\r\n'
