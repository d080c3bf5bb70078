"""bot.access.admin_password: made once, replaced when wanted, stored as a digest."""

from bot.access import admin_password
from storage import settings
from storage.database import Database


async def test_the_first_one_is_made_once(database: Database) -> None:
    """Shown at the first start; at the next there is nothing to show."""
    assert await admin_password.current(database) == ""
    password = await admin_password.first(database)
    assert password is not None
    assert len(password) == 43
    assert await admin_password.first(database) is None
    assert await admin_password.current(database) == admin_password.digest(password)
    assert password not in str(await database.read(lambda s: settings.get(s, admin_password.SETTING)))


async def test_another_one_takes_its_place(database: Database) -> None:
    """The one before is nobody's."""
    first, second = await admin_password.another(database), await admin_password.another(database)
    assert first != second
    assert await admin_password.current(database) == admin_password.digest(second)
