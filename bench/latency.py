"""From sending a correction to the new adapter answering, by phase; the machine does nothing else meanwhile."""

from typing import Any

from bench.config import BenchConfig
from bench.figures import Row, row
from bench.people import person, wish_in_turn
from evals import cases
from evals.client import Client
from evals.study import Advance

TARGET_S = 1.5
LESSONS_PER_PERSON = 4
Samples = list[dict[str, Any]]


def units(config: BenchConfig) -> int:
    """Return steps of the progress bar."""
    return config.updates


async def measure(config: BenchConfig, client: Client, run_id: str, advance: Advance) -> Samples:
    """One sample per correction: four by each person, so that notes and versions pile up as they do in use."""
    samples: Samples = []
    for number in range(config.updates):
        learner = person(client, f"bench-{run_id}-latency-{number // LESSONS_PER_PERSON}")
        wish = wish_in_turn(config.seed, "latency", number)
        about, after = cases.corrected(config.seed, 2, "latency", number)
        lesson = await learner.correct(about, wish.text)
        served = (await learner.say(after)).adapter_version
        samples.append({**lesson.to_record(), "preference": wish.direction[0], "is_served": served == lesson.version})
        advance("latency")
    return samples


def rows(samples: Samples) -> list[Row]:
    """Return the rows of the table: the whole as the client saw it, then the phases heed told of."""
    learned = [s for s in samples if s["status"] == "learned" and s["is_served"]]
    if not learned:
        return []
    found = [row("correction sent to new adapter serving", "s", [s["seconds"] for s in learned], TARGET_S)]
    found += [
        row(f"  phase {phase}", "ms", [s["update"]["phases_ms"].get(phase, 0.0) for s in learned])
        for phase in learned[0]["update"]["phases_ms"]
    ]
    return [*found, row("  afterwards: probes and rollouts for the next", "s", [s["settle_s"] for s in samples])]
