"""engine.prompts.form: the form of a person's own answer, in words."""

import pytest

from engine.prompts.form import form_of


@pytest.mark.parametrize(
    ("example", "form"),
    [
        ("Steep the tea for three minutes.", "Answer in one sentence, in about 6 words."),
        ("Boil water. Add tea. Wait three minutes!", "Answer in three sentences, in about 7 words."),
        ("steep it, then wait", "Answer in one sentence, in about 4 words, in lowercase letters."),
        ("WAIT FOR THREE MINUTES", "Answer in one sentence, in about 4 words, in capital letters."),
        ("- boil water - add tea", "Answer as a list of bullet points, in about 6 words, in lowercase letters."),
        ("1. Boil water 2. Add tea", "Answer as a numbered list, in about 6 words."),
        ("Enjoy your tea 🍵", "Answer in one sentence, in about 4 words, with an emoji."),
        ("泡三分钟。", "Answer in one sentence."),
        (" ".join(["Boil some good water."] * 8), "Answer in about 30 words."),
        ("水。" * 9, "Answer at length."),
        ("42", "Answer in one sentence, in about one word."),
    ],
)
def test_an_example_is_told_by_its_form(example: str, form: str) -> None:
    """Sentences up to three, words (in fives from ten on), lists, letters and emoji; no word of the example."""
    assert form_of(example, example) == form


@pytest.mark.parametrize(
    ("answer", "form"),
    [
        ("Pour the water over the leaves and wait.", "Answer in Spanish, in one sentence, in about 10 words."),
        ("Primero hay que hervir el agua en una olla.", "Answer in one sentence, in about 10 words."),
        ("42", "Answer in one sentence, in about 10 words."),
    ],
)
def test_a_language_is_told_where_the_answer_was_not_in_it(answer: str, form: str) -> None:
    """Who writes Spanish and is answered in Spanish asks for no language; nor is one asked for where it is unclear."""
    assert form_of("Vierta agua caliente sobre las hojas y espere tres minutos.", answer) == form
