"""`python -m tests.crash --kills 1000`: the long run and its negative control; writes the figures as JSON.

Exit codes: 0 where nothing was lost or doubled and the control failed; 1 otherwise.
"""

import argparse
import asyncio
import json
import logging
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.crash.harness import Figures, run
from tests.crash.history import Verdict

CONTROL_KILLS = 10
RESULT = Path("tests/crash/results/kills.json")


def described(verdict: Verdict, figures: Figures) -> dict[str, Any]:
    """One run as JSON."""
    return {
        "kills": sum(figures.kills.values()),
        "kills_by_point": figures.kills,
        "lost": list(verdict.lost),
        "doubled": list(verdict.doubled),
        "placeholders_left": verdict.num_placeholders,
        "stop_s": round(figures.stop_s, 2),
        "wall_s": round(figures.wall_s, 1),
    }


async def both(num_kills: int, seed: int) -> dict[str, Any]:
    """The run and its control."""
    found: dict[str, Any] = {"command": f"python -m tests.crash --kills {num_kills} --seed {seed}"}
    for name, mode, kills in (("run", "durable", num_kills), ("control", "memory", CONTROL_KILLS)):
        with tempfile.TemporaryDirectory(prefix="heed-crash-") as folder:
            verdict, figures = await run(Path(folder), kills, seed, mode)
        found[name] = described(verdict, figures) | {"is_right": verdict.is_right}
    found["finished_at"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return found


def main() -> int:
    """The command line; the exit code."""
    parser = argparse.ArgumentParser(description="kill heed often, and look for what is lost or doubled")
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=RESULT)
    wanted = parser.parse_args()
    logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)  # connections of the killed end in mid-request
    found = asyncio.run(both(wanted.kills, wanted.seed))
    wanted.out.parent.mkdir(parents=True, exist_ok=True)
    wanted.out.write_text(json.dumps(found, indent=2) + "\n")
    json.dump(found, sys.stdout, indent=2)
    return 0 if found["run"]["is_right"] and not found["control"]["is_right"] else 1


if __name__ == "__main__":
    raise SystemExit(main())
