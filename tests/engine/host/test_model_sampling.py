"""engine.host.model_sampling: what a generation_config.json asks for, and what is left out of it."""

import json
from pathlib import Path
from typing import Any

import pytest

from engine.host.model_sampling import GENERATION_FILE, own_sampling
from engine.pocket import WEIGHTS
from engine.requests import Sampling


def folder_with(path: Path, content: dict[str, Any] | str) -> Path:
    """A model folder whose generation_config.json has that content."""
    text = content if isinstance(content, str) else json.dumps(content)
    (path / GENERATION_FILE).write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ({"do_sample": True, "temperature": 0.6, "top_p": 0.95, "top_k": 20}, Sampling(0.6, 0.95, top_k=20)),
        ({"do_sample": True, "top_k": 64, "min_p": 0.05}, Sampling(1.0, top_k=64, min_p=0.05)),
        ({"do_sample": True, "temperature": None, "top_k": -1}, Sampling(1.0)),
        ({"do_sample": True, "temperature": 1, "repetition_penalty": 1.05}, Sampling(1.0, repetition_penalty=1.05)),
        ({"do_sample": False, "temperature": 0.6, "repetition_penalty": 1.1}, Sampling(repetition_penalty=1.1)),
        ({"temperature": 0.6, "top_k": 20}, Sampling()),
        ({}, Sampling()),
    ],
)
def test_a_model_is_sampled_as_its_makers_ask(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, content: dict[str, Any], expected: Sampling
) -> None:
    """Only a model that says `do_sample` is sampled; a penalty on repetition holds anyway."""
    assert own_sampling(folder_with(tmp_path, content)) == expected
    assert caplog.messages == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("temperature", -1),
        ("temperature", "0.7"),
        ("temperature", float("nan")),
        ("temperature", True),
        ("top_p", 0),
        ("top_k", 2.5),
        ("top_k", float("inf")),
        ("min_p", [0.1]),
        ("repetition_penalty", 0),
    ],
)
def test_a_wrong_value_is_left_out_and_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, key: str, value: object
) -> None:
    """The other values hold; one line of the log names the file and the key."""
    wanted = {"do_sample": True, "temperature": 0.5, "top_p": 0.9}
    found = own_sampling(folder_with(tmp_path, wanted | {key: value}))
    assert found == Sampling(1.0 if key == "temperature" else 0.5, 1.0 if key == "top_p" else 0.9)
    (line,) = caplog.messages
    assert str(tmp_path / GENERATION_FILE) in line
    assert f"{key} is left out" in line


@pytest.mark.parametrize("content", ["{", "[]", '{"do_sample": "yes", "temperature": 0.5}'])
def test_a_file_that_makes_no_sense_means_greedy(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, content: str
) -> None:
    """A start goes on; the log has one line about it."""
    assert own_sampling(folder_with(tmp_path, content)) == Sampling()
    assert len(caplog.messages) == 1


def test_no_file_and_the_pocket_model_mean_greedy(tmp_path: Path) -> None:
    """The figures of the project are those of greedy answers."""
    assert own_sampling(tmp_path) == own_sampling(WEIGHTS) == Sampling()
