"""The questions and corrections of an evaluation."""

import pytest

from engine.pocket.style import DIRECTIONS, PREFERENCES, observe
from engine.pocket.subjects import SUBJECTS
from engine.pocket.talk import SKILLS
from engine.pocket.wishes import HELD_OUT_NAMES, NAMES
from evals import cases
from tests.evals.fake_heed import WISHES, content_of

SEEDS = range(5)


@pytest.mark.parametrize("seed", SEEDS)
def test_probes_are_about_held_out_subjects_the_person_never_mentioned(seed: int) -> None:
    """Probes, corrected questions and earlier messages never share a subject with one another's probes."""
    probed = {q.content.subject for q in cases.probes(seed, 40)}
    said = {q.content.subject for q in [*cases.corrected(seed, 6), *cases.earlier(seed, 20)]}
    assert all(subject.is_held_out for subject in probed)
    assert not probed & said


def test_corrected_answers_are_about_held_out_subjects() -> None:
    """Corrected subjects are as unseen as probed ones."""
    assert all(q.content.subject.is_held_out for q in cases.corrected(0, 10))


@pytest.mark.parametrize("seed", SEEDS)
def test_questions_are_all_different_and_as_many_as_asked_for(seed: int) -> None:
    """No probe counts twice."""
    assert len({q.text for q in cases.probes(seed, 60, "any")}) == 60


def test_a_question_asks_for_what_its_content_says() -> None:
    """The words and the facts belong together (read back independently)."""
    asked = [q for seed in SEEDS for q in [*cases.probes(seed, 40), *cases.earlier(seed, 20)]]
    assert [q.text for q in asked if content_of(q.text) != q.content] == []


def test_the_same_seed_and_labels_give_the_same_words() -> None:
    """A run can be repeated; another seed or another label is another draw."""
    first = cases.wish_for(3, ("name", 1), "a")
    assert cases.wish_for(3, ("name", 1), "a") == first
    assert cases.probes(3, 10, "a") == cases.probes(3, 10, "a")
    assert cases.probes(3, 10, "a") != cases.probes(4, 10, "a")
    assert cases.probes(3, 10, "a") != cases.probes(3, 10, "b")


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_wishes_are_held_out_phrasings_with_held_out_names(direction: tuple[str, int]) -> None:
    """Nothing a person says to correct was ever trained on."""
    wishes = [cases.wish_for(seed, direction) for seed in range(20)]  # type: ignore[arg-type]
    assert all(WISHES[w.text][0] == direction for w in wishes)
    assert {w.name for w in wishes} <= set(HELD_OUT_NAMES)
    assert not {w.name for w in wishes} & set(NAMES)


def test_what_a_wish_wants_is_a_value_of_its_preference() -> None:
    """A name stands for itself."""
    assert cases.Wish(("emoji", 1), "Mara", "").wanted == "off"
    assert cases.Wish(("name", 1), "Mara", "").wanted == "Mara"
    assert cases.Wish(("name", 0), "Mara", "").wanted == ""


def test_the_opposite_goes_back_and_keeps_the_name() -> None:
    """Taking a name back is about the same name."""
    away = cases.wish_for(1, ("name", 1))
    back = cases.opposite(1, away)
    assert (back.direction, back.name) == (("name", 0), away.name)


@pytest.mark.parametrize("seed", SEEDS)
def test_sequences_teach_every_preference_once_six_at_a_time(seed: int) -> None:
    """Two people share the twelve."""
    first, second = cases.sequences(seed, list(PREFERENCES), 6)
    assert sorted([*first, *second]) == sorted(PREFERENCES)


def test_sequences_differ_between_seeds_and_fill_a_short_rest() -> None:
    """The order is the seed's; a run is never shorter than asked where there are enough preferences."""
    assert cases.sequences(0, list(PREFERENCES), 6) != cases.sequences(1, list(PREFERENCES), 6)
    assert [len(set(run)) for run in cases.sequences(0, ["a", "b", "c", "d"], 3)] == [3, 3]
    assert cases.sequences(0, ["emoji"], 6) == [["emoji"]]


def test_exercises_cover_every_family_and_avoid_what_is_rehearsed() -> None:
    """As many of each family, all different, none from the anchors."""
    avoided = {e.text for e in cases.exercises(0, 50, ())}
    found = cases.exercises(0, 500, avoided)
    assert len({e.text for e in found}) == 500
    assert not avoided & {e.text for e in found}
    assert {skill: sum(e.skill == skill for e in found) for skill in SKILLS} == dict.fromkeys(SKILLS, 100)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_a_wish_told_next_is_away_from_what_the_answer_shows(direction: tuple[str, int]) -> None:
    """The answer the person complains about does not have what they ask for."""
    told = cases.told_next_turn(0, direction, 0)  # type: ignore[arg-type]
    *_, answer, said = told.messages
    assert said == {"role": "user", "content": told.wish.text}
    assert observe(answer["content"], told.wish.name)[direction[0]] != told.wish.wanted
    assert (told.messages[0]["role"] == "system") is (direction[1] == 0)


def test_a_wish_in_hindsight_stands_in_the_question() -> None:
    """The teacher reads the feedback behind the question, not as a turn of its own."""
    told = cases.told_in_hindsight(0, ("emoji", 1), 0)
    assert len(told.messages) == 1
    assert told.wish.text in told.messages[0]["content"]


def test_there_are_subjects_left_to_probe() -> None:
    """Both halves of the held-out subjects are there for every seed."""
    held_out = sum(s.is_held_out for s in SUBJECTS)
    assert {tuple(map(len, cases.subjects(seed))) for seed in SEEDS} == {(4, held_out - 4)}
