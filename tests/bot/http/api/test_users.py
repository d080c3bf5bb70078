"""bot.http.api.users: summary, history, commands, export, erasure."""

import asyncio
from base64 import b64decode
from collections.abc import AsyncIterator
from typing import Any

import pytest
from sqlmodel import func, select

from bot.events import Author
from engine.errors import AdapterRefused, EngineDown, PromptTooLongError, RequestRefused
from engine.requests import Delta
from storage.learning import better_answers
from storage.people import api_keys, people
from storage.tables import ApiKey, BetterAnswer, Chat
from tests import adapter_zips
from tests.bot.conftest import Heed, StartHeed

ME = "/v1/users/local"


async def test_a_stranger_is_empty(heed: Heed) -> None:
    """The summary of an unknown person is empty and creates no person."""
    assert (await heed.get("/v1/users/eve"))[1]["active_version"] == 0
    for path in ("history", "notes", "adapters"):
        assert (await heed.get(f"/v1/users/eve/{path}"))[1]["data"] == []
    assert (await heed.client.delete("/v1/users/eve")).status == 404


CHAT, TEXT, FEEDBACK = "/v1/chat/completions", "/v1/completions", "/v1/feedback"
COMMANDS = "/v1/users/eve/commands"
ASKED = {"user": "eve", "messages": [{"role": "user", "content": "bees"}]}


async def is_unknown(heed: Heed, account: str = "eve") -> bool:
    """True if there is neither a person behind the account nor a conversation of one."""
    names = await heed.core.database.read(lambda s: people.accounts(s, "http"))
    num_chats = await heed.core.database.read(lambda s: s.exec(select(func.count()).select_from(Chat)).one())
    return (account in names, num_chats) == (False, 0)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (CHAT, {"user": "eve", "messages": [], "heed": {"regenerate": "chatcmpl-none"}}),
        (CHAT, {"user": "eve", "messages": [{"role": "user", "content": " "}]}),
        (FEEDBACK, {"user": "eve", "completion_id": "chatcmpl-none", "kind": "correction", "text": "too long"}),
        (FEEDBACK, {"user": "eve", "kind": "note", "text": "x" * 100_000}),
        (FEEDBACK, {"lora_id": "eve", "prompt": "bees", "response": "Bees.", "feedback": "too long"}),
        ("/v1/users/eve/undo", {}),
        ("/v1/users/eve/rollback", {"version": 3}),
        ("/v1/users/eve/consolidate", {}),
        ("/v1/lora/init", {"lora_id": "eve", "base_model": "another"}),
        ("/api/sessions/none/prompt?user=eve", {"text": "bees"}),
        ("/api/sessions/none/feedback?user=eve", {"kind": "accept"}),
        (COMMANDS, {"text": "/nonsense"}),
        (COMMANDS, {"text": "/feedback"}),
        (COMMANDS, {"text": "/feedback too long"}),
        (COMMANDS, {"text": "/feedback too long", "completion_id": "cmpl-none"}),
        (COMMANDS, {"text": "/note " + "word " * 2000}),
        (COMMANDS, {"text": "/note"}),
        (COMMANDS, {"text": "/notes delete 9"}),
        (COMMANDS, {"text": "/retry"}),
        (COMMANDS, {"text": "/undo"}),
        (COMMANDS, {"text": "/justthis"}),
        (COMMANDS, {"text": "/fromnowon"}),
        (COMMANDS, {"text": "/rollback 3"}),
        (COMMANDS, {"text": "/rollback three"}),
        (COMMANDS, {"text": "/history many"}),
        (COMMANDS, {"text": "/learning perhaps"}),
    ],
)
async def test_a_refused_call_makes_no_person(heed: Heed, path: str, body: dict[str, object]) -> None:
    """A call that names what is not there, or asks for what there is not, leaves nothing behind."""
    status, answer = await heed.post(path, body)
    assert 400 <= status < 500, answer
    assert await is_unknown(heed)


@pytest.mark.parametrize("failure", [PromptTooLongError("too long"), RequestRefused("no", "stop"), EngineDown("down")])
@pytest.mark.parametrize(
    ("path", "body"),
    [
        (CHAT, ASKED),
        (CHAT, {**ASKED, "stream": True}),
        (CHAT, {**ASKED, "n": 2}),
        (CHAT, {**ASKED, "heed": {"chat": "web"}}),
        (TEXT, {"user": "eve", "prompt": "bees"}),
        ("/v1/score", {**ASKED, "completion": "Bees."}),
    ],
)
async def test_a_call_that_the_engine_refuses_makes_no_person(
    heed: Heed, path: str, body: dict[str, object], failure: Exception
) -> None:
    """Neither a person nor a conversation; the same call makes both once the engine answers it."""
    heed.engine.generate = heed.engine.score = refusing(failure)  # type: ignore[method-assign,assignment]
    status, answer = await heed.post(path, body)
    assert status >= 400, answer
    assert await is_unknown(heed)


def refusing(failure: Exception) -> Any:
    """Return a call of an engine that refuses whatever it is asked."""

    async def refuse(*_: object) -> AsyncIterator[Delta]:
        raise failure
        yield

    async def once(*given: object) -> None:
        await anext(refuse(*given))

    def either(*given: object) -> Any:
        return once(*given) if len(given) > 1 else refuse(*given)  # `score` takes the answer, too

    return either


@pytest.mark.parametrize(
    ("path", "body"),
    [(CHAT, ASKED), (CHAT, {**ASKED, "stream": True}), (TEXT, {"user": "eve", "prompt": "bees"})],
)
async def test_a_call_that_is_over_its_quota_makes_no_person(
    start_heed: StartHeed, path: str, body: dict[str, object]
) -> None:
    """A key whose messages of the day are used up makes no person behind it."""
    heed = await start_heed()
    token = api_keys.new_token()
    key = ApiKey(account="program", sha256=api_keys.digest(token), scopes=["chat"], messages_per_day=0)
    await heed.core.database.write(lambda s: api_keys.add(s, key))
    status, answer = await heed.post(path, body, headers={"Authorization": f"Bearer {token}"})
    assert (status, answer["error"]["code"]) == (429, "rate_limit_exceeded")
    assert await is_unknown(heed, "program/eve")


async def test_an_import_that_is_refused_when_tried_makes_no_person(
    heed: Heed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An adapter that writes garbage leaves nothing behind of a stranger, and leaves a known person as they are."""
    await heed.ask("bees", user="ana")

    async def refuse(*_: object) -> int:
        raise AdapterRefused("its answers make no sense")

    monkeypatch.setattr(heed.engine, "import_adapter", refuse)
    for user, is_kept in (("eve", False), ("ana", True)):
        async with heed.client.post(f"/v1/users/{user}/adapters", data=adapter_zips.packed()) as response:
            assert response.status == 400
        assert bool((await heed.core.gateway.known(Author("http", user))).id) == is_kept


@pytest.mark.parametrize(
    "text",
    [
        "/help", "/notes", "/history", "/metrics", "/versions", "/persona", "/learning", "/reset", "/export",
        "/privacy", "/cancel", "/start", "/forget everything",
    ],
)  # fmt: skip
async def test_a_command_that_keeps_nothing_makes_no_person(heed: Heed, text: str) -> None:
    """A stranger is answered as a person without anything is."""
    status, answer = await heed.post(COMMANDS, {"text": text})
    assert (status, bool(answer["text"])) == (200, True)
    assert await is_unknown(heed)


@pytest.mark.parametrize("text", ["/note call me Eve", "/persona a pirate", "/learning off", "/learning follow-ups on"])
async def test_a_command_that_keeps_something_makes_the_person(heed: Heed, text: str) -> None:
    """A stranger's wish is kept."""
    assert (await heed.post(COMMANDS, {"text": text}))[0] == 200
    assert not await is_unknown(heed)


async def test_calls_of_a_stranger_at_the_same_time_make_one_person(heed: Heed) -> None:
    """Their answers and their conversation belong to one person, whose idempotency keys hold from the first call on."""
    key = {"Idempotency-Key": "k"}
    calls = [heed.post(CHAT, {**ASKED, "heed": {"chat": "web"}}) for _ in range(4)]
    answers = await asyncio.gather(*calls, heed.post(CHAT, ASKED, headers=key))
    assert [status for status, _ in answers] == [200] * 5
    _, again = await heed.post(CHAT, ASKED, headers=key)
    assert again["id"] == answers[-1][1]["id"]
    _, found = await heed.get("/v1/users/eve/chats")
    assert [(chat["chat"], chat["num_answers"]) for chat in found["data"]] == [("web", 4)]


async def test_history_survives_a_restart(start_heed: StartHeed) -> None:
    """After a restart a conversation has its questions, answers, feedback and heat map."""
    heed = await start_heed()
    first = await heed.ask("bees", heed={"chat": "web"})
    learned = await heed.correct(first["id"], "too long", retry=True)
    later = await start_heed()
    _, history = await later.get(f"{ME}/history")
    ((before, after),) = history["data"]
    assert (before["question"], before["completion_id"]) == ("bees", first["id"])
    assert before["feedback"][0]["update"]["heat"] == learned["update"]["heat"]
    assert (after["completion_id"], after["adapter_version"]) == (learned["retry"]["completion_id"], 1)


async def test_a_better_answer_is_shown_with_whom_it_is_from(heed: Heed) -> None:
    """A better answer and its author are in the summary, the history and /history."""
    first = await heed.ask("bees", heed={"chat": "web"})
    user_id = await heed.core.gateway.person(Author("http", "local"))
    row = BetterAnswer(
        user_id=user_id, completion_id=first["id"], text="Bees.", source="base model", notes=[], state="accepted"
    )
    stored = await heed.core.database.write(lambda s: better_answers.add(s, row))
    _, history = await heed.get(f"{ME}/history")
    assert history["data"][0][0]["better"]["text"] == "Bees."
    _, said = await heed.post(f"{ME}/commands", {"text": "/history"})
    assert said["text"].endswith("better, by base model: Bees.")
    await heed.core.database.write(lambda s: better_answers.take_in(s, user_id, "upd-1", [stored.id]))
    _, summary = await heed.get(ME)
    (shown,) = summary["better_answers"]
    assert (shown["source"], shown["state"], shown["completion_id"]) == ("base model", "taken in", first["id"])


async def test_conversations_have_names(heed: Heed) -> None:
    """Each chat name is a conversation of its own."""
    await heed.ask("bees", heed={"chat": "one"})
    await heed.ask("wasps", heed={"chat": "two"})
    _, history = await heed.get(f"{ME}/history?chat=two")
    assert [answers[0]["question"] for answers in history["data"]] == ["wasps"]


@pytest.mark.parametrize("limit", ["0", "201", "x", "-1", "1" * 30, "²", "000000001" + "9" * 5000, "0000000011200"])
async def test_a_limit_is_a_number(heed: Heed, limit: str) -> None:
    """A limit that is no number in range is refused."""
    status, answer = await heed.get(f"{ME}/history", params={"limit": limit})
    assert (status, answer["error"]["param"]) == (400, "limit")


async def test_commands_work_over_http(heed: Heed) -> None:
    """A command returns its text, its lesson and the new answer."""
    first = await heed.ask("bees", heed={"chat": "web"})
    _, said = await heed.post(f"{ME}/commands", {"text": "/feedback too long"})
    assert (said["command"], said["feedback"]["status"]) == ("feedback", "learned")
    assert said["answer"]["retry_of"] == first["id"]
    _, said = await heed.post(f"{ME}/commands", {"text": "/history"})
    assert "bees" in said["text"]


async def test_a_commands_files_come_along(heed: Heed) -> None:
    """The zip of /export and the chart of /stats come as base64."""
    await heed.ask("bees")
    _, said = await heed.post(f"{ME}/commands", {"text": "/export"})
    ((name, start),) = ((file["name"], b64decode(file["base64"])[:2]) for file in said["files"])
    assert (name, start) == ("heed-export.zip", b"PK")
    _, said = await heed.post(f"{ME}/commands", {"text": "/help"})
    assert said["files"] == []


async def test_the_operators_page_has_the_admins_commands(start_heed: StartHeed) -> None:
    """Admin commands work on loopback; with API keys only for the admins of the settings."""
    heed = await start_heed()
    assert (await heed.post(f"{ME}/commands", {"text": "/users"}))[0] == 200
    keys = {"ana": "a long random text", "ben": "another random text"}
    shared = await start_heed(http={"api_keys": keys}, access={"admins": ("http:ana",)})
    for name, status in (("ana", 200), ("ben", 400)):
        headers = {"Authorization": f"Bearer {keys[name]}"}
        answer = await shared.post(f"/v1/users/{name}/commands", {"text": "/users"}, headers=headers)
        assert answer[0] == status


@pytest.mark.parametrize("text", ["hello", "/dance", "", "/feedback too long"])
async def test_a_wrong_command_is_refused(heed: Heed, text: str) -> None:
    """A text without slash, an unknown command, and feedback on nothing are refused."""
    status, answer = await heed.post(f"{ME}/commands", {"text": text})
    assert status in (404, 400)
    assert answer["error"]["message"]


async def test_undo_with_nothing_to_undo_is_a_conflict(heed: Heed) -> None:
    """An undo without a lesson is 409 with a sentence."""
    await heed.ask("bees")
    status, answer = await heed.post(f"{ME}/commands", {"text": "/undo"})
    assert (status, answer["error"]["message"]) == (409, "there is no lesson to take back")


async def test_export_is_everything(heed: Heed) -> None:
    """The export has every table about the person, token ids included, as a download."""
    first = await heed.ask("bees")
    await heed.correct(first["id"], "too long")
    response = await heed.client.get(f"{ME}/export")
    assert "attachment" in response.headers["Content-Disposition"]
    export = await response.json()
    assert {"user", "completions", "feedback", "notes", "adapter_versions", "updates"} <= set(export)
    assert export["completions"][0]["completion_token_ids"]
    assert all(export[name] for name in ("identities", "feedback", "notes", "adapter_versions", "updates"))
    await heed.client.delete(f"{ME}/notes/{export['notes'][0]['id']}")
    assert (await heed.get(f"{ME}/export"))[1]["notes"][0]["state"] == "deleted"


async def test_forgetting_leaves_nothing(heed: Heed) -> None:
    """After DELETE the person is unknown, and so are their answers."""
    first = await heed.ask("bees", heed={"chat": "web"})
    await heed.correct(first["id"], "too long")
    assert (await heed.client.delete(ME)).status == 200
    assert (await heed.get(f"{ME}/history"))[1]["data"] == []
    status, _ = await heed.post("/v1/feedback", {"completion_id": first["id"], "kind": "correction", "text": "x"})
    assert status == 404
    assert (await heed.ask("bees"))["heed"]["adapter_version"] == 0


async def test_learning_off_keeps_corrections(heed: Heed) -> None:
    """With learning off a correction becomes a note and makes no version."""
    first = await heed.ask("bees")
    await heed.post(f"{ME}/commands", {"text": "/learning off"})
    assert (await heed.correct(first["id"], "too long"))["status"] == "kept"
    assert (await heed.get(ME))[1]["is_learning"] is False
