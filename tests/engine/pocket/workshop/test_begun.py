"""engine.pocket.workshop.begun: tasks of the pocket model's bank, in every stage."""

import random
from itertools import accumulate

from bot.agent.tools import definitions
from engine.pocket.workshop import begun
from engine.pocket.workshop.tasks import WORDS
from engine.pocket.workshop.work import MAY_I, YES

PLACES = dict(zip(begun.COUNTS, accumulate(begun.COUNTS.values(), initial=0), strict=False))  # of each kind's first
NUM_PLAIN = sum(begun.COUNTS.values())


def test_each_is_a_task_whose_last_call_or_question_was_answered() -> None:
    """The person speaks first, then steps and answers take turns; a step of the agent comes next."""
    drawn = begun.drawn(random.Random(1))
    assert len(drawn) == NUM_PLAIN + sum(begun.WISHED_COUNTS.values())
    for (asker, _), *lines in drawn:
        assert asker == "user"
        assert {role for role, _ in lines[::2]} <= {"assistant"}
        assert len(lines) % 2 == 0
        for (_, said), (role, answer) in zip(lines[::2], lines[1::2], strict=True):
            assert role == ("user" if said == MAY_I else "tool")
            assert answer in YES if said == MAY_I else answer
    assert begun.drawn(random.Random(1)) == drawn


def test_some_end_before_each_kind_of_step() -> None:
    """Before a change that was not looked at, one that was, one in tests, a check, and all else."""
    drawn = begun.drawn(random.Random(2))
    assert all(len(task) == 1 for task in drawn[: begun.COUNTS["blind"]])
    changes = drawn[PLACES["change"] : PLACES["test"]]
    assert any(len(task) == 3 and '"name": "read"' in task[1][1] for task in changes)
    assert any("tests/" in text for task in drawn[PLACES["test"] : PLACES["check"]] for _, text in task)
    assert any(len(task) == 1 for task in drawn[PLACES["other"] : NUM_PLAIN])
    assert any(len(task) > 3 for task in drawn)


def test_some_are_where_wishes_have_led() -> None:
    """After a yes to the agent's question, and behind steps that the default ways do not have."""
    wished = begun.drawn(random.Random(2))[NUM_PLAIN:]
    asked, others = wished[: begun.WISHED_COUNTS["asked"]], wished[begun.WISHED_COUNTS["asked"] :]
    assert all(task[-2] == ("assistant", MAY_I) and task[-1][1] in YES for task in asked)
    assert any("edit_lines" in text for task in others for role, text in task if role == "assistant")


def test_the_tools_are_the_agents_and_no_words_are_held_out() -> None:
    """So the bank's tasks are for the agent, and the evaluation's words are not in them."""
    assert {tool["function"]["name"] for tool in definitions()} == {*begun.TOOLS}
    said = " ".join(task[0][1].lower() for task in begun.drawn(random.Random(3)))
    held_out = [words for _, spoken in WORDS.values() for words in spoken if "{" not in words]
    assert held_out
    assert not any(words in said for words in held_out)
