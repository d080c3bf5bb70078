"""`python -m evals`, the same as `heed eval`; the first word may name a study of its own (STUDIES)."""

import importlib
import sys
from collections.abc import Sequence

STUDIES = {  # the module of each, loaded when it is asked for
    "agent": "evals.agent.run", "compare": "evals.compare", "gates": "evals.gates", "reading": "evals.reading",
    "real": "evals.real.run",
}  # fmt: skip


def main(words: Sequence[str]) -> int:
    """Run the command line. Return the exit code."""
    if words and words[0] in STUDIES:
        code: int = importlib.import_module(STUDIES[words[0]]).main(words[1:])
        return code
    return int(importlib.import_module("evals.run").main(words))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
