"""bot.http.admin.routes: every page of the navigation exists."""

from bot.http.admin.render import PAGES
from tests.bot.http.admin.rig import Operator


async def test_every_page_of_the_bar_is_there(operator: Operator) -> None:
    """Each page of the navigation opens on an empty heed and is marked as current."""
    for path, name in PAGES.items():
        page = await operator.text(path)
        assert f'<a href="{path}" aria-current="page">{name}</a>' in page
