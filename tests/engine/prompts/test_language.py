"""engine.prompts.language: the language of a text, by its English name."""

import pytest

from engine.prompts.language import language_of


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Pour boiling water over the leaves and wait for three minutes.", "English"),
        ("Vierta agua caliente sobre las hojas y espere tres minutos.", "Spanish"),
        ("Der Tee zieht drei Minuten, dann wird er getrunken.", "German"),
        ("Verse heet water over de bladeren en wacht drie minuten.", "Dutch"),
        ("Selamat pagi, tuang air panas di atas daun teh.", "Indonesian"),
        ("把水烧开再泡茶。", "Chinese"),
        ("お湯を沸かしてから茶葉に注ぎます。", "Japanese"),
        ("Βράστε το νερό και ρίξτε τα φύλλα.", "Modern Greek"),
    ],
)
def test_a_sentence_has_its_language(text: str, language: str) -> None:
    """In its English name, without the remarks that stand in brackets behind some."""
    assert language_of(text) == language


@pytest.mark.parametrize("text", ["", "ok", "42", "Canberra.", "ls -la", "print('x')", "- tea\n- milk", "🍵"])
def test_where_it_is_not_sure_there_is_none(text: str) -> None:
    """Short texts, numbers, names and code."""
    assert language_of(text) == ""
