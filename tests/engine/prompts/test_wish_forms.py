"""engine.prompts.wish_forms: wishes in many words, held against five hundred and fifty that were labelled by hand."""

import csv
from itertools import combinations, product
from pathlib import Path

import pytest

from engine.pocket.style import DIRECTIONS
from engine.prompts.wish_forms import INSTRUCTIONS, exclude, instruction_of
from evals.cases import wish_for
from evals.real.world import REAL_WISHES

FILE = Path(__file__).with_name("wishes.tsv")
NAMES = [
    *("brief", "sentence", "long", "bullets", "numbers", "prose", "lowercase", "capitals", "formal", "friendly"),
    *("simple", "emoji", "plain", "question", "unquestioning", "metric", "imperial", "digits", "words"),
    *("spanish", "german", "french", "italian", "portuguese", "chinese", "english"),
]
FORMS = dict(zip(NAMES, INSTRUCTIONS, strict=True))


def replaces(newer: str, older: str) -> bool:
    """Return True if two wishes ask for forms that no answer has together."""
    return exclude(instruction_of(newer), instruction_of(older))


def labelled() -> list[tuple[str, str]]:
    """The texts and the instruction that each is, empty for none."""
    with FILE.open(encoding="utf-8", newline="") as lines:
        rows = csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
        return [(row["text"], FORMS.get(row["form"], "")) for row in rows]


def test_what_is_told_is_what_was_asked_for() -> None:
    """Of the labelled texts that get an instruction 99 % get the right one; nine of ten that ask for one get one."""
    found = [(instruction_of(text), wanted) for text, wanted in labelled()]
    told = [(got, wanted) for got, wanted in found if got]
    assert sum(got == wanted for got, wanted in told) / len(told) >= 0.99
    asked = [(got, wanted) for got, wanted in found if wanted]
    assert sum(got == wanted for got, wanted in asked) / len(asked) >= 0.9


@pytest.mark.parametrize(
    "text",
    [
        "be brief unless I ask for details",
        "one sentence for the weather, more for news",
        "short for code questions",
        "no need to be so formal",
        "not in German please",
        "call me Tom",
        "I walk five miles a day",
        "my feet hurt",
        "begin every answer with Hello",
        "short and in Spanish",
        "thanks",
        "",
        "I would like you to be brief about bees, and about honey, and about wax, and hives, and all the flowers",
    ],
)
def test_what_is_no_single_form_stays_as_it_was_said(text: str) -> None:
    """A condition, a name, two forms at once, a denied one, a long text."""
    assert instruction_of(text) == ""


def test_instructions_are_themselves_understood() -> None:
    """A note that was made of a wish is not made into something else."""
    assert [instruction_of(text) for text in INSTRUCTIONS] == list(INSTRUCTIONS)


@pytest.mark.parametrize(
    ("newer", "older", "is_replaced"),
    [
        ("English again please", "Answer in Spanish.", True),
        ("more detail please", "too long", True),
        ("more detail please", "in one sentence", True),
        ("too long", "in one sentence", False),
        ("number the points", "use bullet points", True),
        ("no lists please", "number the points", True),
        ("conclude with a question", "stop asking me questions", True),
        ("imperial means nothing to me", "use miles", True),
        ("write numbers as digits", "spell out numbers", True),
        ("end with a question", "use metric units", False),
        ("in one sentence", "use bullet points", False),  # of one item
        ("in Spanish", "too long", False),
        ("too long", "too long", False),
        ("call me Tom", "Answer in Spanish.", False),
    ],
)
def test_a_wish_replaces_those_that_no_answer_follows_beside_it(newer: str, older: str, is_replaced: bool) -> None:
    """Either way round; what asks for no form replaces nothing."""
    assert replaces(newer, older) is is_replaced
    assert replaces(older, newer) is is_replaced


def test_wishes_about_different_things_replace_nothing() -> None:
    """Of what the pocket model's people wish for, in several wordings each, only opposites exclude each other."""
    wishes = [(each[0], wish_for(seed, each, "forms", seed).text) for each, seed in product(DIRECTIONS, range(12))]
    pairs = [(a, b) for (one, a), (other, b) in combinations(wishes, 2) if one != other]
    assert len(pairs) > 30_000
    assert [pair for pair in pairs if replaces(*pair)] == []


def test_no_fresh_phrasing_of_the_evaluation_is_labelled() -> None:
    """Nothing is tuned on them."""
    fresh = {words.casefold() for wish in REAL_WISHES.values() for words in wish.fresh}
    assert not fresh & {text.casefold() for text, _ in labelled()}
