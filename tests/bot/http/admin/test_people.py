"""bot.http.admin.people: versions with the feedback that taught them, the way back, differences, and files."""

import io
import zipfile

import pytest

from bot.http.admin import paging
from bot.http.admin.people import changes
from storage.people import people
from storage.reports import admin_views
from tests.bot.http.admin.rig import Operator
from tests.bot.http.admin.taught import pupil


async def test_each_version_shows_what_taught_it(operator: Operator) -> None:
    """Each version is shown with its feedback, its update and a button to activate it; notes are listed."""
    await pupil(operator.heed)
    known = await pupil(operator.heed, correction="no emoji")
    page = await operator.text(f"/admin/people/{known.id}")
    for words in ("correction: too long", "correction: no emoji", "Make v1 active", "Make v0 active",
                  f"/admin/updates/{known.update_id}", f"/people/{known.id}/adapters/2", "Notes"):  # fmt: skip
        assert words in page, words
    assert "Let v2 answer" not in page
    assert known.id in await operator.text("/admin/people")


async def test_people_are_searched_and_the_last_seen_is_first(operator: Operator) -> None:
    """The search looks into names and accounts; a place that is none is refused."""
    for name in ("ana", "ben"):
        await operator.heed.ask("bees", user=name)
    page = await operator.text("/admin/people")
    assert page.index(">ben<") < page.index(">ana<")
    found = await operator.text("/admin/people?search=AN")
    assert ">ana<" in found
    assert ">ben<" not in found
    assert "No one has these words" in await operator.text("/admin/people?search=nothing")
    assert (await operator.get("/admin/people?after=x")).status == 400


async def test_the_way_back(operator: Operator) -> None:
    """Another version becomes active; an unknown one is refused and changes nothing."""
    known = await pupil(operator.heed)
    database = operator.heed.core.database
    path = f"/admin/people/{known.id}/rollback"
    for version, status in (("7", 404), ("x", 400), ("-1", 400), ("0", 303)):
        assert (await database.read(lambda s: people.get(s, known.id))).active_version == 1
        assert (await operator.act(path, version=version)).status == status
    assert (await database.read(lambda s: people.get(s, known.id))).active_version == 0


async def test_two_versions_side_by_side(operator: Operator) -> None:
    """Two versions' answers to the same question show their difference, and the view is recorded."""
    known = await pupil(operator.heed)
    page = await operator.text(f"/admin/people/{known.id}/diff?first=0&second=1")
    assert "<del>" in page
    assert "bees" in page
    assert "No question has been answered by both versions." in await operator.text(
        f"/admin/people/{known.id}/diff?first=1&second=2"
    )
    looked = await operator.heed.core.database.read(lambda s: admin_views.recent(s, known.id, 9))
    assert [look.about for look in looked] == ["v1 v2", "v0 v1"]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("a b", "a b", [("same", "a b")]),
        ("a b c", "a c", [("same", "a "), ("gone", "b "), ("same", "c")]),
        ("a", "b", [("gone", "a"), ("new", "b")]),
        ("", "b", [("new", "b")]),
        ("", "", []),
    ],
)
def test_changes_are_whole_words(before: str, after: str, expected: list[tuple[str, str]]) -> None:
    """A diff lists removed words before new ones and loses nothing of either text."""
    found = changes(before, after)
    assert found == expected
    assert "".join(words for kind, words in found if kind != "new") == before
    assert "".join(words for kind, words in found if kind != "gone") == after


async def test_a_version_goes_out_as_a_file(operator: Operator) -> None:
    """A version is sent as the zip file that PEFT reads, and the export is recorded."""
    known = await pupil(operator.heed)
    response = await operator.get(f"/admin/people/{known.id}/adapters/1")
    assert zipfile.is_zipfile(io.BytesIO(await response.read()))
    looked = await operator.heed.core.database.read(lambda s: admin_views.recent(s, known.id, 9))
    assert [(look.page, look.about) for look in looked] == [("export", "v1")]
    assert (await operator.get(f"/admin/people/{known.id}/adapters/9")).status == 404


async def test_lists_as_files_and_in_pages(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    """People and versions are listed in pages and files, with words only of people who let heed learn."""
    monkeypatch.setattr(paging, "ROWS", 1)
    monkeypatch.setattr(paging, "CSV_ROWS", 1)
    known = await pupil(operator.heed)
    await pupil(operator.heed, name="ben")
    assert len((await operator.text("/admin/people?format=csv")).splitlines()) == 3
    first = await operator.text("/admin/people")
    after = first.split("&amp;after=")[1].split('"')[0]
    assert ">More<" not in await operator.text(f"/admin/people?after={after}")
    assert "too long" in await operator.text(f"/admin/people/{known.id}?format=csv")
    await operator.heed.core.database.write(lambda s: people.set_learning(s, known.id, False))
    for form in ("", "?format=csv"):
        assert "too long" not in await operator.text(f"/admin/people/{known.id}{form}")
