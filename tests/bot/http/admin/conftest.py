"""An operator who is signed in."""

import pytest

from tests.bot.conftest import Heed
from tests.bot.http.admin.rig import Operator


@pytest.fixture
async def operator(heed: Heed) -> Operator:
    """Signed in to the dashboards of a heed with default settings."""
    operator = Operator(heed)
    assert (await operator.sign_in()).status == 303
    return operator
