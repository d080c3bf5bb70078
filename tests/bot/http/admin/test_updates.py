"""bot.http.admin.updates: the list, and one update with everything stored about it."""

import pytest

from bot.http.admin import paging
from storage.people import people
from storage.reports import admin_views
from tests.bot.http.admin.rig import Operator
from tests.bot.http.admin.taught import pupil


async def test_an_update_opens_to_everything(operator: Operator) -> None:
    """An update shows question, answers, feedback, teacher's prompt, heat map, curves, phases, gates and figures."""
    known = await pupil(operator.heed)
    page = await operator.text(f"/admin/updates/{known.update_id}")
    for words in ("You asked about bees", "Feedback: correction", "Before, v0", "After, v1", "The teacher's prompt",
                  "- a note of ana", "[Feedback of this person on an earlier attempt at this answer: too long]",
                  "<polyline", "<span>publish</span>", "34 ms", "is_finite", "update_norm", "0.5", "down heat-",
                  "1.5000 nats per token before, 0.0200 after"):  # fmt: skip
        assert words in page, words
    looked = await operator.heed.core.database.read(lambda s: admin_views.recent(s, known.id, 5))
    assert [(look.page, look.about) for look in looked] == [("updates", known.update_id)]


async def test_without_learning_no_words_are_shown(operator: Operator) -> None:
    """With learning off, only figures are shown and no view is recorded."""
    known = await pupil(operator.heed)
    await operator.heed.core.database.write(lambda s: people.set_learning(s, known.id, False))
    page = await operator.text(f"/admin/updates/{known.update_id}")
    assert "their words are not shown" in page
    assert "<polyline" in page
    for words in ("bees", "too long", "a note of ana", "subject"):
        assert words not in page, words
    assert await operator.heed.core.database.read(lambda s: admin_views.recent(s, known.id, 5)) == []


async def test_the_list_goes_on_by_key(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next page starts after this one, and keeps the filters."""
    monkeypatch.setattr(paging, "ROWS", 2)
    for said in ("bees", "wasps", "ants"):
        await pupil(operator.heed, said=said)
    first = await operator.text("/admin/updates?status=accepted")
    assert first.count("/admin/updates/upd-") == 2
    assert "/admin/updates?status=accepted&amp;person=&amp;before=2" in first
    second = await operator.text("/admin/updates?status=accepted&before=2")
    assert second.count("/admin/updates/upd-") == 1
    assert ">Older<" not in second
    assert (await operator.text("/admin/updates?status=failed")).count("/admin/updates/upd-") == 0


async def test_the_list_as_a_file(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    """The CSV file has all updates, or one person's."""
    monkeypatch.setattr(paging, "CSV_ROWS", 2)
    for said in ("bees", "wasps", "ants"):
        known = await pupil(operator.heed, said=said)
    await pupil(operator.heed, name="ben")
    assert len((await operator.text("/admin/updates?format=csv")).splitlines()) == 5
    lines = (await operator.text(f"/admin/updates?format=csv&person={known.id}")).splitlines()
    assert len(lines) == 4
    assert lines[1].startswith(known.update_id)
