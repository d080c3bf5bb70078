"""bot.http.api.adapters: versions, and the way back."""

from typing import Any

import pytest

from engine.adapters.training_batch import BATCH_FILE, MANIFEST_FILE
from storage.learning import versions
from storage.people import people
from tests import adapter_zips
from tests.bot.conftest import Heed, StartHeed, answered, text_of

ME = "/v1/users/local"


async def taught_twice(heed: Heed) -> str:
    """Teach two lessons. Return the answer before them."""
    first = await heed.ask("bees")
    await heed.correct(first["id"], "too long")
    await heed.correct(first["id"], "no emoji")
    return text_of(first)


async def test_versions_say_what_taught_them(heed: Heed) -> None:
    """Versions are listed newest first, each with its feedback and its update."""
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
    """Undo removes the version and the note of the last lesson together."""
    await taught_twice(heed)
    assert (await heed.post(f"{ME}/undo", {}))[1] == {"adapter_version": 1, "note": "no emoji"}
    assert [note["text"] for note in (await heed.get(f"{ME}/notes"))[1]["data"]] == ["too long"]


async def test_an_adapter_is_made_ready_ahead(heed: Heed) -> None:
    """Of a person who is known; of a stranger none is made."""
    assert await heed.post("/v1/users/eve/prepare", {}) == (200, {"adapter_version": 0})
    assert heed.engine.prepared == []
    await taught_twice(heed)
    assert await heed.post(f"{ME}/prepare", {}) == (200, {"adapter_version": 2})
    (user_id,) = heed.engine.prepared
    assert (await heed.core.gateway.user(user_id)).active_version == 2
    assert (await heed.get("/v1/users/eve"))[1]["active_version"] == 0


@pytest.mark.parametrize(("version", "status"), [(9, 404), (-1, 400), ("1", 400), (None, 400), (2**70, 400)])
async def test_a_wrong_version_is_refused(heed: Heed, version: object, status: int) -> None:
    """An unknown or malformed version is refused, and the active one stays."""
    await taught_twice(heed)
    assert (await heed.post(f"{ME}/rollback", {"version": version}))[0] == status
    assert (await heed.get(ME))[1]["active_version"] == 2


async def test_a_stranger_has_nothing_to_undo(heed: Heed) -> None:
    """An undo for an unknown person is 404."""
    assert (await heed.post("/v1/users/eve/undo", {}))[0] == 404


async def test_a_consolidation_can_be_asked_for(heed: Heed) -> None:
    """A consolidation returns figures and a sentence, and has nothing to do the second time."""
    await taught_twice(heed)
    status, done = await heed.post(f"{ME}/consolidate", {})
    assert (status, done["status"], done["num_new"]) == (200, "learned", 2)
    assert done["text"] == "Consolidated: v2 from 2 new signals in 2.0 s."
    assert (await heed.post(f"{ME}/consolidate", {}))[1]["status"] == "kept"
    assert (await heed.post("/v1/users/nobody/consolidate", {}))[0] == 404


async def test_a_rebuild_can_be_asked_for(heed: Heed) -> None:
    """A rebuild makes a new active version; an unknown person has none."""
    await taught_twice(heed)
    status, done = await heed.post(f"{ME}/rebuild", {})
    assert (status, done["status"], done["adapter_version"], done["is_rebuild"]) == (200, "learned", 3, True)
    assert done["text"] == "Made again from zero: v3 from 0 new signals in 2.0 s."
    assert (await heed.post("/v1/users/nobody/rebuild", {}))[0] == 404


async def test_a_consolidation_that_takes_too_long_is_queued(start_heed: StartHeed) -> None:
    """A slow consolidation is answered with `queued`, and goes on."""
    heed = await start_heed(chat={"learn_timeout_s": 0.05})
    await heed.ask("bees")
    heed.engine.learn_delay_s = 3600
    assert (await heed.post(f"{ME}/consolidate", {}))[1]["status"] == "queued"


async def sent(heed: Heed, content: bytes, user: str = "local") -> tuple[int, dict[str, Any]]:
    """POST a file. Return the status and the JSON of the answer."""
    return await answered(heed.client.post(f"/v1/users/{user}/adapters", data=content))


async def test_a_version_goes_out_as_a_file_and_comes_in_for_somebody_else(heed: Heed) -> None:
    """An imported version is the newest, names its origin, and can be undone."""
    await taught_twice(heed)
    async with heed.client.get(f"{ME}/adapters/2/export") as response:
        content = await response.read()
        assert (response.status, response.content_type) == (200, "application/zip")
        assert 'filename="heed-adapter-v2.zip"' in response.headers["Content-Disposition"]
    assert await sent(heed, content, "ben") == (200, {"adapter_version": 1})
    _, listed = await heed.get("/v1/users/ben/adapters")
    assert (listed["active_version"], listed["data"][0]["taught_by"]["kind"]) == (1, "import")
    assert listed["data"][0]["taught_by"]["text"] == "imported: v2 of an adapter for fake"
    assert (await heed.post("/v1/users/ben/undo", {}))[1] == {"adapter_version": 0, "note": None}


async def test_what_a_version_was_trained_on_goes_out_as_a_file(heed: Heed) -> None:
    """A version's training data is JSONL with a manifest; 404 if it was not stored."""
    await taught_twice(heed)
    async with heed.client.get(f"{ME}/adapters/1/batch") as response:
        content = await response.read()
        assert (response.status, response.content_type) == (200, "application/zip")
        assert 'filename="heed-batch-v1.zip"' in response.headers["Content-Disposition"]
    assert set(adapter_zips.contents(content)) == {BATCH_FILE, MANIFEST_FILE}
    for number in (2, 7):
        assert (await heed.get(f"{ME}/adapters/{number}/batch"))[0] == 404


@pytest.mark.parametrize("kind", adapter_zips.bad())
async def test_a_bad_file_changes_nothing(heed: Heed, kind: str) -> None:
    """A bad file is 400 with one line; it makes no version and no person."""
    await taught_twice(heed)
    content, words = adapter_zips.bad()[kind]
    for user in ("local", "eve"):
        status, answer = await sent(heed, content, user)
        assert status == 400, answer
        assert words in answer["error"]["message"]
        assert "\n" not in answer["error"]["message"]
    assert len((await heed.get(f"{ME}/adapters"))[1]["data"]) == 2
    assert (await heed.get(ME))[1]["active_version"] == 2
    assert (await heed.post("/v1/users/eve/undo", {}))[0] == 404


async def test_an_adapter_of_another_model_is_refused(heed: Heed) -> None:
    """An adapter of another model is 400 with the reason."""
    status, answer = await sent(heed, adapter_zips.packed(base_model="another"))
    assert (status, "another base model" in answer["error"]["message"]) == (400, True)


async def test_a_file_that_is_too_large_is_not_read(start_heed: StartHeed) -> None:
    """A file over its own limit is 413."""
    heed = await start_heed(versions={"max_import_bytes": 4096}, http={"body_limit_bytes": 1024})
    status, answer = await sent(heed, b"x" * 5000)
    assert (status, answer["error"]["message"]) == (413, "The file is larger than 4096 bytes.")
    content = adapter_zips.packed()
    assert 1024 < len(content) < 4096
    assert (await sent(heed, content))[0] == 200


async def test_what_is_not_kept_cannot_go_out(heed: Heed) -> None:
    """An unknown, pruned or another person's version, and the base model, cannot be exported."""
    await taught_twice(heed)
    for place, status in (("9", 404), ("0", 404), ("x", 404)):
        assert (await heed.get(f"{ME}/adapters/{place}/export"))[0] == status
    assert (await heed.get("/v1/users/eve/adapters/1/export"))[0] == 404
    first = await heed.ask("bees")
    await heed.correct(first["id"], "a question")
    database = heed.core.database
    user = await database.read(lambda s: people.find(s, "http", "local"))
    assert user is not None
    await database.write(lambda s: versions.prune(s, user.id, 2))
    status, answer = await heed.get(f"{ME}/adapters/1/export")
    assert (status, "not kept any more" in answer["error"]["message"]) == (400, True)
    status, answer = await heed.post(f"{ME}/rollback", {"version": 1})
    assert (status, "not kept any more" in answer["error"]["message"]) == (400, True)
    assert [entry["state"] for entry in (await heed.get(f"{ME}/adapters"))[1]["data"]][-1] == "pruned"


@pytest.mark.parametrize(("path", "body"), [("undo", {}), ("rollback", {"version": 1}), ("consolidate", {})])
async def test_a_stranger_is_named_as_one(heed: Heed, path: str, body: dict[str, int]) -> None:
    """The refusal says that heed does not know the person, and no id of a row."""
    status, answer = await heed.post(f"/v1/users/eve/{path}", body)
    assert (status, answer["error"]["message"]) == (404, "heed does not know this person.")
