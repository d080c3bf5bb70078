"""From records to pictures."""

from typing import Any

import pytest

from evals import gallery
from evals.journal import Record

GATE = {
    "accepted": True,
    "figures": {
        "margin_before": -4.0, "margin_after": 3.0, "divergence_before": 1.5, "divergence_after": 0.05,
        "entropy_ratio": 1.1, "self_rouge": 0.3, "drift": 0.01,
    },
}  # fmt: skip


def lesson(part: str = "retention", **gate: Any) -> Record:
    """One correction as it is recorded."""
    return {"part": part, "seed": 0, "event": "lesson", "status": "learned", "update": {"gate": GATE | gate}}


def held(part: str, **shares: bool) -> Record:
    """One judged answer."""
    return {"part": part, "seed": 0, "arm": "weights", "held": shares, "facts_lost": False}


def adopted(place: int, *shares: float) -> Record:
    """Return a record of adoption after one of several lessons."""
    return {"part": "adopted", "seed": 0, "arm": "weights", "preference": "emoji", "share": shares[-1],
            "lesson": place, "held_so_far": list(shares)}  # fmt: skip


def names(*records: Record) -> list[str]:
    """The files of the pictures that the records give."""
    return [picture.name for picture in gallery.of(records)]


def test_lessons_give_margins_learning_and_collapse() -> None:
    """Each a PNG with words."""
    pictures = gallery.of([lesson(), lesson("endurance", accepted=False)])
    assert [picture.name for picture in pictures] == ["margins.png", "learning.png", "collapse.png"]
    assert all(picture.png.startswith(b"\x89PNG") and picture.caption for picture in pictures)


@pytest.mark.parametrize(
    ("record", "name"),
    [
        (adopted(0, 1.0), "retention.png"),
        (held("lasting", emoji=True), "preferences.png"),
        (held("retention", emoji=True), "preferences.png"),
        ({"part": "poison", "seed": 0, "event": "next answer", "first_token_s": 0.2}, "first_token.png"),
    ],
)
def test_every_kind_of_record_has_its_picture(record: Record, name: str) -> None:
    """Beside others, perhaps."""
    assert name in names(record)


def test_nothing_to_show_is_no_picture() -> None:
    """Nor a lesson of which nothing was measured."""
    assert names() == []
    assert names({"part": "poison", "seed": 0, "event": "lesson", "update": {}}) == []


def test_what_each_lesson_left_of_those_before_is_a_triangle() -> None:
    """The mean over people; what was not taught yet is empty."""
    held = gallery._so_far([adopted(0, 1.0), adopted(1, 0.5, 1.0), adopted(0, 0.0), adopted(1, 0.0, 1.0)])
    assert held == {0: [[1.0], [0.0]], 1: [[0.5, 1.0], [0.0, 1.0]]}
    assert gallery.forgetting([adopted(0, 1.0), adopted(1, 0.5, 1.0)]) is not None
