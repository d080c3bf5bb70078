"""bot.agent.live_session: one thing at a time, on heed's own time, and everyone who looks is told."""

import asyncio
from typing import Any

import pytest

from bot.agent.live_session import AgentEvent, LiveSession, call_view
from bot.errors import CallChanged, CallNotThere, InvalidField, SessionBusy
from tests.bot.agent.rig import AgentRig
from tests.bot.agent.workspaces import names, put
from tests.patience import until


def watched(live: LiveSession) -> tuple[list[AgentEvent], "asyncio.Task[None]"]:
    """What one who looks is told."""
    seen: list[AgentEvent] = []

    async def watch() -> None:
        with live.events() as happening:
            async for event in happening:
                seen.append(event)  # noqa: PERF401  each as it comes

    return seen, asyncio.create_task(watch())


async def test_a_task_is_asked_about_done_and_told(rigged: AgentRig) -> None:
    """The call waits; once it has run the agent goes on; who looks sees each step."""
    live = await rigged.begun()
    seen, watch = watched(live)
    rigged.will_call("write", path="a.txt", content="one\n")
    asked = await live.ask("write a.txt")
    assert (asked.words, asked.results, live.status) == (None, [], "waiting")
    assert names(rigged.folder) == set()
    rigged.will_say()
    done = await live.approve()
    assert [result.success for _, result in done.results] == [True]
    assert done.words
    assert (names(rigged.folder), live.status) == ({"a.txt"}, "idle")
    await live.close()
    await watch
    assert [event.kind for event in seen] == ["opened", "asked", "call", "ended", "result", "words", "ended"]
    assert "+one" in seen[2].data["preview"]
    assert [event.data["status"] for event in seen if event.kind == "ended"] == ["waiting", "idle"]


async def test_what_is_allowed_needs_no_question_for_a_while(rigged: AgentRig, monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on means this tool in this session; a model that calls it for ever is asked about all the same."""
    monkeypatch.setattr("bot.agent.live_session.MOST_UNASKED", 3)
    live = await rigged.begun()
    rigged.will_call("glob", pattern="*")
    await live.ask("look")
    asked = await live.approve(from_now_on=True)
    assert (len(asked.results), live.status) == (3, "waiting")
    rigged.will_call("bash", command="ls")
    other = await live.deny("Use bash.")
    assert (other.results, live.session.waiting.call.tool) == ([], "bash")


async def test_a_failure_gives_the_person_the_word(rigged: AgentRig) -> None:
    """They say what was wrong, or let the agent see it."""
    live = await rigged.begun()
    rigged.will_call("read", path="none")
    await live.ask("read it")
    failed = await live.approve()
    assert (failed.results[0][1].success, live.status, failed.words) == (False, "failed", None)
    rigged.will_say()
    corrected = await live.go_on("The file is called some.")
    assert corrected.lesson is not None
    assert corrected.lesson.line.startswith("Learned: v1")
    assert (bool(corrected.words), live.status) == (True, "idle")


async def test_a_no_is_learned_and_tried_again(rigged: AgentRig) -> None:
    """With words; without, the agent waits for the person."""
    live = await rigged.begun()
    rigged.will_call("bash", command="rm a")
    await live.ask("remove a")
    again = await live.deny("Ask before bash.")
    assert again.lesson is not None
    assert again.lesson.heat
    assert live.status == "waiting"
    assert (await live.deny()).lesson is None
    assert live.status == "idle"
    assert rigged.engine.num_learned == 1


async def test_lessons_can_be_told_something(rigged: AgentRig) -> None:
    """But not while the agent works, and not more than a note."""
    live = await rigged.begun()
    await live.tell("It uses Poetry.")
    assert live.session.state.told == ["It uses Poetry."]
    with pytest.raises(InvalidField):
        await live.tell("a" * 501)
    rigged.will_call("bash", command="sleep 60")
    await live.ask("wait")
    running = asyncio.create_task(live.approve())
    await until(lambda: live.status == "working")
    with pytest.raises(SessionBusy):
        await live.tell("now")
    await live.stop()
    await running


async def test_other_arguments_wait_for_a_yes(rigged: AgentRig) -> None:
    """They are taught, and what cannot be read changes nothing."""
    live = await rigged.begun()
    rigged.will_call("write", path="a.txt", content="one\n")
    await live.ask("write")
    with pytest.raises(InvalidField):
        await live.edit({"path": 3})
    edited = await live.edit({"path": "b.txt", "content": "one\n"})
    assert edited.lesson is not None
    assert live.session.waiting.call.arguments["path"] == "b.txt"
    rigged.will_say()
    await live.approve()
    assert names(rigged.folder) == {"b.txt"}


async def test_nothing_waits(rigged: AgentRig) -> None:
    """A word about a call that is not there is refused, and so is going on while one is."""
    live = await rigged.begun()
    decisions: list[Any] = [live.approve, live.deny, lambda: live.edit({}), lambda: live.go_on("It was wrong.")]
    for decide in decisions:
        with pytest.raises(CallNotThere):
            await decide()
    rigged.will_call("glob", pattern="*")
    await live.ask("look")
    with pytest.raises(CallNotThere):
        await live.go_on()


async def test_one_thing_at_a_time_and_it_can_be_stopped(rigged: AgentRig) -> None:
    """A tool that runs is broken off with all that it has begun."""
    live = await rigged.begun()
    rigged.will_call("bash", command="touch begun; sleep 4722")
    await live.ask("wait")
    running = asyncio.create_task(live.approve())
    await until((rigged.folder / "begun").exists)
    assert live.status == "working"
    for refused in (live.ask("more"), live.clear()):
        with pytest.raises(SessionBusy):
            await refused
    assert await live.stop()
    stopped = await running
    assert (stopped.results, live.status, await live.stop()) == ([], "idle", False)


async def test_who_leaves_stops_nothing(rigged: AgentRig) -> None:
    """The work is heed's own."""
    live = await rigged.begun()
    rigged.will_call("bash", command="touch begun; sleep 0.3; touch ended")
    await live.ask("wait")
    rigged.will_say()
    client = asyncio.create_task(live.approve())
    await until((rigged.folder / "begun").exists)
    client.cancel()
    with pytest.raises(asyncio.CancelledError):
        await client
    await until(lambda: live.status == "idle")
    assert names(rigged.folder) == {"begun", "ended"}


async def test_one_who_does_not_read_is_let_go(rigged: AgentRig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their events end; they hold up no one and fill no memory."""
    monkeypatch.setattr("bot.agent.live_session.MOST_UNREAD", 2)
    live = await rigged.begun()
    with live.events() as happening:
        for number in range(9):
            live.tell_progress(str(number))
        assert [event async for event in happening] == []


async def test_what_happens_before_the_first_look_is_told(rigged: AgentRig) -> None:
    """Nothing falls between the beginning and the reading; no one is told after the block."""
    live = await rigged.begun()
    with live.events() as happening:
        live.tell_progress("early")
        assert [(await anext(happening)).data for _ in range(2)] == [{"status": "idle"}, {"text": "early"}]
    live.tell_progress("late")
    late = asyncio.create_task(anext(aiter(happening), None))
    await asyncio.sleep(0)
    assert not late.done()
    late.cancel()


async def test_a_decision_is_about_the_call_that_was_shown(rigged: AgentRig) -> None:
    """For another one nothing happens: no tool is allowed, nothing runs, nothing is learned."""
    live = await rigged.begun()
    rigged.will_call("write", path="a.txt", content="one\n")
    await live.ask("write")
    seen = live.session.waiting.mark
    await live.edit({"path": "b.txt", "content": "one\n"}, mark=seen)
    num_learned = rigged.engine.num_learned
    stale: list[Any] = [
        lambda: live.approve(from_now_on=True, mark=seen),
        lambda: live.deny("It was wrong.", mark=seen),
        lambda: live.edit({"path": "c.txt", "content": ""}, mark=seen),
    ]
    for decide in stale:
        with pytest.raises(CallChanged, match="Look at it first"):
            await decide()
    assert (live.status, live.session.waiting.call.arguments["path"]) == ("waiting", "b.txt")
    assert (live.session.state.allowed, names(rigged.folder), rigged.engine.num_learned) == ([], set(), num_learned)
    rigged.will_say()
    await live.approve(mark=live.session.waiting.mark)
    with pytest.raises(CallNotThere):
        await live.approve(mark=seen)
    assert names(rigged.folder) == {"b.txt"}


async def test_nothing_in_a_call_hides(rigged: AgentRig) -> None:
    """What it is about and what it shows have numbers for what cannot be seen, also where it changes nothing."""
    live = await rigged.begun()
    put(rigged.folder, "a.txt", "\u202e\n")
    for tool, arguments, about in (
        ("bash", {"command": "rm \u202e\x1b[2J"}, "rm <U+202E><U+001B>[2J"),
        ("glob", {"pattern": "*\u200b"}, "*<U+200B>"),
        ("write", {"path": "a.txt", "content": "\u202e\n"}, "a.txt"),
    ):
        rigged.will_call(tool, **arguments)
        await live.ask("do it")
        view = call_view(live.session.waiting)
        assert (view["about"], bool(view["preview"])) == (about, True)
        assert not {"\u202e", "\u200b", "\x1b"} & set(view["preview"])
