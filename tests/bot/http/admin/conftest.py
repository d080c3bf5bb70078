"""A signed-in operator for the tests of the dashboards."""

import pytest

from tests.bot.conftest import Heed
from tests.bot.http.admin.rig import Operator


@pytest.fixture
async def operator(heed: Heed) -> Operator:
    """Return an operator who is signed in to a heed with default settings."""
    operator = Operator(heed)
    assert (await operator.sign_in()).status == 303
    return operator
