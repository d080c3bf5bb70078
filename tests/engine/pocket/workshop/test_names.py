"""engine.pocket.workshop.names: files, keys and values, and those that training never has."""

import random
from collections.abc import Callable

import pytest

from engine.pocket.subjects import HELD_OUT_SUBJECTS
from engine.pocket.workshop import names


@pytest.mark.parametrize(
    ("draw", "known", "held_out"),
    [
        (names.stem, names.STEMS, names.HELD_OUT_STEMS),
        (names.key, names.KEYS, names.HELD_OUT_KEYS),
        (names.value, names.WORDS, names.HELD_OUT_WORDS),
    ],
)
def test_held_out_names_are_drawn_only_where_they_are_wanted(
    draw: Callable[..., str], known: list[str], held_out: list[str]
) -> None:
    """No name is on both lists, and training draws none that is held out, nor makes one up."""
    rng = random.Random(1)
    trained = {draw(rng) for _ in range(4000)}
    assert not set(known) & set(held_out)
    assert not trained & set(held_out)
    assert set(known) & trained
    assert {name for name in (draw(rng, is_held_out=True) for _ in range(900)) if not name.isdigit()} == set(held_out)


def test_no_name_is_a_held_out_subject_of_the_chats() -> None:
    """What chats never teach is nothing that an agent's files are called, either."""
    subjects = {word for subject in HELD_OUT_SUBJECTS for word in subject.name.lower().split()}
    assert not subjects & {*names.STEMS, *names.KEYS, *names.WORDS}


def test_an_invented_name_is_never_a_held_out_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the syllables happen to make one, another name stands for it."""
    rng = random.Random(3)
    made = names.invented(random.Random(3))
    monkeypatch.setattr(names, "HELD_OUT_KEYS", [made])
    assert names.invented(rng) != made


def test_names_apart_are_different() -> None:
    """As many as were asked for, also of the held-out ones."""
    assert len(set(names.apart(12, names.key, random.Random(1), is_held_out=True))) == 12


def test_another_name_is_none_that_is_taken() -> None:
    """It is drawn until it is another."""
    taken = set(names.HELD_OUT_KEYS[1:])
    assert names.another(names.key, taken, random.Random(1), is_held_out=True) == names.HELD_OUT_KEYS[0]
