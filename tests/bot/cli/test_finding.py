"""bot.cli.finding: what needs doing."""

import pytest

from bot.cli.finding import Finding


@pytest.mark.parametrize(
    ("finding", "is_ok", "mark"),
    [
        (Finding("disk", "9 GiB free"), True, "ok"),
        (Finding("disk", "0 GiB free", "free some disk space"), False, "!!"),
        (Finding("learning", "uncalibrated", "run heed calibrate", is_hint=True), True, "--"),
        (Finding("learning", "calibrated", is_hint=True), True, "ok"),
    ],
)
def test_a_remedy_has_to_be_done_unless_it_is_a_hint(finding: Finding, is_ok: bool, mark: str) -> None:
    """Without one all is well; a hint with one is marked otherwise than what is well and what is in the way."""
    assert (finding.is_ok, finding.mark[0]) == (is_ok, mark)
