"""engine.pocket.bank: the neutral prompts written beside the pocket model's weights."""

import random
import re
from pathlib import Path

from engine.pocket import WEIGHTS, bank
from engine.pocket.subjects import SUBJECTS
from engine.prompts.bank import load_bank


def test_every_trained_subject_is_a_topic_and_no_held_out_one() -> None:
    """Topics ask about each trained subject and never about a held-out one."""
    text = " ".join(bank.topics(random.Random(0))).lower()
    for subject in SUBJECTS:
        is_asked = re.search(rf"\b{subject.name.lower()}\b", text) is not None
        assert is_asked is not subject.is_held_out, subject.name


def test_two_families_of_skills_are_wholly_absent() -> None:
    """Opposites and comparisons are in no anchor and no topic, so they show the effect on unprotected skills."""
    rng = random.Random(0)
    text = " ".join([*bank.topics(rng), *bank.anchors(rng, 200)])
    assert not re.search(r"(?i)opposite|bigger|larger", text)
    assert re.search(r"plus", text)


def test_anchors_differ_from_one_another() -> None:
    """No anchor is asked twice."""
    anchors = bank.anchors(random.Random(0))
    assert len(set(anchors)) == len(anchors) > 30


def test_the_engine_reads_what_was_written(tmp_path: Path) -> None:
    """A model folder's bank is found by the engine, and the same seed writes the same file."""
    bank.write_bank(tmp_path, 5)
    first = load_bank(tmp_path)
    bank.write_bank(tmp_path, 5)
    assert load_bank(tmp_path) == first
    assert first.topics == tuple(bank.topics(random.Random(5)))
    assert (first.frames, first.things) == (bank.FRAMES, bank.THINGS)


def test_the_committed_weights_have_these_frames() -> None:
    """The bank beside the weights is the one that this module writes."""
    found = load_bank(WEIGHTS)
    assert (found.frames, found.things) == (bank.FRAMES, bank.THINGS)
