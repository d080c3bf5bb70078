"""Labelled reactions to answers, written for heed in seven languages: what probes are fitted on.

Owns the file beside it. Invariant: no text of the held-out reactions (`evals/reactions_held_out.tsv`) is among them.
"""

import csv
from dataclasses import dataclass
from pathlib import Path

from storage.kinds import Meaning

FILE = Path(__file__).with_name("reactions.tsv")


@dataclass(frozen=True)
class LabelledReaction:
    """A text with the meaning a person gave it."""

    language: str  # ISO 639-1
    meaning: Meaning
    text: str


def read_reactions(file: Path = FILE) -> list[LabelledReaction]:
    """Return the labelled reactions of a file of tab-separated columns."""
    with file.open(encoding="utf-8", newline="") as lines:
        rows = csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
        return [LabelledReaction(row["language"], Meaning(row["meaning"]), row["text"]) for row in rows]
