"""bot.http.protocol.auth: the caller of a request, and the pages that may call."""

from typing import Any
from urllib.parse import quote

import pytest
from yarl import URL

from storage.people import api_keys
from storage.tables import ApiKey
from tests.bot.conftest import Heed, StartHeed

KEYS = {"api_keys": {"ana": "a" * 20, "bob": "b" * 20}}


def bearer(key: str) -> dict[str, str]:
    """Return the header with a key."""
    return {"Authorization": f"Bearer {key}"}


async def test_without_keys_the_user_is_a_local_person(heed: Heed) -> None:
    """Without keys `user` separates people, and the default is "local"."""
    await heed.ask("bees", user="ana")
    await heed.ask("bees")
    for user in ("ana", "local"):
        _, export = await heed.get(f"/v1/users/{user}/export")
        assert len(export["completions"]) == 1


@pytest.mark.parametrize("header", [{}, bearer("wrong"), {"Authorization": "Basic " + "a" * 20}, bearer("é" * 20)])
async def test_with_keys_a_call_needs_one(start_heed: StartHeed, header: dict[str, str]) -> None:
    """A missing, wrong or non-ASCII key, and another scheme, are 401 with WWW-Authenticate."""
    heed = await start_heed(http=KEYS)
    for path in ("/v1/models", "/metrics", "/v1/users/ana"):
        response = await heed.client.get(path, headers=header)
        assert (response.status, response.headers["WWW-Authenticate"]) == (401, "Bearer")
        assert (await response.json())["error"]["type"] == "authentication_error"


async def test_health_and_the_page_need_no_key(start_heed: StartHeed) -> None:
    """Probes and the page need no key, because they show nothing of anyone."""
    heed = await start_heed(http=KEYS)
    for path in ("/", "/healthz", "/readyz", "/static/main.js"):
        assert (await heed.client.get(path)).status == 200


async def test_a_key_is_a_person(start_heed: StartHeed) -> None:
    """A key cannot reach the answers of another key's people, whatever name it sends."""
    heed = await start_heed(http=KEYS)
    body = {"messages": [{"role": "user", "content": "bees"}]}
    status, answer = await heed.post("/v1/chat/completions", body, headers=bearer("a" * 20))
    assert status == 200
    for name in ("ana", "", "bob", "ana/", "../ana"):
        feedback = {"completion_id": answer["id"], "kind": "correction", "text": "x", "user": name}
        assert (await heed.post("/v1/feedback", feedback, headers=bearer("b" * 20)))[0] == 404
    feedback = {"completion_id": answer["id"], "kind": "correction", "text": "x"}
    assert (await heed.post("/v1/feedback", feedback, headers=bearer("a" * 20)))[0] == 200


async def test_several_people_behind_one_key_are_apart(start_heed: StartHeed) -> None:
    """`user` names people behind the key; the key's own name and "local" are the key itself."""
    heed = await start_heed(http=KEYS)
    for user in ("", "ana", "local", "carl"):
        body = {"messages": [{"role": "user", "content": "bees"}], "user": user}
        await heed.post("/v1/chat/completions", body, headers=bearer("a" * 20))
    counts = []
    for user in ("ana", "carl"):
        _, export = await heed.get(f"/v1/users/{user}/export", headers=bearer("a" * 20))
        counts.append(len(export["completions"]))
    assert counts == [3, 1]


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "[::1", ""])
async def test_another_host_name_is_refused(heed: Heed, host: str) -> None:
    """A name rebound to loopback is refused (DNS rebinding)."""
    response = await heed.client.get("/v1/models", headers={"Host": host})
    assert (response.status, (await response.json())["error"]["type"]) == (403, "permission_error")


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:1234", "[::1]:80", "LOCALHOST"])
async def test_loopback_names_are_answered(heed: Heed, host: str) -> None:
    """Every name of the machine's loopback is answered."""
    assert (await heed.client.get("/v1/models", headers={"Host": host})).status == 200


async def test_a_named_host_is_answered(start_heed: StartHeed) -> None:
    """http.allowed_hosts adds host names."""
    heed = await start_heed(http={"allowed_hosts": ["heed.home"]})
    assert (await heed.client.get("/v1/models", headers={"Host": "heed.home"})).status == 200


@pytest.mark.parametrize(
    "headers",
    [{"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": "http://["}, {"Origin": "http://127.0.0.1:1"},
     {"Sec-Fetch-Site": "cross-site"}],
)  # fmt: skip
async def test_another_sites_page_cannot_post(heed: Heed, headers: dict[str, str]) -> None:
    """A foreign or unreadable Origin, another port, and a cross-site request are refused."""
    status, _ = await heed.post("/v1/feedback", {"kind": "note", "text": "x"}, headers=headers)
    assert status == 403
    assert (await heed.get("/v1/users/local/notes"))[1]["data"] == []


async def test_heeds_own_page_can_post(heed: Heed) -> None:
    """The page's own Origin is accepted."""
    origin = str(heed.client.make_url("/")).rstrip("/")
    headers = {"Origin": origin, "Sec-Fetch-Site": "same-origin"}
    assert (await heed.post("/v1/feedback", {"kind": "note", "text": "x"}, headers=headers))[0] == 200


@pytest.mark.parametrize("name", ["../../etc", "a" * 64, "Ána", "日本", "a b", "%2e%2e", "{}", "'; drop table user"])
async def test_any_visible_name_is_a_person(heed: Heed, name: str) -> None:
    """Names are looked up, never used as a path or a query."""
    await heed.ask("bees", user=name)
    _, export = await heed.get(URL(f"/v1/users/{quote(name, safe='')}/export", encoded=True))
    assert len(export["completions"]) == 1


@pytest.mark.parametrize("name", ["a" * 65, "a\nb", "a\x00b", "a\u202eb", "a\u200bb"])
async def test_an_invisible_or_long_name_is_refused(heed: Heed, name: str) -> None:
    """Invisible characters are refused, because they would make two names look alike."""
    body: dict[str, Any] = {"messages": [{"role": "user", "content": "x"}], "user": name}
    status, answer = await heed.post("/v1/chat/completions", body)
    assert (status, answer["error"]["param"]) == (400, "user")


@pytest.fixture(autouse=True)
def keys_hold_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check the keys anew at each call."""
    monkeypatch.setattr("bot.access.api_keys.ANY_EVERY_S", 0.0)


async def stored_key(heed: Heed, *scopes: str, **fields: Any) -> dict[str, str]:
    """Return the header with a new key of Ana, made as `heed keys` does."""
    token = api_keys.new_token()
    row = ApiKey(account="ana", sha256=api_keys.digest(token), scopes=list(scopes), **fields)
    await heed.core.database.write(lambda s: api_keys.add(s, row))
    return bearer(token)


async def test_a_stored_key_closes_heed_and_opens_what_it_may(heed: Heed) -> None:
    """A new key needs no restart; a call outside its scopes is 403 and changes nothing."""
    assert (await heed.get("/v1/models"))[0] == 200
    header = await stored_key(heed, "chat")
    assert (await heed.get("/v1/models"))[0] == 401
    assert (await heed.get("/v1/models", headers=header))[0] == 200
    body = {"kind": "note", "text": "x"}
    status, answer = await heed.post("/v1/feedback", body, headers=header)
    assert (status, answer["error"]["type"]) == (403, "permission_error")
    assert "'feedback'" in answer["error"]["message"]
    assert (await heed.post("/v1/users/ana/rollback", {"version": 0}, headers=header))[0] == 403
    assert (await heed.client.get("/metrics", headers=header)).status == 403
    full = await stored_key(heed, "feedback")
    assert (await heed.get("/v1/users/ana/notes", headers=full))[1]["data"] == []


async def test_commands_need_every_everyday_scope(heed: Heed) -> None:
    """Commands need all everyday scopes, and an admin's commands the scope admin, too."""
    chat = await stored_key(heed, "chat", "person")
    assert (await heed.post("/v1/users/ana/commands", {"text": "/help"}, headers=chat))[0] == 403
    full = await stored_key(heed, "chat", "person", "feedback", "adapters")
    assert (await heed.post("/v1/users/ana/commands", {"text": "/help"}, headers=full))[0] == 200
    assert "/stats" not in (await heed.post("/v1/users/ana/commands", {"text": "/help"}, headers=full))[1]["text"]
    admin = await stored_key(heed, "chat", "person", "feedback", "adapters", "admin")
    assert "/stats" in (await heed.post("/v1/users/ana/commands", {"text": "/help"}, headers=admin))[1]["text"]


async def test_a_spent_quota_is_429_with_the_time(heed: Heed) -> None:
    """Answers and lessons have separate quotas, and a refused call has no effect."""
    header = await stored_key(heed, "chat", "feedback", "person", messages_per_day=1, updates_per_day=1)
    asked = {"messages": [{"role": "user", "content": "bees"}]}
    status, answer = await heed.post("/v1/chat/completions", asked, headers=header)
    assert status == 200
    response = await heed.client.post("/v1/chat/completions", json=asked, headers=header)
    assert (response.status, (await response.json())["error"]["type"]) == (429, "rate_limit_error")
    assert 0 < int(response.headers["Retry-After"]) <= 86_400
    taught = {"completion_id": answer["id"], "kind": "correction", "text": "too long"}
    assert (await heed.post("/v1/feedback", taught, headers=header))[0] == 200
    assert (await heed.post("/v1/feedback", taught | {"text": "no emoji"}, headers=header))[0] == 429
    assert (await heed.post("/v1/feedback", {"kind": "note", "text": "x"}, headers=header))[0] == 200
    _, export = await heed.get("/v1/users/ana/export", headers=header)
    assert len(export["completions"]) == 1
    assert [row["kind"] for row in export["feedback"]] == ["correction", "note"]


async def test_an_answer_given_again_is_a_message(heed: Heed) -> None:
    """`retry: true` needs the chat scope and counts as a message, once for a call that is sent again with its key."""
    chat = await stored_key(heed, "chat", "feedback", messages_per_day=2)
    asked = {"messages": [{"role": "user", "content": "bees"}]}
    _, answer = await heed.post("/v1/chat/completions", asked, headers=chat)
    taught = {"completion_id": answer["id"], "kind": "correction", "text": "too long", "retry": True}
    for _ in range(2):
        assert (await heed.post("/v1/feedback", taught, headers=chat | {"Idempotency-Key": "once"}))[0] == 200
    assert (await heed.post("/v1/feedback", taught | {"text": "no emoji"}, headers=chat))[0] == 429
    assert (await heed.post("/v1/feedback", taught | {"retry": False, "text": "no emoji"}, headers=chat))[0] == 200
    mute = await stored_key(heed, "feedback")
    status, refused = await heed.post("/v1/feedback", {"kind": "note", "text": "x", "retry": True}, headers=mute)
    assert (status, "'chat'" in refused["error"]["message"]) == (403, True)


async def test_a_revoked_key_opens_nothing(heed: Heed) -> None:
    """A revoked key is refused from the next call on."""
    header = await stored_key(heed, "chat")
    await stored_key(heed, "chat")
    assert (await heed.get("/v1/models", headers=header))[0] == 200
    key = (await heed.core.database.read(api_keys.everything))[0]
    await heed.core.database.write(lambda s: api_keys.revoke(s, key.id))
    assert (await heed.get("/v1/models", headers=header))[0] == 401


@pytest.mark.parametrize("origin", ["http://[", "http://[::1", "//"])
async def test_an_origin_that_is_no_address_is_refused(heed: Heed, origin: str) -> None:
    """An Origin that is no address is 403."""
    assert (await heed.get("/v1/models", headers={"Origin": origin}))[0] == 403


async def test_several_answers_are_several_messages(heed: Heed) -> None:
    """A call's answers all fit into the day's quota, or none is given."""
    header = await stored_key(heed, "chat", messages_per_day=3)
    body = {"messages": [{"role": "user", "content": "bees"}]}
    calls = [heed.post("/v1/chat/completions", {**body, "n": n}, headers=header) for n in (2, 2, 1, 1)]
    assert [(await call)[0] for call in calls] == [200, 429, 200, 429]


async def test_a_quota_holds_in_others_forms_of_a_call_too(heed: Heed) -> None:
    """CLaaS's feedback and continualcode's sessions use the same quota as heed's own calls."""
    header = await stored_key(heed, "chat", "feedback", "adapters", messages_per_day=1, updates_per_day=3)
    await heed.post("/v1/lora/init", {"lora_id": "x"}, headers=header)
    batch = {"requests": [{"lora_id": "x", "prompt": "bees", "response": "Bees hum.", "feedback": "too long"}] * 2}
    assert [(await heed.post("/v1/feedback", batch, headers=header))[0] for _ in range(2)] == [200, 429]
    assert heed.engine.num_learned == 2
    assert (await heed.post("/v1/feedback", {"requests": batch["requests"][:1]}, headers=header))[0] == 200
    _, session = await heed.post("/api/sessions", {}, headers=header)
    path, said = f"/api/sessions/{session['id']}", {"text": "bees"}
    assert [(await heed.post(f"{path}/prompt", said, headers=header))[0] for _ in range(2)] == [200, 429]
    revised = {"kind": "revise", "text": "too long"}
    assert (await heed.post(f"{path}/feedback", revised, headers=header))[0] == 429
    assert (await heed.post(f"{path}/feedback", {"kind": "accept"}, headers=header))[0] == 200
    assert heed.engine.num_learned == 3


async def test_a_stored_key_sees_its_own_adapters(heed: Heed) -> None:
    """A key sees neither another key's adapters nor those from before it, also as models."""
    await heed.post("/v1/lora/init", {"lora_id": "ben"})
    header = await stored_key(heed, "chat", "adapters")
    await heed.post("/v1/lora/init", {"lora_id": "x"}, headers=header)
    assert (await heed.get("/v1/lora", headers=header))[1] == {"loras": ["x"]}
    assert [model["id"] for model in (await heed.get("/v1/models", headers=header))[1]["data"]] == ["heed", "heed-base"]
