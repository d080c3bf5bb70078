"""What CLaaS's metrics are measured on."""

import pytest

from evals.claas_scenes import POCKET_PREFERENCES, ClaasScene, pocket_scenes, real_scenes


@pytest.mark.parametrize("scenes", [real_scenes(1), pocket_scenes(1, ())], ids=["real", "pocket"])
def test_every_scene_is_whole(scenes: list[ClaasScene]) -> None:
    """Three preferences, each with pairs of which the good one alone is as wished, probes apart from what is corrected,
    and general questions that weigh one together.
    """
    assert len(scenes) == 3
    for scene in scenes:
        assert len(scene.pairs) == len(scene.probes) == 3
        assert scene.corrected not in scene.probes
        assert all(pair.good != pair.bad for pair in scene.pairs)
        assert sum(question.weight for question in scene.general) == pytest.approx(1.0)


def test_the_checks_tell_the_pairs_apart() -> None:
    """In every pair the good example scores more than the bad one, by the check that answers are judged with."""
    for scene in [*real_scenes(0), *pocket_scenes(0, ())]:
        assert all(scene.compliance(pair.good) > scene.compliance(pair.bad) for pair in scene.pairs), scene.preference


def test_each_seed_has_other_words_and_probes() -> None:
    """Three seeds, three wordings; the pairs of a real model stay the same."""
    seeds = [real_scenes(seed) for seed in range(3)]
    assert len({scenes[0].words for scenes in seeds}) == 3
    assert seeds[0][0].probes != seeds[1][0].probes
    assert seeds[0][0].pairs == seeds[1][0].pairs
    assert [scene.preference for scene in seeds[0]] == ["no_emoji", "concise", "identity"]


def test_the_pocket_is_not_asked_what_learning_rehearses() -> None:
    """A rehearsed exercise is left out; the preferences are those of its world."""
    scenes = pocket_scenes(0, ())
    rehearsed = {question.messages[0]["content"] for question in scenes[0].general}
    others = pocket_scenes(0, rehearsed)
    assert not rehearsed & {question.messages[0]["content"] for question in others[0].general}
    assert tuple(scene.preference for scene in scenes) == POCKET_PREFERENCES
