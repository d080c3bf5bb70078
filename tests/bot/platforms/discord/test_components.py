"""Tests of bot.platforms.discord.components."""

import pytest

from bot.channel import Button
from bot.platforms.discord.components import form_payload, opens_form, rows_payload
from tests.contract.discord_world import check_body


def test_buttons_keep_within_discords_grid() -> None:
    """A long row goes on in the next one, and there are five rows at most."""
    rows = (tuple(Button(f"{n}", f"why:{n}") for n in range(7)), (Button("x" * 200, "fix"),))
    payload = rows_payload(rows)
    assert [len(row["components"]) for row in payload] == [5, 2, 1]
    assert len(payload[2]["components"][0]["label"]) == 80
    many = rows_payload(tuple((Button("x", f"a{n}"),) for n in range(9)))
    check_body({"content": "x", "components": many})


@pytest.mark.parametrize(
    ("action", "expected"),
    [("fix", True), ("why:4", True), ("fix:abc", True), ("why:4:abc", True), ("why:0", False), ("why:40", False)],
)
def test_some_presses_open_a_form(action: str, expected: bool) -> None:
    """Correcting, and giving another reason, ask for a text; the other presses do not."""
    assert opens_form(action) is expected


@pytest.mark.parametrize("action", ["fix", "why:4", "why:4:abc"])
def test_a_form_keeps_within_discords_limits(action: str) -> None:
    """Title and label have 45 characters at most, and the form comes back under its action."""
    form = form_payload(action)
    box = form["components"][0]["components"][0]
    assert form["custom_id"] == action
    assert 1 <= len(form["title"]) <= 45
    assert 1 <= len(box["label"]) <= 45
    assert box["max_length"] <= 4000
