"""engine.pocket.grammar: composed wishes read like English, and hold nothing that is held out."""

import re

from engine.pocket import grammar
from engine.pocket.style import DIRECTIONS

COMMANDS, REMARKS = grammar.commands([]), grammar.remarks([])


def test_nearly_every_direction_has_many_composed_phrasings() -> None:
    """All but the wish for a name, whose phrasings are listed, have a hundred commands and remarks or nearly."""
    for d in DIRECTIONS:
        if d != ("name", 1):
            assert len(COMMANDS[d]) > 80, d
            assert len(REMARKS[d]) > 80, d


def test_verbs_agree_with_their_things() -> None:
    """One annoys, several annoy."""
    assert "prose annoys me" in REMARKS["layout", 1]
    assert "bullet points annoy me" in REMARKS["layout", 0]
    assert "digits are easier for me" in REMARKS["numbers", 0]


def test_one_side_wants_what_the_other_is_tired_of() -> None:
    """The same thing liked and disliked belongs to opposite directions."""
    assert "i like capitals" in REMARKS["case", 0]
    assert "i can't stand capitals" in REMARKS["case", 1]
    assert "use metric instead of imperial" in COMMANDS["units", 0]
    assert "replace metric with imperial" in COMMANDS["units", 1]
    assert "be less formal" in COMMANDS["register", 0]


def test_nothing_of_the_grammar_is_left_over() -> None:
    """No star, brace, bracket or bar reaches a phrase."""
    phrases = [p for table in (COMMANDS, REMARKS) for listed in table.values() for p in listed]
    assert [p for p in phrases if re.search(r"[*{}\[\]|]", p)] == []
    assert all(p == p.strip() for p in phrases)


def test_held_out_phrasings_are_left_out_wherever_they_stand() -> None:
    """Neither the phrase itself nor a longer one around it is composed; a longer word is no such phrase."""
    held_out = ["use imperial units", "be short"]
    commands = grammar.commands(held_out)
    assert [p for p in commands["units", 1] if "use imperial units" in p] == []
    assert "be shorter" not in held_out
    assert "be short" not in commands["length", 1]
    assert "be brief" in commands["length", 1]
