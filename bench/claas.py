"""One lesson by heed, and CLaaS's step repeated on the same correction until it has taught as much.

What was taught is measured where neither has trained: on the teacher's answers to other prompts of the model's bank,
as KL(teacher || student) in nats per token (`engine.training.scoring`); each lesson starts from the base model. Beside
it stands how far either has moved the base model's answers to neutral prompts, which no lesson is about. CLaaS's step
(`evals.rules`) sees the corrected answer alone, with heed's words around the feedback, and is computed by heed's own
forward and backward, at each of a few rates, lower ones than a single step wants; the best one counts. Its seconds are
those up to the last look at which it had not got there, and only what it trains is timed; heed's are the whole update
in the worker, its own measurements included. Neither has the time that a model writes in.
"""

import asyncio
import math
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from bench.config import BenchConfig
from bench.figures import Row, row
from bench.people import wish_in_turn
from engine.config.learning import MAX_STEPS
from engine.pocket import PACKAGED, trial
from engine.pocket.trial import Bench, Correction, TrialPerson
from engine.prompts.hindsight import Hindsight, teacher_messages
from engine.sample import Sample
from engine.samples import lessons
from engine.training.training_update import TrainingUpdate
from evals import provenance
from evals.real import gates
from evals.real.world import REAL_WISHES, RealWish
from evals.rules import RULES
from evals.study import Advance

NUM_PROBES = 8
LONGEST = 2.0  # times heed's seconds that the repeated step is given
LOOK_EVERY = 1.3  # times as many steps as at the last look
TARGET = 0.5
RATES, REAL_RATES = (1e-3, 3e-3, 1e-2, 3e-2), (1e-4, 3e-4, 1e-3, 3e-3)  # of the repeated step
REAL = ("shorter", "one_sentence", "concise")  # wishes that a real model is taught in turn
_PHASES = ("teacher", "steps")  # that are timed of the repeated step
Samples = dict[str, Any]


@dataclass(frozen=True)
class ComparedLesson:
    """A correction: the samples that heed makes of it, and answers to prompts that it does not train on."""

    samples: list[Sample]
    probes: list[Sample]  # the teacher's
    neutral: list[Sample]  # the base model's

    @property
    def corrected(self) -> list[Sample]:
        """The corrected answer alone, which is all that CLaaS's step sees."""
        return [sample for sample in self.samples if sample.kind == "correction"]


def units(config: BenchConfig) -> int:
    """Return steps of the progress bar."""
    return config.rounds


async def measure(config: BenchConfig, advance: Advance) -> Samples:
    """Return a record of each correction: what was to be taught, what heed did, what the repeated step at each rate."""
    bench = await asyncio.to_thread(_bench, config.measured_model)
    records = []
    for number in range(config.rounds):
        records.append(await asyncio.to_thread(_record, bench, config, number))
        advance("claas")
    return {"corrections": records}


def _record(bench: Bench, config: BenchConfig, number: int) -> Samples:
    case = _case(bench, config, number)
    heed = _heeds(bench, case)
    rates = RATES if config.measured_model in PACKAGED else REAL_RATES
    repeated = [_repeated(bench, case, rate, heed) for rate in rates]
    return {"before": bench.apart(case.probes, None), "heed": heed, "claas": repeated}


def _bench(model: str) -> Bench:
    if model in PACKAGED:
        return Bench(PACKAGED[model])
    return gates.bench_of(model)


def _case(bench: Bench, config: BenchConfig, number: int) -> ComparedLesson:
    seed, is_pocket = config.seed + number, config.measured_model == provenance.POCKET
    wish = wish_in_turn(seed, "claas", number).text if is_pocket else _real_wish(number).phrasing(seed, "tuned")
    rng = random.Random(f"{seed}/claas")
    (first, *others) = bench.bank.sample_topics(NUM_PROBES + 1, rng)
    samples = trial.lesson(bench, TrialPerson(), Correction(str(first[-1]["content"]), wish, seed))
    seen = [teacher_messages(asked, [wish], Hindsight()) for asked in others]
    answers = [answer.response_token_ids for answer in bench.answers(None, seen)]
    probes = lessons.teacher_samples(others, seen, answers, bench.prompts)
    neutral = lessons.anchor_samples(bench.base_answers(bench.bank.sample_anchors(2 * NUM_PROBES, rng)))
    return ComparedLesson(samples, _untrained(probes, samples), _untrained(neutral, samples))


def _real_wish(number: int) -> RealWish:
    return REAL_WISHES[REAL[number % len(REAL)]]


def _untrained(probes: Sequence[Sample], samples: Sequence[Sample]) -> list[Sample]:
    trained = {tuple(sample.student_ids) for sample in samples}
    return [probe for probe in probes if tuple(probe.student_ids) not in trained]


def _heeds(bench: Bench, case: ComparedLesson) -> Samples:
    started_s = time.perf_counter()
    run = trial.train(bench, None, case.samples)
    seconds = time.perf_counter() - started_s
    return {"seconds": seconds, "steps": run.measured.steps} | _reached(bench, case, run)


def _reached(bench: Bench, case: ComparedLesson, run: TrainingUpdate) -> Samples:
    adapter = run.slot.export()
    return {"left": bench.apart(case.probes, adapter), "moved": bench.apart(case.neutral, adapter)}


def _repeated(bench: Bench, case: ComparedLesson, rate: float, heed: Samples) -> Samples:
    """Repeat CLaaS's step at a rate, until as little is left as by heed or it has taken too long.

    `seconds`: spent at the last look at which more was left.
    """
    learn = bench.learn.merged({**RULES["claas"].learn, "learning_rate": rate, "steps": MAX_STEPS})
    run = TrainingUpdate(bench.model, learn, case.corrected, None)
    found: Samples = {"rate": rate, "seconds": 0.0, "steps": 0, "is_there": False, "left": math.inf, "moved": math.inf}
    for steps in _looks():
        while run.measured.steps < steps and not run.is_done:
            run.advance(0.0)
        if run.is_done:  # it has broken, or used up its steps
            break
        found |= _reached(bench, case, run)
        if found["left"] <= heed["left"]:
            return found | {"is_there": True}
        spent_s = sum(run.measured.phases_ms[phase] for phase in _PHASES) / 1e3
        found |= {"seconds": spent_s, "steps": run.measured.steps}
        if spent_s >= LONGEST * heed["seconds"]:
            break
    return found


def _looks() -> Iterator[int]:
    """Yield the numbers of steps after which it is looked how far they have come."""
    steps = 1
    while True:
        yield steps
        steps = max(steps + 1, round(LOOK_EVERY * steps))


def rows(samples: Samples) -> list[Row]:
    """Return the rows of the table. Where no rate gets there, a correction's ratio is an upper limit."""
    records = samples["corrections"]
    heed, best = [record["heed"] for record in records], [_best(record["claas"]) for record in records]
    before = [record["before"] for record in records]
    ratios = [ours["seconds"] / theirs["seconds"] for ours, theirs in zip(heed, best, strict=True)]
    there = sum(found["is_there"] for found in best)
    return [
        row("a lesson's update", "s", [found["seconds"] for found in heed]),
        row("  divergence left on other prompts", "share", _shares(heed, before)),
        row("  neutral answers moved", "nats", [found["moved"] for found in heed]),
        row(f"CLaaS's step repeated, as far in {there} of {len(best)}", "s", [found["seconds"] for found in best]),
        row("  divergence left on other prompts", "share", _shares(best, before)),
        row("  neutral answers moved", "nats", [found["moved"] for found in best]),
        row("seconds to the same divergence, heed / CLaaS", "ratio", ratios, TARGET),
    ]


def _best(repeated: Sequence[Samples]) -> Samples:
    """Return the rate that got there first, or came nearest."""
    there = [found for found in repeated if found["is_there"]]
    if there:
        return min(there, key=lambda found: float(found["seconds"]))
    return min(repeated, key=lambda found: float(found["left"]))


def _shares(found: Sequence[Samples], before: Sequence[float]) -> list[float]:
    return [at["left"] / whole for at, whole in zip(found, before, strict=True)]
