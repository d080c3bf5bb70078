"""bot.http.api.notes: standing notes."""

from tests.bot.conftest import Heed, text_of

ME = "/v1/users/local"


async def test_notes_have_their_state_and_price(heed: Heed) -> None:
    """Learned notes save their tokens; a note that is not learned yet brings all into the prompt."""
    first = await heed.ask("bees")
    await heed.correct(first["id"], "too long")
    _, listed = await heed.get(f"{ME}/notes")
    assert (listed["tokens_saved"], listed["tokens_in_prompt"]) == (2, 0)
    await heed.post("/v1/feedback", {"kind": "note", "text": "call me Ana"})
    _, listed = await heed.get(f"{ME}/notes")
    assert [(note["text"], note["state"]) for note in listed["data"]] == [
        ("too long", "in_weights"),
        ("call me Ana", "in_prompt"),
    ]
    assert (listed["tokens_saved"], listed["tokens_in_prompt"]) == (0, 5)


async def test_the_notes_in_the_prompt_are_those_of_the_next_answer(heed: Heed) -> None:
    """Of more notes than the prompt takes, the newest are there; the others wait, and cost and save nothing."""
    for number in range(40):
        await heed.post("/v1/feedback", {"kind": "note", "text": f"wish number {number}"})
    _, listed = await heed.get(f"{ME}/notes")
    marked = [note["in_prompt"] for note in listed["data"]]
    assert marked == [False] * 24 + [True] * 16
    assert [note["state"] for note in listed["data"]] == ["waiting"] * 24 + ["in_prompt"] * 16
    assert (listed["tokens_saved"], listed["tokens_in_prompt"]) == (0, 16 * 3)
    _, said = await heed.post(f"{ME}/commands", {"text": "/notes"})
    assert "1. wish number 0  (the prompt has no room for it now)" in said["text"]
    assert "40. wish number 39  (in the prompt)" in said["text"]


async def test_a_note_that_no_prompt_takes_is_refused_with_the_number(heed: Heed) -> None:
    """By the call and by the command, and nothing is kept of it."""
    long = " ".join(["word"] * 501)
    status, refused = await heed.post("/v1/feedback", {"kind": "note", "text": long})
    words = "The note has 501 tokens, and a note may have at most 500. Shorten it."
    assert (status, refused["error"]["message"], refused["error"]["param"]) == (400, words, "text")
    status, refused = await heed.post(f"{ME}/commands", {"text": f"/note {long}"})
    assert (status, refused["error"]["message"]) == (400, words)
    assert (await heed.get(f"{ME}/notes"))[1]["data"] == []


async def test_a_note_is_deleted(heed: Heed) -> None:
    """A deleted note is gone from the list and from the next prompt."""
    _, kept = await heed.post("/v1/feedback", {"kind": "note", "text": "call me Ana"})
    response = await heed.client.delete(f"{ME}/notes/{kept['note_id']}")
    assert (response.status, await response.json()) == (200, {"deleted": kept["note_id"]})
    assert (await heed.get(f"{ME}/notes"))[1]["data"] == []
    assert "Ana" not in text_of(await heed.ask("bees"))


async def test_another_persons_note_is_unknown(heed: Heed) -> None:
    """Deleting another person's note is 404, and the note stays."""
    _, kept = await heed.post("/v1/feedback", {"kind": "note", "text": "call me Ana", "user": "ana"})
    for user in ("local", "bob"):
        await heed.ask("bees", user=user)
        assert (await heed.client.delete(f"/v1/users/{user}/notes/{kept['note_id']}")).status == 404
    assert len((await heed.get("/v1/users/ana/notes"))[1]["data"]) == 1
