"""bot.http.api.chats: a person's conversations as a list."""

from typing import Any

from tests.bot.conftest import Heed, StartHeed
from tests.patience import until

ME = "/v1/users/local/chats"


async def listed(heed: Heed, query: str = "", **options: Any) -> list[tuple[str, str]]:
    """Name and title of each conversation."""
    status, found = await heed.get(f"{ME}{query}", **options)
    assert status == 200, found
    return [(chat["chat"], chat["title"]) for chat in found["data"]]


async def test_conversations_are_listed_searched_renamed_and_deleted(heed: Heed) -> None:
    """The last used is first; a search looks into answers, too; a title is changed and given back."""
    for chat, text in (("web-1", "bees"), ("session/2", "wasps"), ("web-1", "ants")):
        await heed.ask(text, heed={"chat": chat})
    assert await listed(heed) == [("web-1", "bees"), ("session/2", "wasps")]
    assert await listed(heed, "?search=about%20WASPS") == [("session/2", "wasps")]
    response = await heed.client.patch(f"{ME}/session%2F2", json={"title": "  Stings "})
    assert await response.json() == {"chat": "session/2", "title": "Stings"}
    assert await listed(heed, "?search=sting") == [("session/2", "Stings")]
    response = await heed.client.delete(f"{ME}/web-1")
    assert await response.json() == {"deleted": "web-1"}
    assert await listed(heed) == [("session/2", "Stings")]


async def test_another_persons_conversation_does_not_exist(heed: Heed) -> None:
    """It is not listed, not renamed and not deleted; a title that is too long is refused."""
    await heed.ask("bees", user="ana", heed={"chat": "web-1"})
    assert await listed(heed) == []
    assert (await heed.client.patch(f"{ME}/web-1", json={"title": "x"})).status == 404
    assert (await heed.client.delete(f"{ME}/web-1")).status == 404
    assert (await heed.client.patch("/v1/users/ana/chats/web-1", json={"title": "x" * 81})).status == 400


async def test_a_stopped_answer_is_stored_with_what_was_written(heed: Heed) -> None:
    """The stream ends as any other, and the conversation goes on with the part that is there."""
    heed.engine.token_delay_s = 0.05
    body = {"messages": [{"role": "user", "content": "bees"}], "heed": {"chat": "web"}, "stream": True}
    response = await heed.client.post("/v1/chat/completions", json=body)
    first = await response.content.readuntil(b"\n\n")
    completion_id = first.decode().partition('"id": "')[2].partition('"')[0]
    await until(lambda: heed.engine.requests)
    assert (await heed.post(f"/v1/chat/completions/{completion_id}/stop?user=ana", None))[1] == {"stopped": False}
    assert (await heed.post(f"/v1/chat/completions/{completion_id}/stop", None))[1] == {"stopped": True}
    rest = await response.text()
    assert rest.rstrip().endswith("[DONE]")
    assert '"finish_reason": "stop"' in rest
    _, history = await heed.get("/v1/users/local/history?chat=web")
    stored = history["data"][0][0]
    assert stored["finish_reason"] == "stopped"
    assert stored["text"].startswith("You")
    assert "know more?" not in stored["text"]
    assert (await heed.post(f"/v1/chat/completions/{completion_id}/stop", None))[1] == {"stopped": False}


async def test_a_person_knows_whose_key_it_is(start_heed: StartHeed) -> None:
    """The summary names the account; a key that is none is told from a missing one."""
    heed = await start_heed(http={"api_keys": {"ana": "a" * 20}})
    headers = {"Authorization": f"Bearer {'a' * 20}"}
    for name, account in (("local", "ana"), ("ana", "ana"), ("bob", "ana/bob")):
        _, person = await heed.get(f"/v1/users/{name}", headers=headers)
        assert (person["account"], person["has_key"]) == (account, True)
    status, refused = await heed.get("/v1/users/local", headers={"Authorization": "Bearer wrong"})
    assert (status, refused["error"]["message"]) == (401, "heed does not know this API key.")
    status, refused = await heed.get("/v1/users/local")
    assert "An API key is needed" in refused["error"]["message"]
