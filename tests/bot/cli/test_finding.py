"""bot.cli.finding: what needs doing."""

import pytest

from bot.cli.finding import Finding


@pytest.mark.parametrize(
    ("finding", "is_ok"),
    [
        (Finding("disk", "9 GiB free"), True),
        (Finding("disk", "0 GiB free", "free some disk space"), False),
        (Finding("learning", "uncalibrated", "run heed calibrate", is_hint=True), True),
    ],
)
def test_a_remedy_has_to_be_done_unless_it_is_a_hint(finding: Finding, is_ok: bool) -> None:
    """Without one all is well."""
    assert finding.is_ok is is_ok
