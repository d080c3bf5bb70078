"""Figures: a value per seed and arm, and whether they reach the target."""

from evals.figure import answers_of, figure, held_share, per_seed, share

RECORDS = [
    {"part": "p", "seed": 0, "arm": "weights", "is_right": True, "kind": "a"},
    {"part": "p", "seed": 0, "arm": "weights", "is_right": False, "kind": "b"},
    {"part": "p", "seed": 1, "arm": "weights", "is_right": True, "kind": "a"},
    {"part": "p", "seed": 1, "arm": "notes", "is_right": None, "kind": "a"},
    {"part": "p", "seed": 1, "event": "lesson"},
]


def test_answers_are_chosen_by_part_and_value() -> None:
    """Events have no arm and are no answers."""
    assert answers_of(RECORDS, "p") == RECORDS[:4]
    assert answers_of(RECORDS, "p", kind="b") == RECORDS[1:2]
    assert answers_of(RECORDS, "q") == []


def test_a_share_leaves_out_who_does_not_know() -> None:
    """The notes arm has no value at all."""
    assert share(answers_of(RECORDS, "p"), "is_right") == {"weights": [0.5, 1.0]}
    assert per_seed(RECORDS[:1], lambda _record: None) == {}


def test_the_worst_is_the_least_or_the_most() -> None:
    """By which of both is good."""
    assert figure("f", {"weights": [0.5, 1.0, 0.9]}, target=0.8).worst == {"weights": 0.5}
    least = figure("f", {"weights": [0.5, 1.0, 0.9]}, target=0.8, is_at_least=False, judged=("weights",))
    assert least.worst == {"weights": 1.0}
    assert least.is_met(least.median) is False


def test_an_answer_follows_a_share_of_its_wishes() -> None:
    """One of two."""
    assert held_share({"held": {"emoji": True, "case": False}}) == 0.5
