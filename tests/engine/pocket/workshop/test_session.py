"""engine.pocket.workshop.session: training conversations of an agent at work."""

import itertools
import random

import pytest

from bot.agent import session as agent
from bot.agent import state
from bot.agent.session import difference
from bot.agent.tools import Call
from engine.pocket.workshop import session
from engine.pocket.workshop.session import Line
from engine.prompts.hindsight import Hindsight

MARK = Hindsight("\0").block().partition("\0")[0]


@pytest.fixture(scope="module")
def sessions() -> list[list[Line]]:
    """A fixed sample."""
    rng = random.Random(6)
    return [session.drawn(rng) for _ in range(1500)]


def test_the_system_message_is_the_agents() -> None:
    """Word for word: the model has read no other."""
    assert (session.SYSTEM, session.HERE, session.LEFT_OUT) == (state.SYSTEM, agent.HERE, agent.LEFT_OUT)


def test_turns_alternate_and_the_model_has_the_last_word(sessions: list[list[Line]]) -> None:
    """A call is followed by its answer, words by the person's."""
    for lines in sessions:
        roles = [line.role for line in lines]
        assert (roles[0], roles[1], roles[-1]) == ("system", "user", "assistant")
        for line, after in itertools.pairwise(lines):
            if line.role == "assistant":
                assert after.role == ("tool" if "<tool_call>" in line.content else "user")
            else:
                assert (line.role == "system") == (after.role == "user" and line is lines[0])


def test_wishes_stand_in_every_place(sessions: list[list[Line]]) -> None:
    """Notes of the person and of the folder, the task itself, and hindsight with the call that was denied."""
    systems = [lines[0].content for lines in sessions]
    asked = [line.content for lines in sessions for line in lines if line.role == "user"]
    assert (
        min(sum("Notes about this person" in text for text in systems), sum(session.HERE in text for text in systems))
        > 30
    )
    assert sum(MARK in text for text in asked) > 150
    assert sum("[Known about this work: The call was " in text for text in asked) > 100
    assert sum("must be" in text and MARK in text for text in asked) > 3


def test_long_sessions_have_outputs_left_out(sessions: list[list[Line]]) -> None:
    """From the oldest on, of whole tasks; steps that followed from what is not there any more are not learned."""
    undenied = [lines for lines in sessions if not any(MARK in line.content for line in lines)]
    short = [lines for lines in undenied if any(line.content == session.LEFT_OUT for line in lines)]
    assert len(short) > 30
    for lines in short:
        first = next(place for place, line in enumerate(lines) if line.role == "assistant" and line.is_learned)
        outputs = [line.content == session.LEFT_OUT for line in lines if line.role == "tool"]
        assert outputs == sorted(outputs, reverse=True)
        assert not any(line.content == session.LEFT_OUT for line in lines[first:])
        assert all(line.is_learned for line in lines[first:])


def test_an_edit_of_another_call_stands_in_notes(sessions: list[list[Line]]) -> None:
    """As a person's notes have it who has changed arguments rather than said a wish."""
    notes = [line for lines in sessions for line in lines[0].content.splitlines() if line.startswith("- In this call")]
    assert len(notes) > 10
    assert all(" must be " in note and "=" in note for note in notes)


def test_other_arguments_are_worded_as_the_agent_words_them() -> None:
    """The sentence is that of a call whose arguments the person has changed."""
    before = Call("edit", {"path": "a", "old": "x = 1", "new": "x = 2", "all": False})
    after = Call("edit", {**before.arguments, "new": "x=2"})
    said = session.DIFFERENCE.format(tool="edit", name="new", new='"x=2"', old='"x = 2"')
    assert said == difference(before, after)
    assert agent.THE_CALL.format("edit", "{}").startswith("The call was edit")


def test_the_same_random_source_gives_the_same_sessions() -> None:
    """So training can be repeated."""
    one, other = ([session.drawn(random.Random(5)) for _ in range(20)] for _ in range(2))
    assert one == other


def test_some_are_denied_behind_a_step_that_the_wish_would_have_left_out() -> None:
    """A file of the tests was read, or the check allowed: what led there is not learned, what follows is as wished.

    Behind a yes it may be any wish: the check is run then, unless it is not to be.
    """
    rng = random.Random(11)
    found = {"tests": 0, "left": 0, "run": 0}
    for _ in range(2500):
        lines = session.drawn(rng)
        unlearned = [place for place, line in enumerate(lines) if not line.is_learned]
        if not unlearned or any(line.content == session.LEFT_OUT for line in lines):
            continue
        told = max(place for place, line in enumerate(lines) if MARK in line.content)
        after = [line.content for line in lines[unlearned[-1] + 1 :] if line.role == "assistant"]
        assert told < unlearned[-1] + 3
        if "sh check.sh" in lines[unlearned[-1]].content:
            found["run" if any('"bash"' in text for text in after) else "left"] += 1
        else:
            found["tests"] += 1
            assert not any('"path": "tests/' in text for text in after)
    assert min(found.values()) > 5


def test_what_a_lesson_has_noted_stands_in_notes_and_behind_the_task() -> None:
    """As a lesson's teacher reads it: the newest note is the correction's own words."""
    rng = random.Random(12)
    both = 0
    for _ in range(1500):
        lines = session.drawn(rng)
        told = [line.content.rpartition(MARK)[2].rstrip("]") for line in lines if MARK in line.content]
        notes = [text.removeprefix("- ") for text in lines[0].content.splitlines() if text.startswith("- ")]
        both += bool(told and notes and notes[-1] == told[-1])
    assert both > 150
