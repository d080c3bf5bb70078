"""The arguments of `heed eval real`, and what it keeps of how it was made."""

import pytest

from evals.errors import ArgumentError
from evals.real import RealConfig, _is_setting, made_by


@pytest.mark.parametrize(
    "wrong", [{"only": ("x",)}, {"wishes": ()}, {"split": "train"}, {"seeds": 0}, {"training": "[1]"}]
)
def test_an_argument_that_makes_no_sense_is_named(wrong: dict[str, object]) -> None:
    """Before anything starts."""
    with pytest.raises(ArgumentError, match=next(iter(wrong))):
        RealConfig(**wrong)  # type: ignore[arg-type]


def test_a_result_names_commit_weights_and_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """No secret among them."""
    monkeypatch.setenv("HEED_LEARN_STEPS", "9")
    monkeypatch.setenv("HEED_TELEGRAM_TOKEN", "secret")
    made = made_by(RealConfig(), "pocket")
    assert len(made["weights_sha256"]) == 64
    assert made["settings"]["HEED_LEARN_STEPS"] == "9"
    assert "secret" not in str(made)
    assert not _is_setting("HEED_HTTP_API_KEYS")
