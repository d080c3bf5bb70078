"""engine.pocket.workshop.begun: tasks of the pocket model's bank, in every stage."""

import random

from bot.agent.tools import definitions
from engine.pocket.workshop import begun
from engine.pocket.workshop.tasks import WORDS


def test_each_is_a_task_whose_last_call_was_answered() -> None:
    """The person speaks first, then calls and answers take turns; a step of the agent comes next."""
    drawn = begun.drawn(random.Random(1))
    assert len(drawn) == sum(begun.COUNTS.values())
    for (asker, _), *steps in drawn:
        assert asker == "user"
        assert [role for role, _ in steps] == ["assistant", "tool"] * (len(steps) // 2)
        assert all(text for _, text in steps)
    assert begun.drawn(random.Random(1)) == drawn


def test_some_end_before_each_kind_of_step() -> None:
    """Before a change that was not looked at, one in tests, a check, and all else."""
    drawn = begun.drawn(random.Random(2))
    blind, last = drawn[: begun.COUNTS["blind"]], drawn[-begun.COUNTS["other"] :]
    assert all(len(task) == 1 for task in blind)
    assert any("tests/" in text for task in drawn[24:34] for _, text in task)
    assert any(len(task) == 1 for task in last)
    assert any(len(task) > 3 for task in drawn)


def test_the_tools_are_the_agents_and_no_words_are_held_out() -> None:
    """So the bank's tasks are for the agent, and the evaluation's words are not in them."""
    assert {tool["function"]["name"] for tool in definitions()} == {*begun.TOOLS}
    said = " ".join(task[0][1].lower() for task in begun.drawn(random.Random(3)))
    held_out = [words for _, spoken in WORDS.values() for words in spoken if "{" not in words]
    assert held_out
    assert not any(words in said for words in held_out)
