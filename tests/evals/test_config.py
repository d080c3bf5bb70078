"""The arguments of an evaluation are checked before it starts."""

from typing import Any

import pytest

from evals.config import PARTS, EvalConfig
from evals.errors import ArgumentError


def test_the_defaults_are_those_of_the_table() -> None:
    """Five seeds, every part, every preference, 500 skill probes."""
    config = EvalConfig()
    assert (config.seeds, config.skills, config.only, len(config.preferences)) == (5, 500, PARTS, 12)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"seeds": 0}, "seeds wants a number from 1"),
        ({"probes": 1000}, "probes wants a number from 1 to 60"),
        ({"skills": 1}, "skills wants a number from 5"),
        ({"only": ("adoptions",)}, "only wants some of teacher, .*not adoptions"),
        ({"only": ()}, "not nothing"),
        ({"preferences": ("colour",)}, "preferences wants some of length, "),
        ({"histories": (-1,)}, "histories wants"),
        ({"training": "[1]"}, "training wants a JSON object"),
        ({"training": "{"}, "training wants a JSON object"),
        ({"training": '{"stepz": 3}'}, "training: .*stepz"),
        ({"training": '{"steps": 0}'}, "training: .*steps"),
        ({"training": '{"steps": "many"}'}, "training: .*steps"),
        ({"url": "localhost:8080"}, "url wants an address such as http://127.0.0.1:8080, not 'localhost:8080'"),
        ({"updates": 0}, "updates wants a number from 1"),
        ({"attacks": 0}, "attacks wants a number from 1"),
    ],
)
def test_a_value_nothing_can_be_measured_with_is_refused(values: dict[str, Any], message: str) -> None:
    """Every bound is checked before a heed is started."""
    with pytest.raises(ArgumentError, match=message):
        EvalConfig(**values)


def test_learning_settings_are_an_object() -> None:
    """The learning settings sent with every correction are read once."""
    assert EvalConfig(training='{"steps": 6}').overrides == {"steps": 6}


def test_a_part_is_wanted_when_any_of_its_names_is() -> None:
    """Adoption and collateral come from the same people."""
    config = EvalConfig(only=("collateral",))
    assert config.wants("adoption", "collateral")
    assert not config.wants("retention", "skills")
