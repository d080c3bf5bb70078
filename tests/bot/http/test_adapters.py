"""bot.http.adapters: versions, and the way back."""

import pytest

from tests.bot.conftest import Heed, text_of

ME = "/v1/users/local"


async def taught_twice(heed: Heed) -> str:
    """Two lessons; the text before them."""
    first = await heed.ask("bees")
    await heed.correct(first["id"], "too long")
    await heed.correct(first["id"], "no emoji")
    return text_of(first)


async def test_versions_say_what_taught_them(heed: Heed) -> None:
    """Newest first, each with its words and its update."""
    await taught_twice(heed)
    _, listed = await heed.get(f"{ME}/adapters")
    assert [(entry["version"], entry["taught_by"]["text"]) for entry in listed["data"]] == [
        (2, "no emoji"),
        (1, "too long"),
    ]
    assert listed["active_version"] == 2
    assert listed["data"][0]["update"] == {"steps": 10, "duration_ms": 1234.0}


async def test_an_earlier_version_answers_again(heed: Heed) -> None:
    """Rolling back to 0 brings the first answer back, word for word."""
    before = await taught_twice(heed)
    _, done = await heed.post(f"{ME}/rollback", {"version": 0})
    assert done == {"adapter_version": 0}
    assert text_of(await heed.ask("bees", heed={"notes": "off"})) == before


async def test_undo_takes_one_lesson(heed: Heed) -> None:
    """Version and note of the last lesson go together."""
    await taught_twice(heed)
    assert (await heed.post(f"{ME}/undo", {}))[1] == {"adapter_version": 1, "note": "no emoji"}
    assert [note["text"] for note in (await heed.get(f"{ME}/notes"))[1]["data"]] == ["too long"]


@pytest.mark.parametrize(("version", "status"), [(9, 404), (-1, 422), ("1", 422), (None, 422), (2**70, 422)])
async def test_a_wrong_version_is_refused(heed: Heed, version: object, status: int) -> None:
    """No such version, and what is no version; the active one stays."""
    await taught_twice(heed)
    assert (await heed.post(f"{ME}/rollback", {"version": version}))[0] == status
    assert (await heed.get(ME))[1]["active_version"] == 2


async def test_a_stranger_has_nothing_to_undo(heed: Heed) -> None:
    """404 for somebody heed never met."""
    assert (await heed.post("/v1/users/eve/undo", {}))[0] == 404
