"""bot.http.continualcode.sessions: continualcode's web calls."""

from typing import Any

import pytest
from yarl import URL

from tests.bot.conftest import Heed, StartHeed

PATH = "/api/sessions"


async def opened(heed: Heed, **body: Any) -> str:
    """Return the path of a new session."""
    status, session = await heed.post(PATH, body)
    assert status == 200, session
    return f"{PATH}/{session['id']}"


async def test_a_session_is_a_conversation(heed: Heed) -> None:
    """Each prompt is answered with the earlier turns in view, and all turns can be read again."""
    session = await opened(heed)
    for text in ("bees", "wasps"):
        status, answer = await heed.post(f"{session}/prompt", {"text": text})
        assert (status, set(answer)) == (200, {"response", "completion_id", "session_id"})
    assert [m["content"] for m in heed.engine.requests[-1].messages][::2] == ["bees", "wasps"]
    _, shown = await heed.get(session)
    assert [m["role"] for m in shown["messages"]] == ["user", "assistant"] * 2
    assert shown["messages"][-1]["content"] == answer["response"]
    assert shown["metrics"] == {}


async def test_a_session_needs_no_body(heed: Heed) -> None:
    """A session can be created without a body, as continualcode's page does."""
    response = await heed.client.post(PATH)
    assert (response.status, (await response.json())["messages"]) == (200, [])


@pytest.mark.parametrize(("kind", "text"), [("revise", "too long"), ("ideal", "Bees hum.")])
async def test_feedback_teaches_and_answers_again(heed: Heed, kind: str, text: str) -> None:
    """The new answer replaces the old one, and the metrics are the lesson's."""
    session = await opened(heed)
    _, before = await heed.post(f"{session}/prompt", {"text": "bees"})
    status, given = await heed.post(f"{session}/feedback", {"kind": kind, "text": text})
    assert status == 200, given
    assert given["response"] != before["response"]
    assert (given["metrics"]["sdpo_step"], given["metrics"]["sdpo_kl"], given["metrics"]["optim/steps"]) == (1, 1.5, 10)
    assert given["metrics"]["credit/adv_abs_max"] == 1.8
    assert given["feedback"]["status"] == "learned"
    _, shown = await heed.get(session)
    assert [m["content"] for m in shown["messages"]] == ["bees", given["response"]]
    assert shown["metrics"] == given["metrics"]


async def test_accepting_teaches_nothing(heed: Heed) -> None:
    """An accepted answer stays and is approved."""
    session = await opened(heed)
    _, answer = await heed.post(f"{session}/prompt", {"text": "bees"})
    _, given = await heed.post(f"{session}/feedback", {"kind": "accept"})
    assert (given["response"], given["metrics"]) == (answer["response"], {})
    assert heed.engine.num_learned == 0
    assert (await heed.get("/v1/users/local/export"))[1]["completions"][0]["is_gold"]


async def test_clearing_and_deleting(heed: Heed) -> None:
    """A cleared session starts anew, and a deleted one is gone."""
    session = await opened(heed)
    await heed.post(f"{session}/prompt", {"text": "bees"})
    assert (await heed.post(f"{session}/clear", {}))[1]["messages"] == []
    assert (await heed.get(session))[1]["messages"] == []
    assert (await (await heed.client.delete(session)).json()) == {"deleted": True}
    for call in (
        heed.get(session),
        heed.post(f"{session}/prompt", {"text": "bees"}),
        heed.post(f"{session}/clear", {}),
    ):
        status, answer = await call
        assert (status, answer["error"]["param"]) == (404, "id")
    assert (await heed.get(PATH))[1] == {"sessions": []}


async def test_sessions_are_their_persons_own(heed: Heed) -> None:
    """Another person cannot see a session, and heed's own chats are not listed."""
    session = await opened(heed, user="ana")
    await heed.ask("bees", user="ana", heed={"chat": "web"})
    assert len((await heed.get(f"{PATH}?user=ana"))[1]["sessions"]) == 1
    assert (await heed.get(PATH))[1] == {"sessions": []}
    assert (await heed.get(session))[0] == 404
    assert (await heed.get(f"{session}?user=ana"))[0] == 200


async def test_with_keys_a_session_needs_its_key(start_heed: StartHeed) -> None:
    """A session is 401 without a key and 404 with another's."""
    heed = await start_heed(http={"api_keys": {"ana": "a" * 20, "ben": "b" * 20}})
    ana, ben = ({"Authorization": f"Bearer {letter * 20}"} for letter in "ab")
    _, session = await heed.post(PATH, {}, headers=ana)
    path = f"{PATH}/{session['id']}"
    assert [(await heed.get(path, headers=headers))[0] for headers in ({}, ben, ana)] == [401, 404, 200]
    assert (await heed.get("/api/profiles"))[0] == 401


@pytest.mark.parametrize(
    ("path", "body", "status", "param"),
    [
        ("", {"profile": "twitter_short"}, 400, "profile"),
        ("", {"binary_modes": ["use_emojis"]}, 400, "binary_modes"),
        ("/prompt", {"text": " "}, 400, "text"),
        ("/prompt", {}, 400, "text"),
        ("/prompt", {"text": "x" * 16_001}, 400, "messages"),
        ("/feedback", {"kind": "deny"}, 400, "kind"),
        ("/feedback", {"kind": "accept"}, 404, "id"),
    ],
)
async def test_what_is_wrong_is_named(heed: Heed, path: str, body: dict[str, Any], status: int, param: str) -> None:
    """A wrong field is named and changes nothing; feedback needs an answer."""
    session = await opened(heed)
    found, answer = await heed.post(f"{session if path else PATH}{path}", body)
    assert (found, answer["error"]["param"]) == (status, param)
    assert len((await heed.get(PATH))[1]["sessions"]) == 1
    assert (await heed.get("/v1/users/local/export"))[1]["completions"] == []


@pytest.mark.parametrize("kind", ["revise", "ideal"])
async def test_a_revision_needs_words(heed: Heed, kind: str) -> None:
    """A revision without words is 400 and teaches nothing."""
    session = await opened(heed)
    await heed.post(f"{session}/prompt", {"text": "bees"})
    assert (await heed.post(f"{session}/feedback", {"kind": kind, "text": " "}))[0] == 400
    assert heed.engine.num_learned == 0


async def test_the_profiles_are_listed(heed: Heed) -> None:
    """There is one profile."""
    assert await heed.get("/api/profiles") == (200, {"profiles": ["default"]})


@pytest.mark.parametrize(("name", "status"), [("nothing", 404), ("%00", 400), ("x" * 65, 400)])
async def test_an_unknown_session_is_not_there(heed: Heed, name: str, status: int) -> None:
    """An unknown or malformed session id is refused."""
    found, answer = await heed.get(URL(f"{PATH}/{name}", encoded=True))
    assert (found, answer["error"]["param"]) == (status, "id")
