"""`python -m tests.crash --kills 1000`: the long runs and their negative controls; writes the figures as JSON.

`--only chats` runs people on chat platforms, `--only learning` is updates and consolidations, `--only agent` is the
agents' calls of tools, `--only cluster` is several processes that teach on one PostgreSQL, `--only machines` is engines
and gateways while people chat. The file is written repeatedly while the runs go on, so that findings from before an
interruption are kept.
Exit codes: 0 where nothing was torn, lost or doubled, every stop was in time and the controls failed; 1 otherwise.
"""

import argparse
import asyncio
import contextlib
import itertools
import json
import logging
import math
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest

from evals import provenance
from storage.database import Database
from tests.crash import books, learning, machines
from tests.crash.agent import books as agent_books
from tests.crash.agent import kills as agent_kills
from tests.crash.harness import STOP_WITHIN_S, Figures, run
from tests.crash.history import Verdict
from tests.crash.machines import MachinesRun
from tests.crash.wired_cluster import wired_cluster
from tests.storage import cluster_worker, disturbed_cluster, postgres_server
from tests.storage.disturbed_cluster import DisturbedCluster, Findings, Teaching
from tests.storage.s3_server import s3_server

CONTROL_KILLS = 10
CONTROL_FAULTS = 60
SHOWN = 10  # findings of a kind
LEARNING_CONTROL = (("heed", "correction"), ("heed", "correction"))
RESULT = Path("tests/crash/results/kills.json")

Found = dict[str, Any]
Keep = Callable[[Found], None]


@dataclass(frozen=True)
class Part:
    """One run of a file of figures."""

    name: str
    platform: str
    num_kills: int = 0
    num_stops: int = 0
    mode: str = "durable"
    is_to_fail: bool = False


@dataclass(frozen=True)
class MachinesPart:
    """One run of faults of machines."""

    name: str
    num_faults: int
    kinds: Sequence[str] = machines.KINDS
    engine_program: str = "bot"


MACHINES_CONTROL = MachinesPart("machines_unfenced", 40, machines.SLEEPY_KINDS, "tests.crash.unfenced")


def described(verdict: Verdict, figures: Figures) -> Found:
    """One run as JSON."""
    found: Found = {}
    if any(figures.kills.values()):
        found |= {"kills": sum(figures.kills.values()), "kills_by_point": figures.kills}
    if figures.stops_s:
        seconds = {"median": figures.median_stop_s, "longest": figures.longest_stop_s}
        found |= {"stops": len(figures.stops_s)} | {f"{name}_stop_s": round(s, 2) for name, s in seconds.items()}
    return found | {
        "acts": verdict.num_acts,
        "lost": list(verdict.lost),
        "doubled": list(verdict.doubled),
        "placeholders_left": verdict.num_placeholders,
        "wall_s": round(figures.wall_s, 1),
        "is_right": verdict.is_right and figures.longest_stop_s <= STOP_WITHIN_S,
    }


async def all_of(parts: list[Part], seed: int, keep: Keep) -> bool:
    """Every part, one after the other; whether each ended as it has to. `keep` gets what is known of a part so far."""
    is_well = True
    for part in parts:

        def report(verdict: Verdict, figures: Figures, name: str = part.name) -> None:
            keep({name: described(verdict, figures)})

        with tempfile.TemporaryDirectory(prefix="heed-crash-") as folder:
            counts = {"num_kills": part.num_kills, "num_stops": part.num_stops}
            verdict, figures = await run(
                Path(folder), part.platform, **counts, seed=seed, mode=part.mode, report=report
            )
        report(verdict, figures)
        is_well &= described(verdict, figures)["is_right"] != part.is_to_fail
    return is_well


async def taught(num_kills: int, seed: int, keep: Keep, within_s: float = math.inf) -> bool:
    """Kills during learning, then the negative control; whether each ended as it has to."""
    points = tuple(itertools.islice(itertools.cycle(learning.POINTS), num_kills))
    is_right = await _taught("learning", points, seed, keep, within_s=within_s)
    return not await _taught("learning_control", LEARNING_CONTROL, seed, keep, learning.CARELESS) and is_right


async def _taught(
    name: str,
    points: learning.Points,
    seed: int,
    keep: Keep,
    program: tuple[str, ...] = learning.HEED,
    within_s: float = math.inf,
) -> bool:
    def measured(figures: learning.Figures) -> Found:
        counts = {"kills": figures.num_kills, "kills_by_point": figures.kills, "under_way": figures.under_way}
        left = {"processes_left": figures.left, "torn_after_a_kill": figures.torn}
        found = books.as_json(figures.so_far) if figures.so_far else {}
        return counts | left | found | {"wall_s": round(figures.wall_s, 1)}

    async with learning.heed_of_its_own() as heed:
        found, figures = await learning.run(
            heed,
            points,
            seed=seed,
            program=program,
            report=lambda figures: keep({name: measured(figures)}),
            within_s=within_s,
        )
    is_right = found.is_right and not figures.left and not figures.torn
    keep({name: measured(figures) | books.as_json(found) | {"is_right": is_right}})
    return is_right


async def worked(num_kills: int, seed: int, keep: Keep) -> bool:
    """Kills while agents work, then the negative control. Return True if each ended as it has to."""
    is_right = await _worked("agent", num_kills, seed, keep)
    return not await _worked("agent_control", CONTROL_KILLS, seed, keep, mode="careless") and is_right


async def _worked(name: str, num_kills: int, seed: int, keep: Keep, mode: str = "durable") -> bool:
    def measured(figures: agent_kills.AgentFigures) -> Found:
        counts = {"kills": sum(figures.kills.values()), "kills_by_point": figures.kills}
        seen = {"under_way": figures.under_way, "processes_left": figures.left}
        return counts | seen | {"wall_s": round(figures.wall_s, 1)}

    found, figures = await agent_kills.run(
        num_kills, seed=seed, mode=mode, report=lambda figures: keep({name: measured(figures)})
    )
    is_right = found.is_right and not figures.left
    keep({name: measured(figures) | agent_books.as_json(found) | {"is_right": is_right}})
    return is_right


def shared(num_faults: int, seed: int, keep: Keep) -> bool:
    """Disturb a cluster, then the negative controls. Return True if each ended as it has to."""
    with postgres_server.running() as server:

        def disturbed(part: str, num_faults: int, teaching: Teaching) -> Findings:
            with server.database() as name:
                cluster = DisturbedCluster(disturbed_cluster.starting(), server, name, teaching)
                rng = random.Random(seed)
                for _ in range(num_faults):
                    cluster.disturb(rng)
                cluster.stop()
                found = cluster.found()
            told = {name: value[:SHOWN] if isinstance(value, list) else value for name, value in asdict(found).items()}
            keep({part: {"faults": dict(cluster.num_faults)} | told | {"is_right": found.is_right}})
            return found

        is_right = disturbed("cluster", num_faults, cluster_worker.teach).is_right
        forked = disturbed("cluster_unfenced", CONTROL_FAULTS, cluster_worker.teach_unfenced).forks
        stale = disturbed("cluster_from_memory", CONTROL_FAULTS, cluster_worker.teach_from_memory).stale
    return is_right and bool(forked) and bool(stale)


async def on_machines(num_faults: int, seed: int, keep: Keep, within_s: float = math.inf) -> bool:
    """Disturb engines and gateways while people chat and correct, then the control; whether each ended as it has to."""
    is_right = await _on_machines(MachinesPart("machines", num_faults), seed, keep, within_s)
    return not await _on_machines(MACHINES_CONTROL, seed, keep, within_s) and is_right


async def _on_machines(part: MachinesPart, seed: int, keep: Keep, within_s: float) -> bool:
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(postgres_server.running())
        name = stack.enter_context(server.database())
        store = stack.enter_context(s3_server(stack.enter_context(pytest.MonkeyPatch.context())))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        async with wired_cluster(folder, server, name, store, part.engine_program) as cluster:
            database = await asyncio.to_thread(Database.join, folder, server.url(name))
            run = MachinesRun(cluster, database, server, name, random.Random(seed), part.kinds)
            found = await run.run(part.num_faults, lambda faults: keep({part.name: {"faults": dict(faults)}}), within_s)
            await database.close()
    keep({part.name: {"faults": dict(run.num_faults)} | asdict(found) | {"is_right": found.is_right}})
    return found.is_right


def parts_of(wanted: argparse.Namespace) -> list[Part]:
    """Return the parts to run; a count of 0 leaves a part out."""
    parts = [
        Part("control", "telegram", CONTROL_KILLS, mode="memory", is_to_fail=True),
        Part("discord_control", "discord", CONTROL_KILLS, mode="memory", is_to_fail=True),
        Part("stops", "telegram", num_stops=wanted.stops),
        Part("discord_stops", "discord", num_stops=wanted.stops),
        Part("discord", "discord", wanted.discord_kills),
        Part("discord_forgets", "discord forgets", wanted.discord_kills),
        Part("telegram", "telegram", wanted.kills),
    ]
    return [part for part in parts if part.num_kills or part.num_stops]


def asked() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="kill heed often, and look for what is lost or doubled")
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--discord-kills", type=int, default=100)
    parser.add_argument("--stops", type=int, default=40)
    parser.add_argument("--learning-kills", type=int, default=50)
    parser.add_argument(
        "--within-min",
        type=float,
        default=math.inf,
        help="of kills while it learns and of faults of machines",
    )
    parser.add_argument("--agent-kills", type=int, default=200)
    parser.add_argument("--cluster-faults", type=int, default=300)
    parser.add_argument("--machine-faults", type=int, default=300)
    parser.add_argument("--only", choices=("chats", "learning", "agent", "cluster", "machines"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=RESULT)
    return parser.parse_args()


def made(wanted: argparse.Namespace) -> Found:
    """Return how the runs are made: what was asked for, the commit, the pocket model's weights, the machine."""
    config = {name: value if isinstance(value, int) else str(value) for name, value in vars(wanted).items()}
    weights = {"weights_sha256": provenance.weights_sha256(provenance.folder_of(provenance.POCKET))}
    return {"seed": wanted.seed, "config": config, **provenance.commit(), **weights, "machine": provenance.machine()}


def main() -> int:
    """Run it; the exit code."""
    wanted = asked()
    logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)  # connections of the killed end in mid-request
    found: Found = {"command": f"python -m tests.crash {' '.join(sys.argv[1:])}".strip(), **made(wanted)}
    wanted.out.parent.mkdir(parents=True, exist_ok=True)

    def keep(news: Found) -> None:
        found.update(news, written_at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()))
        wanted.out.write_text(json.dumps(found, indent=2) + "\n")

    is_well = True
    if wanted.only in (None, "chats"):
        is_well = asyncio.run(all_of(parts_of(wanted), wanted.seed, keep))
    if wanted.only in (None, "agent"):
        is_well &= asyncio.run(worked(wanted.agent_kills, wanted.seed, keep))
    if wanted.only in (None, "cluster"):
        is_well &= shared(wanted.cluster_faults, wanted.seed, keep)
    if wanted.only in (None, "machines"):
        is_well &= asyncio.run(on_machines(wanted.machine_faults, wanted.seed, keep, 60 * wanted.within_min))
    if wanted.only in (None, "learning"):
        is_well &= asyncio.run(taught(wanted.learning_kills, wanted.seed, keep, 60 * wanted.within_min))
    json.dump(found, sys.stdout, indent=2)
    return 0 if is_well else 1


if __name__ == "__main__":
    raise SystemExit(main())
