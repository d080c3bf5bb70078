"""bot.agent.service: sessions that outlive heed, belong to one person, and go with them."""

import asyncio
from pathlib import Path

import pytest

from bot.agent import service
from bot.agent.service import AgentService
from bot.agent.session import BROKEN_OFF
from bot.agent.state import SessionState
from bot.core.core import Core
from bot.errors import AgentNotAllowed, NotReady, SandboxUnavailable
from bot.events import Author
from storage import fencing, leases
from storage.conversations import agent_work
from storage.errors import AgentWorkNotFound
from storage.fencing import Tokens
from storage.lease_keeper import LeaseKeeper
from storage.tables import AgentWork
from tests.bot.agent.repositories import make_repository
from tests.bot.agent.rig import BEN, LOCAL, AgentRig, agents_of
from tests.bot.agent.workspaces import names, put
from tests.patience import until


async def test_the_operator_says_who_may(rigged: AgentRig) -> None:
    """By default the people of this machine; no one on a platform."""
    rigged.agents.require_allowed(LOCAL)
    for author in (BEN, Author("telegram", "1", "Ana"), Author("http", "local2", "local2")):
        with pytest.raises(AgentNotAllowed, match=author.account):
            rigged.agents.require_allowed(author)


async def test_a_session_goes_on_in_the_next_heed(rigged: AgentRig, tmp_path: Path) -> None:
    """A call that waits still waits, and runs once."""
    live = await rigged.begun()
    rigged.will_call("write", path="a.txt", content="one\n")
    await live.ask("write a.txt")
    user_id = live.user_id
    (row,) = await rigged.agents.of_person(user_id)
    await rigged.agents.close()
    async with agents_of(tmp_path / "data", rigged.folder) as later:
        _, again = await later.agents.find(user_id, row.id)
        assert again.status == "waiting"
        assert names(rigged.folder) == set()
        assert (await again.approve()).results[0][1].success
        assert names(rigged.folder) == {"a.txt"}
        assert (await later.agents.find(user_id, row.id))[1] is again


async def test_a_new_session_is_told_of_the_repository(rigged: AgentRig) -> None:
    """In a line of its first message, where the workspace is one."""
    plain = await rigged.begun()
    make_repository(rigged.folder)
    put(rigged.folder, "b.txt", "x")
    live = await rigged.begun()
    first, more = (one.session.state.messages[0]["content"] for one in (plain, live))
    assert more == f"{first}\nThe folder is a git repository on branch main; 1 file is changed."


async def test_what_ran_when_heed_ended_is_not_run_again(rigged: AgentRig, tmp_path: Path) -> None:
    """The model is told that it was broken off."""
    live = await rigged.begun()
    rigged.will_call("bash", command="echo once >> log; sleep 4723")
    await live.ask("work")
    running = asyncio.create_task(live.approve())
    log = rigged.folder / "log"
    await until(lambda: log.exists() and log.read_text())
    (row,) = await rigged.agents.of_person(live.user_id)
    assert row.state["running"]["call"]["tool"] == "bash"
    async with agents_of(tmp_path / "data2", rigged.folder) as other:  # the state as a killed heed leaves it
        user_id = await other.person()
        left = row.model_copy(update={"seq": None, "user_id": user_id})
        await other.core.database.write(lambda s: agent_work.add(s, left))
        _, again = await other.agents.find(user_id, row.id)
        await until(lambda: again.status == "idle")
        assert again.session.state.messages[-1]["content"] == BROKEN_OFF
    await live.stop()
    await running
    assert log.read_text() == "once\n"


async def test_an_answer_that_was_being_made_is_made_by_the_next_heed(rigged: AgentRig, tmp_path: Path) -> None:
    """Without a word of the person; not if they had stopped it. It begins once, and once the model is there."""
    ids = []
    for is_stopped in (False, True):
        live = await rigged.begun()
        rigged.engine.token_delay_s = 3600.0
        asked = asyncio.create_task(live.ask("What is there?"))
        await until(lambda live=live: live.status == "working" and live.session.state.is_due)  # type: ignore[misc]
        if is_stopped:
            await live.stop()
        ids.append(live.work_id)
        user_id = live.user_id
        if is_stopped:
            await asked
    await rigged.agents.close()
    async with agents_of(tmp_path / "data", rigged.folder) as later:
        later.engine.is_ready = False
        _, broken_off = await later.agents.find(user_id, ids[0])
        assert broken_off.status == "idle"
        later.engine.is_ready = True
        for _ in range(2):
            await later.agents.find(user_id, ids[0])
        await until(lambda: broken_off.status == "idle")
        assert broken_off.session.last_words
        assert [m["role"] for m in broken_off.session.state.messages] == ["system", "user", "assistant"]
        _, stopped = await later.agents.find(user_id, ids[1])
        assert (stopped.status, stopped.session.last_words) == ("idle", None)


async def test_sessions_of_a_person_have_a_bound(rigged: AgentRig, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest goes, with what it does; those of chats and of others stay."""
    monkeypatch.setattr("bot.agent.service.MOST_SESSIONS", 2)
    user_id = await rigged.person()
    chats = await rigged.agents.begin(user_id, "work", "telegram/11")
    live = await rigged.begun()
    bens = await rigged.agents.begin(await rigged.person(BEN), "work")
    rigged.will_call("bash", command="touch begun; sleep 4732")
    await live.ask("wait")
    running = asyncio.create_task(live.approve())
    await until((rigged.folder / "begun").exists)
    newest = [await rigged.begun() for _ in range(2)]
    await running
    kept = [row.id for row in await rigged.agents.of_person(user_id)]
    assert kept == [newest[1].work_id, newest[0].work_id, chats.id]
    with pytest.raises(AgentWorkNotFound):
        await rigged.agents.find(user_id, live.work_id)
    assert [row.id for row in await rigged.agents.of_person(bens.user_id)] == [bens.id]


async def test_a_session_is_one_persons(rigged: AgentRig) -> None:
    """Another person does not find it."""
    live = await rigged.begun()
    (row,) = await rigged.agents.of_person(live.user_id)
    ben = await rigged.person(BEN)
    with pytest.raises(AgentWorkNotFound):
        await rigged.agents.find(ben, row.id)
    await rigged.agents.remove(live.user_id, row.id)
    assert await rigged.agents.of_person(live.user_id) == []


async def test_work_in_a_folder_that_is_not_allowed_any_more_is_left_and_removed(
    rigged: AgentRig, tmp_path: Path
) -> None:
    """Neither needs the folder; to go on there is refused."""
    user_id = await rigged.person()
    row = await rigged.agents.begin(user_id, "work", "telegram/11")
    await rigged.agents.close()
    async with agents_of(tmp_path / "data", rigged.folder, folders=()) as later:
        with pytest.raises(AgentNotAllowed, match="There is no workspace work"):
            await later.agents.at(user_id, "telegram/11")
        await later.agents.leave(user_id, "telegram/11")
        assert await later.agents.at(user_id, "telegram/11") is None
        await later.agents.remove(user_id, row.id)
        assert await later.agents.of_person(user_id) == []
        with pytest.raises(AgentWorkNotFound):
            await later.agents.remove(user_id, row.id)


async def test_the_work_in_a_chat_is_as_storage_has_it(rigged: AgentRig) -> None:
    """What was read earlier is not remembered: it may be older than what another has begun meanwhile."""
    user_id = await rigged.person()
    assert await rigged.agents.at(user_id, "telegram/11") is None
    begun = AgentWork(user_id=user_id, workspace="work", place="telegram/11", state=SessionState.new().stored())
    row = await rigged.core.database.write(lambda s: agent_work.add(s, begun))
    live = await rigged.agents.at(user_id, "telegram/11")
    assert live is not None
    assert live.work_id == row.id


async def test_an_erased_persons_sessions_and_scratch_folder_are_gone(rigged: AgentRig) -> None:
    """Also what runs there."""
    live = await rigged.begun("")
    scratch = rigged.folder.parent / "scratch" / live.user_id
    rigged.will_call("bash", command="touch begun; sleep 4724")
    await live.ask("work")
    running = asyncio.create_task(live.approve())
    await until((scratch / "begun").exists)
    await rigged.core.gateway.forget(live.user_id)
    await running
    assert not scratch.exists()
    assert await rigged.agents.of_person(live.user_id) == []


async def test_where_nothing_can_run_no_session_begins(rigged: AgentRig, monkeypatch: pytest.MonkeyPatch) -> None:
    """The remedy is named, and nothing is stored."""
    monkeypatch.setattr("bot.agent.sandbox.BUBBLEWRAP", "no-such-program")
    with pytest.raises(SandboxUnavailable, match="apt install bubblewrap"):
        await rigged.begun()
    assert await rigged.agents.of_person(await rigged.person()) == []


async def test_of_two_gateways_one_works_on_a_session(rigged: AgentRig, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other one is refused until it has rested, and then goes on from what is stored."""
    core = rigged.core
    one, two = (AgentService(core, _leases(core, name)) for name in ("one", "two"))
    user_id = await rigged.person()
    row = await one.begin(user_id, "work")
    _, live = await one.find(user_id, row.id)
    rigged.will_call("write", path="a.txt", content="one\n")
    await live.ask("write a.txt")
    with pytest.raises(NotReady, match="Another gateway"):
        await two.find(user_id, row.id)
    await one.let_rest_go()  # too early
    with pytest.raises(NotReady):
        await two.find(user_id, row.id)
    monkeypatch.setattr(service, "REST_S", -1.0)
    await one.let_rest_go()
    _, there = await two.find(user_id, row.id)
    assert there.status == "waiting"
    assert (await there.approve()).results[0][1].success
    assert names(rigged.folder) == {"a.txt"}
    await two.remove(user_id, row.id)
    assert await core.database.read(lambda s: leases.of(s, fencing.agent_work(row.id))) is None
    await two.close()


def _leases(core: Core, name: str) -> LeaseKeeper:
    """The leases of one gateway on agents' sessions."""

    async def taken(_work_id: str) -> None:
        """Nothing is gone on with."""

    return LeaseKeeper(core.database, Tokens(name), taken, lambda _: None, 60.0, fencing.agent_work)
