"""bot.http.admin.conversations: only with consent, and every view is recorded."""

import logging

import pytest

from bot.http.admin import paging
from storage.people import people
from storage.reports import admin_views
from tests.bot.conftest import Heed
from tests.bot.http.admin.rig import Operator
from tests.bot.http.admin.taught import pupil


async def talk(heed: Heed, name: str, *texts: str) -> str:
    """Send a message in a stored conversation. Return the person's id."""
    for text in texts:
        await heed.ask(text, user=name, heed={"chat": "web"})
    found = await heed.core.database.read(lambda s: people.find(s, "http", name))
    assert found is not None
    return found.id


async def test_a_view_of_a_conversation_is_recorded(operator: Operator, caplog: pytest.LogCaptureFixture) -> None:
    """Opening a conversation is recorded in the log and in storage; the list alone is no view."""
    caplog.set_level(logging.INFO)
    user_id = await talk(operator.heed, "ana", "bees", "wasps")
    page = await operator.text("/admin/conversations")
    assert "bees" not in page
    link = page.split('href="/admin/conversations/')[1].split('"')[0]
    database = operator.heed.core.database
    assert await database.read(lambda s: admin_views.recent(s, user_id, 9)) == []
    shown = await operator.text(f"/admin/conversations/{link}")
    assert shown.index("wasps") < shown.index("bees")
    looked = await database.read(lambda s: admin_views.recent(s, user_id, 9))
    assert [f"{look.page}/{look.about}" for look in looked] == [f"conversations/{link.split('/')[1]}"]
    assert f"looks at conversations {link.split('/')[1]} of {user_id}" in caplog.text


async def test_without_consent_there_is_nothing(operator: Operator) -> None:
    """Conversations of people without consent are in no list, no file and at no address."""
    user_id = await talk(operator.heed, "ana", "bees")
    link = (await operator.text("/admin/conversations")).split('href="/admin/conversations/')[1].split('"')[0]
    await operator.heed.core.database.write(lambda s: people.set_learning(s, user_id, False))
    for path in ("/admin/conversations", f"/admin/conversations/{link}", "/admin/conversations?format=csv",
                 f"/admin/conversations/{link}?format=csv"):  # fmt: skip
        page = await operator.text(path)
        assert "bees" not in page
        assert link not in page.replace(path, "")


async def test_files_of_the_list_and_of_one(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    """A CSV file has all rows, and cells that a spreadsheet would run are made harmless."""
    monkeypatch.setattr(paging, "CSV_ROWS", 1)
    user_id = await talk(operator.heed, "ana", "=1+1", "wasps")
    await pupil(operator.heed)
    lines = (await operator.text("/admin/conversations?format=csv")).splitlines()
    assert [line.split(",")[4] for line in lines] == ["answers", "2", "2"]
    chat = lines[2].split(",")[0]
    rows = (await operator.text(f"/admin/conversations/{user_id}/{chat}?format=csv")).splitlines()
    assert len(rows) == 3
    assert ",'=1+1," in rows[2]
