"""The work of agents compared with what its people remember.

`read` looks at the file that the commands write and at the database of a heed that does not run; `check` is pure.
"""

import json
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bot.agent.session import BROKEN_OFF, DENIED
from tests.crash.agent.commands import LOG, is_edited, number_of
from tests.crash.agent.person import Memory, ShownCall

Row = dict[str, Any]
UNDER_WAY = ("running", "teaching", "waiting")
ENDED_WELL = "learned"


@dataclass
class AgentBooks:
    """What there is once everything has ended."""

    ran: Counter[str] = field(default_factory=Counter)  # numbers of commands
    states: list[Row] = field(default_factory=list)  # of the sessions
    feedback: list[Row] = field(default_factory=list)
    taught: list[str] = field(default_factory=list)  # the feedback of each version

    @property
    def told(self) -> dict[str, list[str]]:
        """What the model was told of each call that is part of a conversation, by number."""
        found: dict[str, list[str]] = {}
        for state in self.states:
            results = {m["tool_call_id"]: m["content"] for m in state["messages"] if m["role"] == "tool"}
            for call in (call for message in state["messages"] for call in message.get("tool_calls", ())):
                number = number_of(json.loads(call["function"]["arguments"])["command"])
                found.setdefault(number, []).append(results.get(call["id"], "nothing"))
        return found

    @property
    def prompts(self) -> list[str]:
        """All that people asked for."""
        return [m["content"] for state in self.states for m in state["messages"] if m["role"] == "user"]


@dataclass(frozen=True)
class AgentFindings:
    """The errors found, and how the calls ended that people were shown."""

    lost: tuple[str, ...]
    doubled: tuple[str, ...]
    unasked: tuple[str, ...]
    endings: dict[str, int]

    @property
    def is_right(self) -> bool:
        """Nothing lost, nothing done twice, nothing run without a yes."""
        return not (self.lost or self.doubled or self.unasked)


def states(data_dir: Path) -> list[Row]:
    """The states of all sessions, as they are stored. Blocking."""
    return [json.loads(row["state"]) for row in _rows(data_dir, "SELECT state FROM agent_work ORDER BY seq")]


def read(data_dir: Path, workspace: Path) -> AgentBooks:
    """The books of a heed. Blocking."""
    log = workspace / LOG
    ran = Counter(log.read_text().splitlines() if log.exists() else ())
    taught = [row["feedback_id"] for row in _rows(data_dir, "SELECT feedback_id FROM adapter_version")]
    return AgentBooks(ran, states(data_dir), _rows(data_dir, "SELECT * FROM feedback"), taught)


def _rows(data_dir: Path, query: str) -> list[Row]:
    with closing(sqlite3.connect(f"file:{data_dir / 'heed.db'}?mode=ro", uri=True, timeout=20)) as database:
        database.row_factory = sqlite3.Row
        return [dict(row) for row in database.execute(query)]


def check(books: AgentBooks, memories: Collection[Memory]) -> AgentFindings:
    """Hold the books against what people remember."""
    shown = {number: call for memory in memories for number, call in memory.shown.items()}
    endings = Counter(_ending(call, books.told.get(number, [])) for number, call in shown.items())
    lost = [fault for memory in memories for fault in memory.faults]
    lost += [*_unended(books), *_uncounted(books, shown), *_unprompted(books, memories)]
    lost += [*_untaught(books, memories), *_unapproved(books, shown)]
    doubled = [*_twice(books), *_taught_twice(books, memories)]
    return AgentFindings(tuple(lost), tuple(doubled), tuple(_unasked(books, shown)), dict(endings))


def _ending(call: ShownCall, told: list[str]) -> str:
    """Return in a word how a call ended."""
    if call.decision in ("wrong", "edit"):
        return call.decision
    if told in ([BROKEN_OFF], [DENIED]):
        return "broken off" if told == [BROKEN_OFF] else "denied"
    return "ran" if told else "lost"


def _unended(books: AgentBooks) -> Iterator[str]:
    """Yield what still waits, runs or is being taught."""
    for state in books.states:
        yield from (f"something is still {name}: {state[name]}" for name in UNDER_WAY if state[name])


def _uncounted(books: AgentBooks, shown: dict[str, ShownCall]) -> Iterator[str]:
    """Yield calls whose end the model was told wrong, or not at all."""
    told = books.told
    yield from (f"{number} ran, and the model does not know" for number in books.ran if number not in told)
    for number, call in shown.items():
        said = told.get(number, [])
        if call.decision in ("wrong", "edit"):
            continue
        if not said:
            yield f"{number} was answered with {call.decision}, and nothing came of it"
        elif call.decision == "no" and said != [DENIED]:
            yield f"{number} was denied, and the model was told {said}"
        elif call.decision == "yes" and said == [DENIED]:
            yield f"{number} was allowed, and the model was told that it was not"
        elif call.decision == "yes" and said != [BROKEN_OFF] and number not in books.ran:
            yield f"{number} did not run, and the model was told {said}"


def _unprompted(books: AgentBooks, memories: Collection[Memory]) -> Iterator[str]:
    """Yield what was asked for and is part of no conversation."""
    asked = {prompt for memory in memories for prompt in memory.prompts}
    yield from (f"{prompt!r} was asked for and is gone" for prompt in sorted(asked - set(books.prompts)))


def _untaught(books: AgentBooks, memories: Collection[Memory]) -> Iterator[str]:
    """Yield corrections that taught nothing."""
    learned = {(row["completion_id"], row["text"]): row for row in books.feedback if row["status"] == ENDED_WELL}
    for answer_id, text in sorted(_lessons(memories)):
        row = learned.get((answer_id, text))
        if row is None or row["id"] not in books.taught:
            yield f"{text!r} about {answer_id} was not learned"


def _unapproved(books: AgentBooks, shown: dict[str, ShownCall]) -> Iterator[str]:
    """Yield answers whose call a person allowed, and which ran well, that are not kept as good ones."""
    told, good = books.told, {row["completion_id"] for row in books.feedback if row["kind"] == "approval"}
    for number, call in shown.items():
        is_good = call.decision == "yes" and not is_edited(number) and _is_well(told.get(number, []))
        if is_good and call.answer_id not in good:
            yield f"{number} ran well, and its answer is not kept as a good one"


def _is_well(told: list[str]) -> bool:
    return bool(told) and told[0] not in (BROKEN_OFF, DENIED) and bool(json.loads(told[0])["success"])


def _twice(books: AgentBooks) -> Iterator[str]:
    """Yield what ran, was told, called good or asked for more than once."""
    yield from (f"{number} ran {count} times" for number, count in books.ran.items() if count > 1)
    yield from (f"{number} was told {len(said)} times" for number, said in books.told.items() if len(said) > 1)
    asked = Counter(prompt.rpartition(":")[0] for prompt in books.prompts)
    good = Counter(row["completion_id"] for row in books.feedback if row["kind"] == "approval")
    yield from (f"{answer_id} was called good {count} times" for answer_id, count in good.items() if count > 1)
    yield from (f"{name!r} was asked for {count} times" for name, count in asked.items() if count > 1)


def _taught_twice(books: AgentBooks, memories: Collection[Memory]) -> Iterator[str]:
    """Yield corrections that are more than one lesson, and lessons that no one gave."""
    lessons, given = _lessons(memories), Counter(_corrections(books))
    yield from (f"{text!r} is {count} lessons" for (_, text), count in given.items() if count > 1)
    yield from (f"{text!r} was taught by no one" for answer_id, text in given if (answer_id, text) not in lessons)
    yield from (f"{key} taught {count} versions" for key, count in Counter(books.taught).items() if count > 1)


def _unasked(books: AgentBooks, shown: dict[str, ShownCall]) -> Iterator[str]:
    """Yield commands that ran although their person had not said yes."""
    for number in books.ran:
        if number not in shown or shown[number].decision != "yes":
            said = shown[number].decision if number in shown else "nothing: they never saw it"
            yield f"{number} ran, and its person said {said}"


def _corrections(books: AgentBooks) -> Iterator[tuple[str, str]]:
    yield from ((row["completion_id"], row["text"]) for row in books.feedback if row["kind"] == "correction")


def _lessons(memories: Collection[Memory]) -> set[tuple[str, str]]:
    return {lesson for memory in memories for lesson in memory.lessons}


def as_json(findings: AgentFindings) -> Row:
    """Plain values, for a file of figures."""
    found = {name: list(getattr(findings, name)) for name in ("lost", "doubled", "unasked")}
    return {"calls": sum(findings.endings.values()), "endings": findings.endings, **found}
