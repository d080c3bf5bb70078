"""engine.pocket.grammar: composed wishes read like English, and contain no held-out phrase."""

import re

from engine.pocket import grammar
from engine.pocket.style import DIRECTIONS

COMMANDS, REMARKS = grammar.commands([]), grammar.remarks([])


def test_every_direction_has_many_composed_phrasings() -> None:
    """Every direction has hundreds of commands and remarks."""
    for d in DIRECTIONS:
        assert len(COMMANDS[d]) > 300, d
        assert len(REMARKS[d]) > 300, d


def test_verbs_agree_with_their_things() -> None:
    """A verb follows the number of its thing: one annoys, several annoy."""
    assert "prose annoys me" in REMARKS["layout", 1]
    assert "bullet points annoy me" in REMARKS["layout", 0]
    assert "digits are easier for me" in REMARKS["numbers", 0]


def test_one_side_wants_what_the_other_is_tired_of() -> None:
    """Liking and disliking the same thing belong to opposite directions."""
    assert "i like capitals" in REMARKS["case", 0]
    assert "i can't stand capitals" in REMARKS["case", 1]
    assert "use metric instead of imperial" in COMMANDS["units", 0]
    assert "replace metric with imperial" in COMMANDS["units", 1]
    assert "be less formal" in COMMANDS["register", 0]


def test_manners_objects_and_ends_belong_to_their_side() -> None:
    """Wishes about the manner, about objects and about the ends of an answer are composed."""
    assert "answer me in brief" in COMMANDS["length", 1]
    assert "write every number in words" in REMARKS["numbers", 1]
    assert "conclude your answers with a question" in COMMANDS["question", 0]
    assert "never open with a summary" in COMMANDS["summary", 0]
    assert "use an informal tone" in COMMANDS["register", 0]
    assert "don't forget to greet me as {x}" in COMMANDS["name", 1]
    assert "i'd like to be known as {x}" in REMARKS["name", 1]


def test_nothing_of_the_grammar_is_left_over() -> None:
    """No star, brace, bracket or bar reaches a phrase."""
    phrases = [p for table in (COMMANDS, REMARKS) for listed in table.values() for p in listed]
    assert [p for p in phrases if re.search(r"[*{}\[\]|]", p.replace("{x}", ""))] == []
    assert all(p == p.strip() for p in phrases)


def test_held_out_phrasings_are_left_out_wherever_they_stand() -> None:
    """Neither the phrase itself nor a longer one around it is composed; a longer word is no such phrase."""
    held_out = ["use imperial units", "be short", "hi, i am {x}"]
    commands = grammar.commands(held_out)
    assert [p for p in commands["units", 1] if "use imperial units" in p] == []
    assert "be shorter" not in held_out
    assert "be short" not in commands["length", 1]
    assert "be brief" in commands["length", 1]
    told = grammar.remarks(held_out)["name", 1]
    assert not {"hi, i am {x}", "hi i am {x}"} & set(told)
    assert "hello i am {x}" in told
