"""engine.sample: the records that cross into the worker."""

from dataclasses import replace

import pytest

from engine.config import LearnConfig
from engine.sample import Passage, Sample, Score
from tests.engine.updates_of import sample


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
    """A missing prompt or response, unequal lengths and a negative weight are errors."""
    values = {"kind": "correction", "student_ids": [1], "teacher_ids": [1], "response_ids": [1, 2]} | fields
    with pytest.raises(ValueError, match=r"."):
        Sample.from_dict(values)


def test_an_unknown_field_is_refused() -> None:
    """A misspelt field would otherwise be ignored."""
    with pytest.raises(TypeError, match="respons_ids"):
        Sample.from_dict({"kind": "anchor", "student_ids": [1], "teacher_ids": [1], "respons_ids": [1]})


def test_anchors_are_held_to_the_base_unless_they_say_otherwise() -> None:
    """The update's teacher does not change the teacher of an anchor, and a sample's own teacher wins."""
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
        ("opening", True, False, "ema"),
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


def test_a_teacher_is_guided_away_from_the_students_prompt_where_there_is_no_plain_one() -> None:
    """And from the plain one where there is, which counts among the tokens read."""
    one = Sample("correction", [1], [1, 2], [3])
    noted = replace(one, plain_ids=[1, 2, 9])
    assert (one.prompt("plain"), noted.prompt("plain")) == ([1], [1, 2, 9])
    assert (one.num_tokens, noted.num_tokens) == (3, 4)


def test_what_crosses_comes_back() -> None:
    """A sample is the same after the way into the worker, and fields at their default take no room on it."""
    one = Sample("correction", [1], [1, 2], [3, 4], behaviour_logprobs=[-0.5, -1.0], behaviour_ids=[9])
    assert Sample.from_dict(one.to_dict()) == one
    assert list(one.to_dict()) == [
        "kind", "student_ids", "teacher_ids", "response_ids", "behaviour_logprobs", "behaviour_ids",
    ]  # fmt: skip


def test_kept_batches_have_their_fields_in_one_order() -> None:
    """A weight follows the behaviour: batches of one format stay comparable byte for byte."""
    full = Sample("correction", [1], [2], [3], 0.5, [-0.1], [4], 0.7, "current", is_cut=True)
    assert list(full.to_dict())[4:] == [
        "behaviour_logprobs", "behaviour_ids", "weight", "temperature", "teacher", "is_cut",
    ]  # fmt: skip


def test_an_answer_that_was_cut_is_told_without_its_end() -> None:
    """Only what its teacher said is measured; an answer that ends by itself stays as it is."""
    cut = Sample("counterfactual", [1], [1, 2], [3, 4, 9], is_cut=True)
    assert cut.uncut == Sample("counterfactual", [1], [1, 2], [3, 4])
    assert cut.uncut.uncut == cut.uncut


def test_a_sample_is_as_long_as_its_longest_context() -> None:
    """The prompt it was sampled with counts as well."""
    assert Sample("correction", [1], [1, 2], [3, 4], behaviour_ids=[1, 2, 3]).num_tokens == 5


def test_the_gain_is_the_log_likelihood_ratio_of_the_whole_answer() -> None:
    """It is in nats per answer, the teacher's context over the student's."""
    assert Score([-2.0, -1.0], [-0.5, -0.5], 0.0, 0.0, 0.3, [], []).gain == 2.0


@pytest.mark.parametrize(("first", "end"), [(1, 1), (0, 4), (-1, 2), (2, 1)])
def test_a_span_outside_its_passage_is_refused(first: int, end: int) -> None:
    """Nor may it be empty: there would be nothing to take a mean of."""
    with pytest.raises(ValueError, match="span"):
        Passage([1, 2, 3], first, end)
