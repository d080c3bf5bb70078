"""The sampling that a model's makers ask for, read from its `generation_config.json`.

Holds temperature, top_p, top_k and min_p if the file says `do_sample`, else the model answers greedily; the penalty on
repetition holds either way. Invariant: a wrong value never stops a start; it is left out, and one line of the log
names file and key.
"""

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

from engine.requests import Sampling

GENERATION_FILE = "generation_config.json"
logger = logging.getLogger(__name__)

_LARGEST_TOP_K = 1_000_000
_IS_VALID: dict[str, Callable[[float], bool]] = {
    "temperature": lambda value: 0 <= value <= 2,
    "top_p": lambda value: 0 < value <= 1,
    "top_k": lambda value: -1 <= value <= _LARGEST_TOP_K and value == int(value),  # 0 and -1: all tokens
    "min_p": lambda value: 0 <= value <= 1,
}
_IS_VALID_ANYWAY: dict[str, Callable[[float], bool]] = {"repetition_penalty": lambda value: 0 < value <= 2}


def own_sampling(folder: Path) -> Sampling:
    """Return the sampling that the model in a folder asks for; greedy if it asks for none. Blocking."""
    path = folder / GENERATION_FILE
    wanted = _values(path)
    is_sampled = wanted.get("do_sample")
    if not isinstance(is_sampled, bool | None):
        _leave_out(path, "do_sample", is_sampled)
        is_sampled = False
    checks = _IS_VALID_ANYWAY | (_IS_VALID if is_sampled else {})
    values: dict[str, Any] = {"temperature": 1.0} if is_sampled else {}
    for name, is_valid in checks.items():
        value = wanted.get(name)
        if value is None:
            continue
        if isinstance(value, int | float) and not isinstance(value, bool) and is_valid(value):
            values[name] = max(0, int(value)) if name == "top_k" else float(value)
        else:
            _leave_out(path, name, value)
    return Sampling(**values)


def _values(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        logger.warning("%s is left out: it cannot be read (%s)", path, error)
        return {}
    if isinstance(content, dict):
        return content
    logger.warning("%s is left out: it is no JSON object", path)
    return {}


def _leave_out(path: Path, key: str, value: object) -> None:
    logger.warning("%s: %s is left out, %.40r is no value for it", path, key, value)
