"""The books of agents: every way in which they can be wrong is seen."""

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from bot.agent.session import BROKEN_OFF, DENIED
from tests.crash.agent.books import AgentBooks, as_json, check
from tests.crash.agent.commands import command
from tests.crash.agent.person import Decision, Memory, ShownCall

RAN = json.dumps({"output": "", "success": True, "feedback": ""})
DECISIONS: dict[str, Decision] = {"1": "yes", "2": "yes", "3": "no", "4": "wrong"}
LESSON = ("cmpl-4", "Number 4 is wrong.")


def memory() -> Memory:
    """One who was shown four calls, and has said yes twice, no, and what was wrong."""
    shown = {
        number: ShownCall(command(int(number), may_hang=False), f"cmpl-{number}", decision)
        for number, decision in DECISIONS.items()
    }
    return Memory(shown, {LESSON}, {"a, task 1: 4 calls"})


def messages() -> list[dict[str, Any]]:
    """The conversation about the first three of them: it ran, it was broken off, it was denied."""
    said: list[dict[str, Any]] = [{"role": "user", "content": "a, task 1: 4 calls"}]
    for number, result in (("1", RAN), ("2", BROKEN_OFF), ("3", DENIED)):
        arguments = json.dumps({"command": command(int(number), may_hang=False)})
        call = {"id": f"call-{number}", "function": {"name": "bash", "arguments": arguments}}
        said.append({"role": "assistant", "content": "", "tool_calls": [call]})
        said.append({"role": "tool", "tool_call_id": call["id"], "content": result})
    return said


def books() -> AgentBooks:
    """All as it should be."""
    state = {"messages": messages(), "waiting": None, "running": None, "teaching": None}
    lesson = {"id": "fb-4", "completion_id": LESSON[0], "kind": "correction", "text": LESSON[1], "status": "learned"}
    good = {"id": "fb-1", "completion_id": "cmpl-1", "kind": "approval", "text": "", "status": "kept"}
    return AgentBooks(Counter({"1": 1}), [state], [lesson, good], ["fb-4"])


def test_what_is_right_is_found_right() -> None:
    """A call that was broken off may have run, once."""
    findings = check(books(), [memory()])
    assert findings.is_right, findings
    assert findings.endings == {"ran": 1, "broken off": 1, "denied": 1, "wrong": 1}
    assert as_json(findings)["calls"] == 4
    begun = books()
    begun.ran["2"] += 1
    assert check(begun, [memory()]).is_right


Harm = Callable[[AgentBooks, Memory], object]


@pytest.mark.parametrize(
    ("kind", "harm", "words"),
    [
        ("doubled", lambda b, m: b.ran.update(["1"]), "1 ran 2 times"),
        ("doubled", lambda b, m: b.states[0]["messages"].extend(messages()[1:3]), "1 was told 2 times"),
        ("doubled", lambda b, m: b.states[0]["messages"].append(messages()[0]), "was asked for 2 times"),
        ("doubled", lambda b, m: b.feedback.append(b.feedback[0] | {"id": "fb-5"}), "is 2 lessons"),
        ("doubled", lambda b, m: b.feedback.append(b.feedback[1] | {"id": "fb-5"}), "cmpl-1 was called good 2 times"),
        ("doubled", lambda b, m: m.lessons.clear(), "was taught by no one"),
        ("doubled", lambda b, m: b.taught.append("fb-4"), "taught 2 versions"),
        ("unasked", lambda b, m: b.ran.update(["3"]), "3 ran, and its person said no"),
        ("unasked", lambda b, m: b.ran.update(["4"]), "4 ran, and its person said wrong"),
        ("unasked", lambda b, m: b.ran.update(["9"]), "they never saw it"),
        ("lost", lambda b, m: b.ran.clear(), "1 did not run"),
        ("lost", lambda b, m: b.states[0]["messages"].__delitem__(slice(1, 3)), "1 ran, and the model does not know"),
        ("lost", lambda b, m: b.states[0]["messages"].__delitem__(slice(3, 5)), "nothing came of it"),
        ("lost", lambda b, m: b.states[0]["messages"][6].update(content=RAN), "3 was denied, and the model was told"),
        ("lost", lambda b, m: b.states[0]["messages"][4].update(content=DENIED), "told that it was not"),
        ("lost", lambda b, m: b.states[0]["messages"].pop(0), "was asked for and is gone"),
        ("lost", lambda b, m: b.states[0].update(waiting={"call": {}}), "is still waiting"),
        ("lost", lambda b, m: b.states[0].update(running={"call": {}}), "is still running"),
        ("lost", lambda b, m: b.states[0].update(teaching={"key": ""}), "is still teaching"),
        ("lost", lambda b, m: b.feedback.pop(0), "was not learned"),
        ("lost", lambda b, m: b.feedback[0].update(status="pending"), "was not learned"),
        ("lost", lambda b, m: b.taught.clear(), "was not learned"),
        ("lost", lambda b, m: b.feedback.pop(1), "is not kept as a good one"),
        ("lost", lambda b, m: m.faults.append("7 waited and is gone"), "7 waited and is gone"),
    ],
)  # fmt: skip
def test_each_error_is_seen(kind: str, harm: Harm, words: str) -> None:
    """Each under its name."""
    found, remembered = books(), memory()
    harm(found, remembered)
    findings = check(found, [remembered])
    assert [line for line in getattr(findings, kind) if words in line], findings
