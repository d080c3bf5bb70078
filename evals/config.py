"""The settings of one evaluation: what it measures and how much; every default once, checked before anything starts."""

import json
from dataclasses import dataclass
from typing import Any

from engine.config import ConfigError, LearnConfig
from engine.pocket.style import PREFERENCES
from engine.pocket.talk import SKILLS
from evals.arguments import described
from evals.errors import ArgumentError

PARTS = ("teacher", "notes", "adoption", "collateral", "retention", "skills", "reversal")
LONG_PARTS = (
    "lasting",
    "recall",
    "endurance",
    "silence",
    "poison",
    "fresh",
)  # minutes to hours each: measured where they are asked for
CORRECTIONS_IN_SEQUENCE = 6
MAX_SKILL_PROBES = 600  # a family has about 130 different questions


@dataclass(frozen=True)
class EvalConfig:
    """The arguments of `heed eval`."""

    seeds: int = described(5, "how often everything is done, each time with other subjects, words and names")
    probes: int = described(20, "questions about subjects no correction was about")
    skills: int = described(500, "questions that have nothing to do with style, before and after six corrections")
    only: tuple[str, ...] = described(PARTS, f"which parts to measure; beside these: {', '.join(LONG_PARTS)}")
    preferences: tuple[str, ...] = described(tuple(PREFERENCES), "which of the twelve (retention takes six at a time)")
    histories: tuple[int, ...] = described((0, 4), "earlier messages of a person who corrects once")
    between: int = described(50, "ordinary chats between two corrections (lasting)")
    updates: int = described(200, "corrections by one person (endurance)")
    attacks: int = described(100, "corrections meant to do harm (poison)")
    training: str = described("{}", "learning settings sent with every correction, as JSON")
    parallel: int = described(16, "questions asked at once")
    settle_s: int = described(60, "the longest wait for the probes that follow a correction")
    url: str = described(
        "", "a running heed to measure, with HEED_VERSIONS_KEEP=1000 (empty: starts its own, with its own data)"
    )
    out: str = described("evals/results", "folder for summary.json, report.html, pictures and steps.jsonl")
    fresh: bool = described(False, "begin anew, even if an unfinished run has left results in the folder")
    check: bool = described(False, "exit with 1 where a figure misses its target")

    def __post_init__(self) -> None:
        """Raise ArgumentError on a value nothing can be measured with."""
        require_range("seeds", self.seeds, 1, 1000)
        require_range("probes", self.probes, 1, 60)
        require_range("skills", self.skills, len(SKILLS), MAX_SKILL_PROBES)
        require_range("between", self.between, 0, 1000)
        require_range("updates", self.updates, 1, 10_000)
        require_range("attacks", self.attacks, 1, 10_000)
        require_range("parallel", self.parallel, 1, 32)
        require_range("settle_s", self.settle_s, 1, 3600)
        require_known("only", self.only, PARTS + LONG_PARTS)
        require_known("preferences", self.preferences, tuple(PREFERENCES))
        if not self.histories or not all(0 <= count <= 20 for count in self.histories):
            raise ArgumentError("histories wants numbers from 0 to 20, such as 0,4")
        if self.url and not self.url.startswith(("http://", "https://")):
            raise ArgumentError(f"url wants an address such as http://127.0.0.1:8080, not {self.url!r}")
        _ = self.overrides

    @property
    def overrides(self) -> dict[str, Any]:
        """The learning settings sent with every correction. Raises ArgumentError where no trainer takes them."""
        return learning_settings(self.training)

    @property
    def seeded_preferences(self) -> list[tuple[int, str]]:
        """Every seed with every preference."""
        return [(seed, preference) for seed in range(self.seeds) for preference in self.preferences]

    def wants(self, *parts: str) -> bool:
        """Return True if any of the parts is to be measured."""
        return any(part in self.only for part in parts)


def learning_settings(text: str) -> dict[str, Any]:
    """Return the learning settings in a JSON object. Raises ArgumentError where no trainer takes them."""
    try:
        parsed = json.loads(text)
    except ValueError:
        parsed = None
    if not isinstance(parsed, dict):
        raise ArgumentError(f"training wants a JSON object, not {text!r}")
    try:
        LearnConfig().merged(parsed)
    except (ConfigError, TypeError) as error:
        raise ArgumentError(f"training: {error}") from None
    return parsed


def require_range(key: str, value: int, low: int, high: int) -> None:
    """Raise ArgumentError for a number outside."""
    if not low <= value <= high:
        raise ArgumentError(f"{key} wants a number from {low} to {high}, not {value}")


def require_known(key: str, values: tuple[str, ...], known: tuple[str, ...]) -> None:
    """Raise ArgumentError for an unknown word, and where there is none."""
    unknown = [value for value in values if value not in known]
    if unknown or not values:
        raise ArgumentError(f"{key} wants some of {', '.join(known)}, not {', '.join(unknown) or 'nothing'}")
