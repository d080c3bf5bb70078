"""How the tests are spread over processes."""

import pytest

from tests import spread

SHARED = {"one_heed": "tests.live_heed", "live": "tests.engine.live"}  # fixtures, and what is imported to name them


def test_each_file_is_run_by_one_process() -> None:
    """Its fixtures are made once."""
    assert spread.group("tests/test_spread.py") == "tests/test_spread.py"


def test_what_is_started_once_is_used_by_one_process(request: pytest.FixtureRequest) -> None:
    """Tests of all files that share a fixture run in one process: every other process would start another."""
    for item in request.session.items:
        for fixture in SHARED.keys() & getattr(item, "fixturenames", ()):
            assert spread.group(item.location[0]) == SHARED[fixture], f"{item.nodeid}: import {SHARED[fixture]}"
