"""engine.reading.reactions: the shipped texts, and their distance from those that are held out."""

import re
from collections import Counter
from pathlib import Path

from engine.reading.reactions import LabelledReaction, read_reactions
from evals.reading import HELD_OUT
from storage.kinds import Meaning


def plain(text: str) -> str:
    """Return a text without case, punctuation and doubled blanks; one of emoji alone stays as it is."""
    return re.sub(r"\W+", " ", text.casefold()).strip() or text


def runs(reaction: LabelledReaction) -> set[str]:
    """Return every run of five words, or of eight signs of Chinese, in a text."""
    words = list(plain(reaction.text)) if reaction.language == "zh" else plain(reaction.text).split()
    size = 8 if reaction.language == "zh" else 5
    return {" ".join(words[i : i + size]) for i in range(len(words) - size + 1)}


def test_every_meaning_is_there_in_seven_languages() -> None:
    """Two hundred English texts and more, forty and more in each other language, every meaning in each."""
    found = read_reactions()
    count = Counter(reaction.language for reaction in found)
    assert count["en"] >= 200
    assert min(count.values()) >= 40
    assert len(count) >= 6
    assert min(Counter((r.language, r.meaning) for r in found).values()) >= 20
    assert len({(r.language, r.text) for r in found}) == len(found)


def test_the_held_out_set_is_large_and_even() -> None:
    """Two hundred English texts, forty in each of five others and more, each meaning as often as the others."""
    count = Counter((r.language, r.meaning) for r in read_reactions(HELD_OUT))
    languages = {language for language, _ in count}
    assert len(languages) >= 6
    assert all(count[language, m] == (40 if language == "en" else 8) for language in languages for m in Meaning)


def test_no_held_out_text_is_among_the_shipped_ones() -> None:
    """Nor does any share five words in a row with one of its language."""
    shipped, held_out = read_reactions(), read_reactions(HELD_OUT)
    assert {plain(r.text) for r in shipped} & {plain(r.text) for r in held_out} == set()
    known = {(r.language, run) for r in shipped for run in runs(r)}
    assert [r.text for r in held_out if any((r.language, run) in known for run in runs(r))] == []


def test_a_file_of_reactions_is_read(tmp_path: Path) -> None:
    """Quotation marks in a text stay as they are."""
    file = tmp_path / "reactions.tsv"
    file.write_text('language\tmeaning\ttext\nen\twish\tstop saying "as an AI"\n', encoding="utf-8")
    assert read_reactions(file) == [LabelledReaction("en", Meaning.WISH, 'stop saying "as an AI"')]
