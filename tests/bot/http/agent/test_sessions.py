"""bot.http.agent.sessions: an agent over HTTP, from a message to the call that ran, and back."""

import asyncio
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientResponse, web
from sqlmodel import select

from bot.agent import repository
from bot.agent.workspaces import BRING_BACK
from bot.events import Author
from bot.http.agent.sessions import AGENTS
from storage.tables import Feedback
from tests.bot.agent.minds import piece
from tests.bot.agent.repositories import make_conflict, make_repository
from tests.bot.agent.workspaces import names
from tests.bot.conftest import Heed, StartHeed
from tests.patience import PATIENCE_S, until

PATH = "/api/sessions"


async def opened(heed: Heed, **body: Any) -> str:
    """The path of a new session in the workspace."""
    status, session = await heed.post(PATH, {"workspace": "work", **body})
    assert status == 200, session
    assert (session["id"][:6], session["status"], session["call"]) == ("agent-", "idle", None)
    return f"{PATH}/{session['id']}"


def will_call(heed: Heed, tool: str, **arguments: Any) -> None:
    """From now on every answer calls this."""
    heed.engine.calls = [piece(tool, json.dumps(arguments))]


async def said(heed: Heed, path: str, **body: Any) -> dict[str, Any]:
    """What a message or a decision leads to."""
    status, step = await heed.post(path, body)
    assert status == 200, step
    return step


async def decided(heed: Heed, session: str, what: str, **body: Any) -> dict[str, Any]:
    """What a decision about the call that waits leads to."""
    _, shown = await heed.get(session)
    return await said(heed, f"{session}/{what}", mark=shown["call"]["mark"], **body)


async def test_from_a_message_to_a_file(allowed: Heed, folder: Path) -> None:
    """The call is shown, waits, runs, and can be read again."""
    session = await opened(allowed)
    will_call(allowed, "write", path="a.txt", content="one\n")
    asked = await said(allowed, f"{session}/prompt", text="write a.txt")
    assert (asked["status"], asked["response"], asked["results"]) == ("waiting", None, [])
    assert asked["call"]["arguments"] == {"path": "a.txt", "content": "one\n"}
    assert "+one" in asked["call"]["preview"]
    assert (await allowed.get(session))[1]["call"] == asked["call"]
    assert names(folder) == set()
    allowed.engine.calls = []
    done = await decided(allowed, session, "approve")
    assert (done["status"], done["call"], done["results"][0]["success"]) == ("idle", None, True)
    assert done["response"]
    _, shown = await allowed.get(session)
    assert [message["role"] for message in shown["messages"]] == ["user", "assistant", "tool", "assistant"]
    assert [message.get("about") for message in shown["messages"]] == [None, "a.txt", None, None]
    assert names(folder) == {"a.txt"}


async def test_a_decision_names_its_call(allowed: Heed, folder: Path) -> None:
    """One about another call, or sent again, is refused and does nothing; one about none is not read."""
    session = await opened(allowed)
    will_call(allowed, "write", path="a.txt", content="one\n")
    first = (await said(allowed, f"{session}/prompt", text="write"))["call"]["mark"]
    will_call(allowed, "bash", command="rm a.txt")
    second = (await said(allowed, f"{session}/approve", mark=first))["call"]
    for path, more in (("approve", {}), ("deny", {"text": "no"}), ("edit", {"arguments": {"command": "ls"}})):
        status, refusal = await allowed.post(f"{session}/{path}", {"mark": first, **more})
        assert (status, refusal["error"]["code"]) == (409, "call_changed")
        assert refusal["error"]["message"] == "Another call waits by now. Look at it first."
        status, refusal = await allowed.post(f"{session}/{path}", more)
        assert (status, refusal["error"]["param"]) == (400, "mark")
    assert (await allowed.get(session))[1]["call"] == second
    assert (names(folder), allowed.engine.num_learned) == ({"a.txt"}, 0)


async def test_what_a_call_hides_is_seen(allowed: Heed) -> None:
    """While it waits and once it is done."""
    session = await opened(allowed)
    will_call(allowed, "bash", command="echo \u202e")
    asked = await said(allowed, f"{session}/prompt", text="say it")
    assert asked["call"]["about"] == "echo <U+202E>"
    allowed.engine.calls = []
    await decided(allowed, session, "approve")
    assert (await allowed.get(session))[1]["messages"][1]["about"] == "echo <U+202E>"


async def test_lessons_are_told_of_the_work(allowed: Heed) -> None:
    """For the teacher alone: the session shows it, no prompt holds it."""
    session = await opened(allowed)
    assert (await said(allowed, f"{session}/notes", text="It uses Poetry."))["notes"] == ["It uses Poetry."]
    will_call(allowed, "read", path="none")
    await said(allowed, f"{session}/prompt", text="read")
    await decided(allowed, session, "deny", text="The file is called some.")
    assert (await allowed.get(session))[1]["notes"] == ["It uses Poetry."]
    assert all("Poetry" not in str(request.messages) for request in allowed.engine.requests)
    rows = await allowed.core.database.read(lambda s: s.exec(select(Feedback)).all())
    assert rows[-1].context == ["It uses Poetry.", 'The call was read {"path": "none"}.']
    for text in ("", "a" * 501):
        assert (await allowed.post(f"{session}/notes", {"text": text}))[0] == 400


async def test_the_repository_is_shown(allowed: Heed, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When a session begins and whenever it is read, as it is then; null where there is none."""
    monkeypatch.setattr(repository, "SLOW_S", PATIENCE_S)
    assert (await allowed.get(await opened(allowed)))[1]["git"] is None
    make_repository(folder)
    status, begun = await allowed.post(PATH, {"workspace": "work"})
    assert (status, begun["git"]) == (200, {"branch": "main", "changed": 0, "conflicts": []})
    will_call(allowed, "write", path="b.txt", content="one\n")
    session = f"{PATH}/{begun['id']}"
    await said(allowed, f"{session}/prompt", text="write b.txt")
    allowed.engine.calls = []
    await decided(allowed, session, "approve")
    assert (await allowed.get(session))[1]["git"]["changed"] == 1
    make_conflict(folder)
    assert (await allowed.get(await opened(allowed)))[1]["git"]["conflicts"] == ["a.txt"]


async def test_a_note_about_a_workspace_holds_there_only(allowed: Heed) -> None:
    """In the session that is open and in those to come, in no other workspace, and for no one else."""
    session = await opened(allowed)
    noted = await said(allowed, "/api/workspaces/notes", workspace="work", text="It uses Poetry.")
    assert noted["notes"] == ["It uses Poetry."]
    for path, is_told in ((session, True), (await opened(allowed), True), (await opened(allowed, workspace=""), False)):
        await said(allowed, f"{path}/prompt", text="hello")
        assert ("Poetry" in str(allowed.engine.requests[-1].messages)) == is_told
    listed = await said(allowed, "/api/workspaces/notes", workspace="work", user="ben")
    assert listed["notes"] == []
    assert (await allowed.post("/api/workspaces/notes", {"workspace": "work", "text": "delete 2"}))[0] == 400


async def test_only_a_note_that_is_kept_makes_a_person(allowed: Heed) -> None:
    """Looking does not, nor does what is refused."""
    gateway, ben = allowed.core.gateway, Author("http", "ben")
    for text in ("", "delete 1", "a" * 501):
        await allowed.post("/api/workspaces/notes", {"user": "ben", "text": text})
        assert (await gateway.known(ben)).id == ""
    await said(allowed, "/api/workspaces/notes", user="ben", text="It uses Poetry.")
    assert (await gateway.known(ben)).id


async def test_a_no_is_learned(allowed: Heed, folder: Path) -> None:
    """And tried again; other arguments are learned and wait; a failure can be corrected."""
    session = await opened(allowed)
    will_call(allowed, "read", path="none")
    await said(allowed, f"{session}/prompt", text="read")
    denied = await decided(allowed, session, "deny", text="The file is called some.")
    assert denied["lesson"]["line"].startswith("Learned: v1")
    assert (bool(denied["lesson"]["heat"]), denied["lesson"]["version"]) == (True, 1)
    edited = await decided(allowed, session, "edit", arguments={"path": "some"})
    assert (edited["call"]["is_edited"], edited["call"]["arguments"]["path"]) == (True, "some")
    failed = await decided(allowed, session, "approve")
    assert (failed["status"], failed["results"][0]["success"]) == ("failed", False)
    again = await said(allowed, f"{session}/continue", text=failed["results"][0]["feedback"])
    assert (again["status"], allowed.engine.num_learned) == ("waiting", 3)
    assert (await decided(allowed, session, "deny"))["status"] == "idle"


async def test_a_tool_can_be_allowed_and_a_running_one_stopped(allowed: Heed, folder: Path) -> None:
    """Also from another client of the person's."""
    session = await opened(allowed)
    will_call(allowed, "bash", command="touch begun; sleep 4725")
    mark = (await said(allowed, f"{session}/prompt", text="wait"))["call"]["mark"]
    running = asyncio.create_task(allowed.post(f"{session}/approve", {"mark": mark, "always": True}))
    await until((folder / "begun").exists)
    assert (await allowed.get(session))[1]["status"] == "working"
    assert (await allowed.post(f"{session}/prompt", {"text": "more"}))[0] == 409
    assert await said(allowed, f"{session}/stop") == {"stopped": True}
    assert (await running)[1]["status"] == "idle"
    assert (await allowed.get(session))[1]["allowed"] == ["bash"]
    assert await said(allowed, f"{session}/stop") == {"stopped": False}


async def test_everyone_who_looks_is_told(allowed: Heed) -> None:
    """As server-sent events."""
    session = await opened(allowed)
    will_call(allowed, "glob", pattern="*")
    async with allowed.client.get(f"{session}/events") as stream:
        assert stream.headers["Content-Type"] == "text/event-stream"
        await said(allowed, f"{session}/prompt", text="look")
        told = await events_of(stream, 3)
    assert [event["kind"] for event in told] == ["opened", "asked", "call"]
    assert told[2]["data"]["tool"] == "glob"


async def test_what_happens_while_a_stream_opens_is_in_it(allowed: Heed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the look at the session and the first event nothing is lost."""
    session = await opened(allowed)
    user_id = (await allowed.core.gateway.known(Author("http", "local"))).id
    _, live = await allowed.client.server.app[AGENTS].find(user_id, session.removeprefix(f"{PATH}/"))  # type: ignore[union-attr]
    prepare = web.StreamResponse.prepare

    async def slowly(response: web.StreamResponse, request: web.BaseRequest) -> Any:
        live.tell_progress("early")
        return await prepare(response, request)

    monkeypatch.setattr(web.StreamResponse, "prepare", slowly)
    async with allowed.client.get(f"{session}/events") as stream:
        told = await asyncio.wait_for(events_of(stream, 2), PATIENCE_S)
    assert [event["data"] for event in told] == [{"status": "idle"}, {"text": "early"}]


async def events_of(stream: ClientResponse, number: int) -> list[dict[str, Any]]:
    """The first events of a stream."""
    lines = [await stream.content.readline() for _ in range(2 * number)]
    return [json.loads(line.removeprefix(b"data: ")) for line in lines if line.strip()]


async def test_sessions_of_both_kinds_are_listed(allowed: Heed) -> None:
    """Each can be read, cleared and deleted."""
    _, plain = await allowed.post(PATH, {})
    session = await opened(allowed)
    _, listed = await allowed.get(PATH)
    assert [head.get("workspace") for head in listed["sessions"]] == ["work", None]
    await said(allowed, f"{session}/prompt", text="hello")
    cleared = await said(allowed, f"{session}/clear")
    assert cleared["messages"] == []
    response = await allowed.client.delete(session)
    assert await response.json() == {"deleted": True}
    assert (await allowed.get(session))[0] == 404
    assert (await allowed.get(f"{PATH}/{plain['id']}"))[0] == 200


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("approve", {"mark": "a"}, 409),
        ("approve", {}, 400),
        ("deny", {"mark": "a", "text": "no"}, 409),
        ("edit", {"mark": "a", "arguments": {}}, 409),
        ("edit", {"mark": "a", "arguments": "{"}, 400),
        ("continue", {"text": "It was wrong."}, 409),
        ("prompt", {"text": "  "}, 400),
        ("prompt", {"text": "x" * 20_000}, 400),
        ("deny", {"mark": "a", "text": "x" * 20_000}, 400),
    ],
)
async def test_what_cannot_be_done_says_so(allowed: Heed, path: str, body: Any, status: int) -> None:
    """And changes nothing."""
    session = await opened(allowed)
    given, refusal = await allowed.post(f"{session}/{path}", body)
    assert (given, bool(refusal["error"]["message"])) == (status, True)
    assert (await allowed.get(session))[1]["messages"] == []


async def test_a_folder_that_is_gone_is_a_result(allowed: Heed, folder: Path) -> None:
    """The model and the person can act on it."""
    session = await opened(allowed)
    shutil.rmtree(folder)
    will_call(allowed, "write", path="a", content="x")
    asked = await said(allowed, f"{session}/prompt", text="write")
    assert "gone" in asked["call"]["preview"]
    failed = await decided(allowed, session, "approve")
    assert (failed["status"], failed["results"][0]["feedback"]) == ("failed", BRING_BACK)


async def test_who_may_and_where(allowed: Heed, start_heed: StartHeed) -> None:
    """The operator says so; another person's session is not found; the workspaces are listed."""
    assert await allowed.get("/api/workspaces") == (200, {"workspaces": ["", "work"], "reason": ""})
    status, refusal = await allowed.post(PATH, {"workspace": "etc"})
    assert (status, refusal["error"]["param"]) == (403, "workspace")
    session = await opened(allowed, user="ana")
    assert (await allowed.get(f"{session}?user=ana"))[0] == 200
    assert (await allowed.get(f"{session}?user=ben"))[0] == 404


async def test_a_stranger_may_not(start_heed: StartHeed) -> None:
    """By default the people of this machine's own page, and no one else."""
    heed = await start_heed()
    assert (await heed.get("/api/workspaces"))[1]["workspaces"] == [""]
    _, none = await heed.get("/api/workspaces?user=ben")
    assert (none["workspaces"], "HEED_AGENT_ALLOW" in none["reason"]) == ([], True)
    for status, refusal in (
        await heed.post(PATH, {"workspace": "", "user": "ben"}),
        await heed.get(f"{PATH}/agent-1?user=ben"),
    ):
        assert (status, "HEED_AGENT_ALLOW" in refusal["error"]["message"]) == (403, True)


async def test_a_model_that_calls_no_tools_has_no_agent(start_heed: StartHeed) -> None:
    """The reason names the setting that chooses another."""
    heed = await start_heed()
    heed.engine.skills = replace(heed.engine.skills, writes_calls=False)
    _, none = await heed.get("/api/workspaces")
    assert (none["workspaces"], "HEED_MODEL" in none["reason"]) == ([], True)
    status, refusal = await heed.post(PATH, {"workspace": ""})
    assert (status, refusal["error"]["message"]) == (403, none["reason"])


async def test_where_nothing_can_run_the_remedy_is_named(allowed: Heed, monkeypatch: pytest.MonkeyPatch) -> None:
    """No session begins."""
    monkeypatch.setattr("bot.agent.sandbox.BUBBLEWRAP", "no-such-program")
    status, refusal = await allowed.post(PATH, {"workspace": "work"})
    assert (status, refusal["error"]["code"]) == (409, "sandbox_unavailable")
    assert "apt install bubblewrap" in refusal["error"]["message"]
