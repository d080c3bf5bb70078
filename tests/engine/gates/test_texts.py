"""engine.gates.texts: entities, form and variety of texts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.config import GateConfig
from engine.gates.texts import (
    Written,
    can_tell_names,
    entities,
    fabricated_share,
    is_compliant,
    judge_texts,
    preserved_share,
    rouge_l,
    self_rouge_l,
)

words = st.lists(st.sampled_from("abcd"), max_size=12)
GOLD = "The koala lives in Australia and weighs 10 kg. Ask @zookeeper."


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It weighs 10 kg and costs 3.50", {"10", "3.50"}),
        ("see /etc/heed/config.toml and v1.2.3", {"/etc/heed/config.toml", "v1.2.3"}),
        ("ask @ana about LoraSlot", {"@ana", "loraslot"}),
        ("The koala lives in Australia", {"australia"}),
        ("Nothing special here", set()),
        ("", set()),
    ],
)
def test_entities_are_numbers_paths_versions_mentions_and_names(text: str, expected: set[str]) -> None:
    """A capitalised word within a sentence is a name, at the beginning of a text it is none."""
    assert entities(text) == expected


GERMAN = "Am Morgen trinkt Anna in der Küche einen Kaffee, und mittags isst sie 2 Brote mit ihrer Schwester."
CHINESE = "考拉住在澳大利亚，体重10公斤。"  # noqa: RUF001


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Ich wohne in Österreich, nahe Wien.", {"österreich", "wien"}),
        ("Он живёт в Москве, дом 19.", {"москве", "19"}),
        (CHINESE, {"10"}),
        ("问@安娜", {"@安娜"}),
    ],
)
def test_entities_are_told_in_other_scripts(text: str, expected: set[str]) -> None:
    """Capitals of any script mark a name; a number stands by itself beside letters that are written without blanks."""
    assert entities(text) == expected


@pytest.mark.parametrize(("text", "expected"), [(GOLD, True), (GERMAN, False), (CHINESE, False), ("", True)])
def test_where_capitals_tell_no_names_nothing_is_said_about_names(text: str, expected: bool) -> None:
    """German nouns all have capitals, and Chinese has none: a paraphrase invents nothing for that."""
    assert can_tell_names(text) is expected


def test_a_paraphrase_in_german_invents_nothing() -> None:
    """Other nouns are no made-up facts; another number is one."""
    other = "Morgens gibt es für Anna am Tisch einen Espresso, und am Mittag isst sie 2 Scheiben mit der Schwester."
    assert fabricated_share(GERMAN, other) == 0.0
    assert fabricated_share(GERMAN, other.replace("2", "7")) == 1.0
    assert preserved_share(GERMAN, other) == 1.0


def test_the_verdict_says_of_which_answers_names_were_not_judged() -> None:
    """A gate that cannot judge a text abstains and says so."""
    assert judge_texts([Written(GOLD, GOLD)], GateConfig()).unjudged == 0.0
    mixed = judge_texts([Written(GOLD, GOLD), Written(CHINESE, CHINESE)], GateConfig())
    assert (mixed.is_accepted, mixed.unjudged) == (True, 0.5)
    assert not judge_texts([Written(CHINESE, CHINESE.replace("10", "90"))], GateConfig()).is_accepted


def test_the_share_of_entities_kept() -> None:
    """With two of three entities kept the share is two thirds; a longer number is another entity."""
    assert preserved_share(GOLD, "in australia, 10 kg, @zookeeper") == 1.0
    assert preserved_share(GOLD, "It weighs 10 kg in Australia.") == pytest.approx(2 / 3)
    assert preserved_share(GOLD, "It weighs 100 kg.") == 0.0
    assert preserved_share("no entity", "whatever 5") == 1.0


def test_the_share_of_entities_invented() -> None:
    """A word of the gold answer is no invention, however it is capitalised."""
    assert fabricated_share(GOLD, "It weighs 10 kg in Australia.") == 0.0
    assert fabricated_share(GOLD, "It weighs 12 kg in Australia.") == 0.5
    assert fabricated_share(GOLD, "It weighs little.") == 0.0
    assert fabricated_share("australia is far", "that is in Australia") == 0.0


@pytest.mark.parametrize(
    ("gold", "text", "expected"),
    [
        ("Yes.", "No.", True),
        ("Yes.", "", False),
        ("Yes.", "   ", False),
        ("- a\n- b", "- x\n- y\n- z", True),
        ("- a\n- b", "x and y", False),
        ("a and b", "1. x\n2. y", False),
        ('{"a": 1}', '{"a": 2}', True),
        ('{"a": 1}', "a is 2", False),
        ("Yes.", "```\nx", False),
        ("Yes.", "Notes about this person: none", False),
        ("Yes.", "Yes.<|im_start|>user", False),
    ],
)
def test_the_form_is_that_of_the_gold_answer(gold: str, text: str, expected: bool) -> None:
    """A text keeps the form if it is a list or JSON like its gold answer, is not empty and repeats no prompt."""
    assert is_compliant(Written(gold, text)) is expected


def test_an_answer_that_never_ends_has_not_kept_the_form() -> None:
    """An answer that ran into the limit of tokens does not keep the form."""
    assert not is_compliant(Written("Yes.", "Yes, yes, yes,", is_ended=False))


def test_each_figure_has_its_bound() -> None:
    """Each of the three checks follows its own figure."""
    same = Written(GOLD, GOLD)
    assert judge_texts([same], GateConfig()).is_accepted
    lost = judge_texts([same, Written(GOLD, "The koala is shy.")], GateConfig())
    assert lost.checks == {"entities kept": False, "nothing invented": True, "form kept": True}
    invented = judge_texts([same, Written(GOLD, GOLD + " It likes Vienna and 77 cakes.")], GateConfig())
    assert invented.checks == {"entities kept": True, "nothing invented": False, "form kept": True}
    broken = judge_texts([same, Written(GOLD, GOLD, is_ended=False)], GateConfig())
    assert broken.checks == {"entities kept": True, "nothing invented": True, "form kept": False}


def test_an_empty_gold_set_is_no_proof() -> None:
    """Without any answer there is nothing to judge, which is an error and no pass."""
    with pytest.raises(ValueError, match="empty gold set"):
        judge_texts([], GateConfig())


@given(st.text(max_size=60), st.text(max_size=60))
def test_shares_are_shares(gold: str, text: str) -> None:
    """Every share lies between 0 and 1, and a copy of the gold answer is perfect."""
    assert 0 <= preserved_share(gold, text) <= 1
    assert 0 <= fabricated_share(gold, text) <= 1
    assert preserved_share(gold, gold) == 1.0
    assert fabricated_share(gold, gold) == 0.0


@given(words, words)
def test_rouge_l_is_symmetric_and_one_for_equals(first: list[str], second: list[str]) -> None:
    """ROUGE-L F1 is 2 LCS / (m + n)."""
    assert rouge_l(first, second) == rouge_l(second, first)
    assert 0 <= rouge_l(first, second) <= 1
    assert rouge_l(first, first) == 1.0


def test_rouge_l_takes_the_longest_common_subsequence() -> None:
    """Lin (2004), section 3, gives 0.75 for "police killed the gunman" against "police kill the gunman"."""
    assert rouge_l(["police", "killed", "the", "gunman"], ["police", "kill", "the", "gunman"]) == 0.75
    assert rouge_l("abc", "xyz") == 0.0


def test_answers_that_are_all_the_same_have_self_rouge_one() -> None:
    """The variety of a single answer is not measured."""
    assert self_rouge_l(["same words", "same words", "same words"]) == 1.0
    assert self_rouge_l(["abc", "abd"]) == pytest.approx(2 / 3)
    assert self_rouge_l(["alone"]) is None
