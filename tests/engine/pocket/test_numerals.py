"""engine.pocket.numerals: whole numbers as words."""

import pytest

from engine.pocket.numerals import in_english, in_spanish

ENGLISH = {0: "zero", 8: "eight", 15: "fifteen", 41: "forty-one", 100: "one hundred", 999: "nine hundred ninety-nine"}
SPANISH = {
    0: "cero",
    16: "dieciséis",
    22: "veintidós",
    31: "treinta y uno",
    100: "cien",
    101: "ciento uno",
    220: "doscientos veinte",
    514: "quinientos catorce",
    770: "setecientos setenta",
    999: "novecientos noventa y nueve",
}


@pytest.mark.parametrize(("number", "words"), ENGLISH.items())
def test_english_numbers_are_spelled_as_in_a_dictionary(number: int, words: str) -> None:
    """Teens, tens with a hyphen and hundreds come out as English writes them."""
    assert in_english(number) == words


@pytest.mark.parametrize(("number", "words"), SPANISH.items())
def test_spanish_numbers_are_spelled_as_in_a_dictionary(number: int, words: str) -> None:
    """Accents, "y" between tens and ones, and "cien" against "ciento" come out as Spanish writes them."""
    assert in_spanish(number) == words


@pytest.mark.parametrize("spell", [in_english, in_spanish])
def test_no_two_numbers_share_their_words(spell: object) -> None:
    """A thousand numbers have a thousand spellings, so an answer in words can be wrong."""
    assert callable(spell)
    assert len({spell(n) for n in range(1000)}) == 1000
