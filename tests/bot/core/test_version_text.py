"""bot.core.version_text: versions and what taught them, in words."""

import pytest

from bot.core import version_text
from storage.kinds import FeedbackKind, VersionState
from storage.learning.versions import Lineage
from storage.tables import AdapterVersion, Feedback, UpdateRun


def version(number: int, parent: int, state: VersionState = VersionState.ACCEPTED) -> AdapterVersion:
    """A version's row."""
    return AdapterVersion(user_id="ana", number=number, parent=parent, path="", state=state)


def taught(text: str, kind: FeedbackKind = FeedbackKind.CORRECTION) -> Feedback:
    """What somebody said."""
    return Feedback(user_id="ana", kind=kind, text=text)


KNOWN: Lineage = [
    (version(4, 2), taught("imported: bees", FeedbackKind.IMPORT), UpdateRun(user_id="ana", kind="import")),
    (version(3, 2, VersionState.REJECTED), taught("be  a\nbee"), None),
    (version(2, 1), taught("no emoji"), None),
    (version(1, 0, VersionState.PRUNED), None, UpdateRun(user_id="ana", kind="rebuild")),
]


def test_every_version_is_listed_with_what_taught_it() -> None:
    """Newest first; what cannot be gone back to says why; the active one is marked."""
    assert version_text.listing(KNOWN, 2).splitlines() == [
        "v4        imported: bees",
        'v3        "be a bee"  (not used: it did worse)',
        'v2        "no emoji"  <- answers now',
        "v1        made again from the notes  (not kept any more)",
        "v0 (untrained) the untrained model",
    ]
    assert version_text.listing([], 0) == "v0 (untrained) the untrained model  <- answers now"


def test_long_words_are_cut() -> None:
    """A line stays a line."""
    words = version_text.taught_by(taught("bee " * 100), None)
    assert len(words) <= version_text.MAX_CHARS + 2
    assert words.endswith('…"')


@pytest.mark.parametrize(
    ("before", "number", "said"),
    [
        (4, 2, 'v2 answers now; it was taught: made again from the notes, "no emoji"; undone: imported: bees.'),
        (2, 0, 'The untrained model answers now; undone: made again from the notes, "no emoji".'),
        (0, 1, "v1 answers now; it was taught: made again from the notes."),
        (0, 0, "The untrained model answers now."),
    ],
)
def test_going_back_says_what_holds_and_what_does_not(before: int, number: int, said: str) -> None:
    """Lessons on the way to the version hold, those beyond it are taken back."""
    assert version_text.returned(KNOWN, before, number) == said


def test_a_version_has_a_name() -> None:
    """Nobody was ever taught version 0."""
    assert [version_text.version_name(n) for n in (0, 7)] == ["v0 (untrained)", "v7"]
