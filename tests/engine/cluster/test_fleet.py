"""engine.cluster.fleet: which engines are asked, and which are not."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.cluster import fleet
from engine.cluster.fleet import EngineHandle, EngineIdentity, EngineState, Fleet
from engine.config import EngineConfig
from engine.errors import EngineGone, EngineRestarting
from engine.requests import Delta, GenerateRequest, ModelLearning, ModelSkills, Sampling

READY = EngineState(is_ready=True, line="ok", has_failed=False, weight=1.0)
STARTING = replace(READY, is_ready=False, line="loading the model")
IDENTITY = EngineIdentity(
    heed="1",
    base_model="a" * 16,
    config=EngineConfig("m", Path()),
    sampling=Sampling(),
    skills=ModelSkills(False, False, lambda _: b""),
    learning=ModelLearning(),
    machine="here",
    pid=1,
)


class FakeHandle:
    """An engine that says what it is told to; `answers` are those of its calls, one after the other."""

    def __init__(self, state: EngineState = READY, identity: EngineIdentity = IDENTITY) -> None:
        self.now, self.who = state, identity
        self.answers: list[Any] = []
        self.asked: list[tuple[str, tuple[Any, ...]]] = []
        self.is_silent = False

    async def identity(self) -> EngineIdentity:
        """See EngineHandle."""
        return self.who

    async def state(self) -> EngineState:
        """See EngineHandle."""
        if self.is_silent:
            raise EngineGone("it ended")
        return self.now

    async def call(self, method: str, *arguments: Any) -> Any:
        """See EngineHandle."""
        self.asked.append((method, arguments))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def generate(self, request: GenerateRequest) -> AsyncGenerator[Delta, None]:
        """See EngineHandle."""
        self.asked.append(("generate", (request.user_id,)))
        while self.answers:
            answer = self.answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            yield answer


async def fleet_of(**handles: FakeHandle) -> Fleet:
    """A fleet that has looked once."""
    found: dict[str, EngineHandle] = dict(handles)

    async def discover() -> dict[str, EngineHandle]:
        return found

    made = Fleet(discover, "1")
    made.found = found  # type: ignore[attr-defined]  # so that tests take engines away
    await made.look()
    return made


async def test_engines_that_answer_are_ranked_for_each_person() -> None:
    """All of them, in an order that is a function of the person."""
    made = await fleet_of(one=FakeHandle(), two=FakeHandle())
    assert {known.name for known in made.ranked("ana")} == {"one", "two"}
    assert [known.name for known in made.ranked("ana")] == [known.name for known in made.ranked("ana")]
    assert made.met.is_set()


async def test_an_engine_that_starts_is_not_asked_and_says_how_far_it_is() -> None:
    """Once it is ready, it is."""
    handle = FakeHandle(STARTING)
    made = await fleet_of(one=handle)
    assert made.problems == {"one": "loading the model"}
    with pytest.raises(EngineRestarting):
        made.ranked("ana")
    handle.now = READY
    await made.look()
    assert [known.name for known in made.ranked("ana")] == ["one"]
    assert made.problems == {}


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (replace(IDENTITY, heed="2"), "is heed 2, and this gateway is 1"),
        (replace(IDENTITY, base_model="b"), "has another model"),
    ],
)
async def test_an_engine_of_another_cluster_is_refused_by_name(other: EngineIdentity, reason: str) -> None:
    """It is never asked about a person."""
    made = await fleet_of(one=FakeHandle())
    made.found["two"] = FakeHandle(identity=other)  # type: ignore[attr-defined]
    await made.look()
    assert [known.name for known in made.ranked("ana")] == ["one"]
    assert reason in made.problems["two"]


@pytest.mark.parametrize("is_listed", [True, False])
async def test_calls_to_an_engine_that_is_gone_end(*, is_listed: bool) -> None:
    """Whether it is silent or no more there; its people are another's."""
    one = FakeHandle()
    made = await fleet_of(one=one, two=FakeHandle())
    known = made.named("one")
    assert known is not None
    one.is_silent = True
    if not is_listed:
        made.found.pop("one")  # type: ignore[attr-defined]
    await made.look()
    assert known.gone.done()
    assert made.named("one") is None
    assert [known.name for known in made.ranked("ana")] == ["two"]


async def test_an_engine_that_is_emptied_gets_nobody() -> None:
    """Its weight is 0, as its next state says."""
    one = FakeHandle()
    made = await fleet_of(one=one, two=FakeHandle())
    one.now = replace(READY, weight=0.0)
    await made.look()
    assert [known.name for known in made.ranked("ana")] == ["two"]
    assert [known.name for known in made.all()] == ["one", "two"]


async def test_looking_goes_on_after_an_error(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """One look that fails is written down, and the next one finds the engine."""
    monkeypatch.setattr(fleet, "LOOK_EVERY_S", 0.0)
    errors = [RuntimeError("no Ray just now")]
    handle = FakeHandle()

    async def discover() -> dict[str, EngineHandle]:
        if errors:
            raise errors.pop()
        return {"one": handle}

    made = Fleet(discover, "1")
    watching = asyncio.create_task(made.watch())
    await asyncio.wait_for(made.met.wait(), 60)
    watching.cancel()
    assert "looking for engines failed" in caplog.text
