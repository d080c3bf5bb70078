"""engine.pocket.hints: what people say who do not name what they want, and nothing of what the evaluations speak."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import evals
from engine.pocket.hints import HINTS, read
from engine.pocket.style import DIRECTIONS
from engine.pocket.wishes import COMMANDS, HELD_OUT_NAMES, REMARKS

ALL = [hint for hints in HINTS.values() for hint in hints]


def bare(text: str) -> str:
    """Return a text without capitals and signs."""
    return re.sub(r"[^\w{}]+", " ", text.lower()).strip()


def texts_in(value: Any) -> Iterator[str]:
    """Find every text in nested lists and objects."""
    if isinstance(value, str):
        yield value
    else:
        for part in value.values() if isinstance(value, dict) else value:
            yield from texts_in(part)


def test_every_direction_has_hundreds_and_none_means_two_things() -> None:
    """Each of the 24 directions has over four hundred, and no text stands twice, signs aside."""
    assert list(HINTS) == DIRECTIONS
    assert min(len(hints) for hints in HINTS.values()) > 400
    assert [text for text, count in Counter(map(bare, ALL)).items() if count > 1] == []


def test_a_hint_is_one_line_with_its_name_left_open() -> None:
    """Only wishes for a name carry one, once."""
    for direction, hints in HINTS.items():
        for hint in hints:
            assert hint.isascii()
            assert hint.isprintable()
            assert 0 < len(hint) <= 120
            assert hint.count("{x}") == (1 if direction == ("name", 1) else 0)
            assert not re.search(r"[{}]", hint.replace("{x}", ""))


def test_no_hint_is_what_an_evaluation_speaks() -> None:
    """Neither the fresh wishes, nor held-out phrasings or names, stand in a hint."""
    fresh = json.loads((Path(evals.__file__).with_name("fresh_wishes.json")).read_text(encoding="utf-8"))
    spoken = {bare(text) for text in texts_in(fresh)}
    assert len(spoken) > 30
    assert spoken.isdisjoint(map(bare, ALL))
    held_out = [phrase for table in (COMMANDS, REMARKS) for _, phrases in table.values() for phrase in phrases]
    forms = [re.escape(phrase).replace(r"\{x\}", r"\S+") for phrase in held_out]
    said = re.compile(rf"(?i)(?<!\w)(?:{'|'.join([*forms, *HELD_OUT_NAMES])})(?!\w)")
    assert [hint for hint in ALL if said.search(hint)] == []


def test_a_file_of_hints_is_read(tmp_path: Path) -> None:
    """Each line goes to its direction, in the order of the file."""
    (tmp_path / "hints").write_text("length 1\tMy eyes!\nname 1\tI sign as {x}.\nlength 1\tTo the bone.\n")
    found = read(tmp_path / "hints")
    assert found["length", 1] == ("My eyes!", "To the bone.")
    assert found["name", 1] == ("I sign as {x}.",)
    assert found["length", 0] == ()
