"""engine.sample: one response with its contexts, as it is checked and as it crosses the process border."""

import json

import pytest

from engine.config import LearnConfig
from engine.sample import Sample
from tests.engine.updates_of import sample


def test_a_sample_crosses_the_process_border_unchanged() -> None:
    """Its record is plain and carries no optional field that has its default."""
    plain = Sample("anchor", [1], [2], [3])
    assert list(plain.to_dict()) == ["kind", "student_ids", "teacher_ids", "response_ids"]
    full = Sample("correction", [1], [2], [3], 0.5, [-0.1], [4], 0.7, "current")
    assert list(full.to_dict())[4:] == ["behaviour_logprobs", "behaviour_ids", "weight", "temperature", "teacher"]
    for sample_made in (plain, full):
        assert Sample.from_dict(json.loads(json.dumps(sample_made.to_dict()))) == sample_made


@pytest.mark.parametrize(
    "fields",
    [
        {"student_ids": []},
        {"teacher_ids": []},
        {"response_ids": []},
        {"behaviour_logprobs": [-1.0]},
        {"weight": -1.0},
    ],
)
def test_a_sample_that_cannot_be_trained_on_is_refused(fields: dict[str, object]) -> None:
    """Without a prompt or a response, with log-probabilities of another length, with a negative weight."""
    values = {"kind": "correction", "student_ids": [1], "teacher_ids": [1], "response_ids": [1, 2]} | fields
    with pytest.raises(ValueError, match=r"."):
        Sample.from_dict(values)


def test_an_unknown_field_is_refused() -> None:
    """A misspelt field would otherwise be ignored."""
    with pytest.raises(TypeError, match="respons_ids"):
        Sample.from_dict({"kind": "anchor", "student_ids": [1], "teacher_ids": [1], "respons_ids": [1]})


def test_anchors_are_held_to_the_base_unless_they_say_otherwise() -> None:
    """Whatever the update's teacher is."""
    learn = LearnConfig(teacher="current")
    assert sample("correction").teacher_mode(learn) == "current"
    assert sample("anchor").teacher_mode(learn) == "base"
    assert sample("anchor", teacher="current").teacher_mode(learn) == "current"


def test_only_a_different_stored_prompt_needs_a_pass_of_its_own() -> None:
    """The importance weight of other samples comes from the student's first pass."""
    logprobs = [-1.0] * 12
    assert not sample(behaviour_logprobs=logprobs).has_own_behaviour_prompt
    assert not sample(behaviour_ids=[1, 2]).has_own_behaviour_prompt
    assert sample(behaviour_logprobs=logprobs, behaviour_ids=[1, 2]).has_own_behaviour_prompt


@pytest.mark.parametrize(
    ("kind", "is_taught", "is_held_out", "teacher"),
    [
        ("correction", True, False, "ema"),
        ("counterfactual", True, False, "ema"),
        ("anchor", False, False, "base"),
        ("earlier", False, True, "base"),
        ("gold", False, True, "base"),
    ],
)
def test_each_kind_has_its_part(kind: str, is_taught: bool, is_held_out: bool, teacher: str) -> None:
    """Taught, held or only looked at; the configured teacher speaks about what is taught."""
    one = sample(kind)
    assert (one.is_taught, one.is_held_out) == (is_taught, is_held_out)
    assert one.teacher_mode(LearnConfig(teacher="ema")) == teacher
