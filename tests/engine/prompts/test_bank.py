"""engine.prompts.bank: neutral prompts from the model's folder, or the shipped ones."""

import json
import random
from pathlib import Path

import pytest

from bot.agent.tools import definitions
from engine.prompts import bank as bank_module
from engine.prompts.bank import FILE_NAME, Bank, load_bank


def test_a_model_folder_brings_its_own_bank(tmp_path: Path) -> None:
    """A bank in the model's folder is read in its order."""
    (tmp_path / FILE_NAME).write_text(json.dumps({"topics": ["b?", "a?"], "anchors": ["1+1?"]}))
    assert load_bank(tmp_path) == Bank(("b?", "a?"), ("1+1?",), ())
    (tmp_path / FILE_NAME).write_text(json.dumps({"topics": ["b?"], "anchors": ["1?"], "frames": ["what is my {x}?"]}))
    assert load_bank(tmp_path).frames == ("what is my {x}?",)


def test_any_other_model_gets_the_shipped_bank(tmp_path: Path) -> None:
    """A model without a bank of its own gets a broad list of different prompts."""
    bank = load_bank(tmp_path)
    assert len({*bank.topics}) == len(bank.topics) >= 30
    assert len({*bank.anchors}) == len(bank.anchors) >= 20
    assert not {*bank.topics} & {*bank.anchors}
    assert all("{x}" in frame for frame in bank.frames)
    assert bank.frames


def test_tasks_are_for_agents_with_the_tools_they_need(tmp_path: Path) -> None:
    """Spread over the list as topics are; without such tools there are none. The shipped bank has some."""
    tasks = [[["user", f"Task {n}."], ["assistant", "I look."], ["tool", "a file"]] for n in range(8)]
    more = {"tasks": tasks, "task_tools": ["read"]}
    (tmp_path / FILE_NAME).write_text(json.dumps({"topics": ["b?"], "anchors": ["1?"]} | more))
    bank = load_bank(tmp_path)
    drawn = bank.sample_tasks(4, ["read", "write"], random.Random(0))
    assert len({task[0]["content"] for task in drawn}) == 4
    assert [message["role"] for message in drawn[0]] == ["user", "assistant", "tool"]
    assert bank.sample_tasks(4, ["write"], random.Random(0)) == []
    shipped = bank_module.shipped_bank()
    asked = {text for task in shipped.tasks for _, text in task}
    assert len(asked) == len(shipped.tasks) >= 20
    assert asked.isdisjoint({*shipped.topics, *shipped.anchors})
    assert {tool["function"]["name"] for tool in definitions()} == {*shipped.task_tools}


def test_a_damaged_bank_is_an_error(tmp_path: Path) -> None:
    """A damaged bank is an error and is not taken for a missing one."""
    (tmp_path / FILE_NAME).write_text("{")
    with pytest.raises(ValueError, match="Expecting"):
        load_bank(tmp_path)


@pytest.mark.parametrize(("topics", "anchors"), [((), ("a",)), (("a",), ())])
def test_an_empty_list_is_refused(topics: tuple[str, ...], anchors: tuple[str, ...]) -> None:
    """A bank without topics or without anchors is refused."""
    with pytest.raises(ValueError, match="topics and anchors"):
        Bank(topics, anchors)


def test_samples_are_different_conversations() -> None:
    """As many different questions are drawn as wanted, or all of a smaller bank."""
    bank = Bank(("a?", "b?", "c?"), ("1?", "2?"))
    asked = [c[0]["content"] for c in bank.sample_topics(3, random.Random(0))]
    assert sorted(asked) == ["a?", "b?", "c?"]
    assert [m["role"] for c in bank.sample_topics(2, random.Random(0)) for m in c] == ["user", "user"]
    assert len(bank.sample_anchors(9, random.Random(0))) == 2


@pytest.mark.parametrize(
    ("asked", "is_foreign"),
    [
        (["What are the best restaurants in Lyon?", "How do I fix a flat tyre on my bike?"], False),
        (["Tell me about the koala"], False),
        (["Wie koche ich einen guten Kaffee?", "Schreib mir einen Brief an meine Vermieterin"], True),
        (["¿Cómo se hace una tortilla de patatas?"], True),
        (["Warum ist der Himmel blau?", "Was kostet ein Zelt?"], True),
        (["怎么泡茶"], True),
        (["Как заварить чай?"], True),
        ([], False),
    ],
)
def test_a_bank_sees_that_a_person_writes_in_another_language(
    tmp_path: Path, asked: list[str], is_foreign: bool
) -> None:
    """By the trigrams that they share; of no prompt nothing is said."""
    assert load_bank(tmp_path).is_foreign_to(asked) is is_foreign


def test_the_banks_own_trigrams_are_counted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every lesson asks; a bank that has answered is still equal to one that has not."""
    counted: list[int] = []
    count = bank_module._trigrams
    monkeypatch.setattr(bank_module, "_trigrams", lambda texts: (counted.append(len(texts)), count(texts))[1])
    bank = load_bank(tmp_path)
    assert [bank.is_foreign_to(["Wie koche ich einen guten Kaffee?"]) for _ in range(3)] == [True] * 3
    assert sorted(counted) == [1, 1, 1, len(bank.topics)]
    assert bank == load_bank(tmp_path)


def test_topics_of_every_kind_are_drawn() -> None:
    """Every stretch of the list is drawn from, so that no kind of question is missed."""
    bank = Bank(tuple(f"{kind}{i}" for kind in "abcd" for i in range(5)), ("1+1?",))
    for seed in range(20):
        drawn = [c[0]["content"] for c in bank.sample_topics(4, random.Random(seed))]
        assert sorted(text[0] for text in drawn) == [*"abcd"]
    assert bank.sample_topics(0, random.Random(0)) == []
    assert len({c[0]["content"] for c in bank.sample_topics(99, random.Random(0))}) == 20


def test_topics_behind_earlier_turns_are_drawn(tmp_path: Path) -> None:
    """Every draw has a chat that is under way: turns of the person and the model, the person's last."""
    bank = load_bank(tmp_path)
    assert all(len(turns) % 2 == 1 and len(turns) > 1 for turns in bank.threads)
    drawn = bank.sample_topics(11, random.Random(0))
    threads = [tuple(message["content"] for message in c) for c in drawn if len(c) > 1]
    assert 1 <= len(threads) <= 3
    assert set(threads) <= {*bank.threads}
    assert all([m["role"] for m in c] == ["user", "assistant", "user"] for c in drawn if len(c) > 1)


def test_topics_of_other_languages_are_drawn_and_tell_no_language() -> None:
    """Every draw has a foreign topic, and a person who writes in that language is still seen to."""
    bank = load_bank(Path("nowhere"))
    drawn = [c[0]["content"] for c in bank.sample_topics(11, random.Random(0))]
    assert 1 <= sum(text in bank.foreign for text in drawn) <= 3
    assert bank.is_foreign_to(["¿Qué puedo hacer un día de lluvia?"])
