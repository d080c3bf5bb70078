"""A cluster of many engines as a discrete-event model: people who talk, adapters that are loaded, an engine that dies.

The placement is the cluster's own (`engine.cluster.placement`); times and sizes are parameters. An answer takes longer
the more others its engine writes; a lesson has its engine's trainer to itself. `ReplayedModel` has the people and the
moments of a real cluster, to be held against it (`bench.cluster_check`). Not modelled: the database, gateways,
notes in the prompt, consolidations at night.
"""

import bisect
import itertools
import math
import random
from collections import OrderedDict
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import simpy

from engine.cluster.placement import ranked

Steps = Generator[simpy.Event, Any, None]


@dataclass(frozen=True)
class Assumptions:
    """Times in seconds, sizes in megabytes."""

    people: int = 1_000_000
    messages_a_day: float = 3.0  # of a person, in the mean
    spread: float = 1.5  # sigma of the lognormal that people's activity is drawn from
    peak: float = 2.0  # the busiest hour's rate over the mean one
    messages_together: float = 4.0  # in the mean, of one sitting
    pause_s: float = 40.0  # between two of them
    answer_s: float = 1.5  # of an engine that writes nothing else
    slowing: float = 2.0  # how much longer an answer takes in a full engine
    streams: int = 64  # answers at once
    taught_share: float = 0.5  # of people: they have an adapter
    lesson_share: float = 0.03  # of answers
    lesson_s: float = 1.5
    slots: int = 256  # adapters in the model at once
    load_s: float = 0.02  # from the disk
    fetch_s: float = 0.15  # from the object store
    adapter_mb: float = 4.0
    engine_hour: float = 2.5  # what an engine costs
    restart_s: float | None = None  # after which the engine that died is back, with its disk; None: it stays away


@dataclass
class SimulatedOutcome:
    """Counts of one run; latencies in seconds, of whole answers."""

    latencies: list[float] = field(default_factory=list)
    answers: dict[str, int] = field(default_factory=dict)  # by engine
    num_loads: int = 0  # from the disk
    num_fetches: int = 0  # from the object store
    num_lessons: int = 0
    num_moved: int = 0  # people seen both before and after the death who were another engine's
    num_seen: int = 0
    lesson_waits: list[float] = field(default_factory=list)


class ModelEngine:
    """One engine: its streams, its trainer, the adapters it holds."""

    def __init__(self, env: simpy.Environment, assumed: Assumptions) -> None:
        self.streams = simpy.Resource(env, assumed.streams)
        self.trainer = simpy.Resource(env, 1)
        self.in_slots: OrderedDict[int, None] = OrderedDict()
        self.on_disk: set[int] = set()


class ClusterModel:
    """A run of a cluster of `num_engines`."""

    def __init__(self, assumed: Assumptions, num_engines: int, seed: int) -> None:
        self._assumed = assumed
        self._random = random.Random(f"{seed}/{num_engines}")
        self._env = simpy.Environment()
        self._engines = {f"engine-{n}": ModelEngine(self._env, assumed) for n in range(1, num_engines + 1)}
        self._weights = dict.fromkeys(self._engines, 1.0)
        self._placed: dict[int, str] = {}
        self._placed_before: dict[int, str] = {}
        activity = random.Random(seed)
        spread = (activity.lognormvariate(0.0, assumed.spread) for _ in range(assumed.people))
        self._cumulated = list(itertools.accumulate(spread))
        self.outcome = SimulatedOutcome(answers=dict.fromkeys(self._engines, 0))

    def run(self, seconds: float, death_s: float | None = None) -> SimulatedOutcome:
        """Blocking: let the time pass and return what happened. `death_s`: when an engine dies, if there is another."""
        self._env.process(self._people_come())
        if death_s is not None and len(self._engines) > 1:
            self._env.process(self._one_dies(death_s))
        self._env.run(until=seconds)
        return self.outcome

    def _people_come(self) -> Steps:
        """Begin sittings at random moments, of people drawn by their activity."""
        assumed = self._assumed
        a_second = assumed.people * assumed.messages_a_day * assumed.peak / 86_400 / assumed.messages_together
        while True:
            yield self._env.timeout(self._random.expovariate(a_second))
            drawn = self._random.random() * self._cumulated[-1]
            self._env.process(self._sitting(bisect.bisect(self._cumulated, drawn)))

    def _sitting(self, person: int) -> Steps:
        """One message after the other, some of them followed by a lesson."""
        assumed = self._assumed
        while True:
            yield self._env.process(self._answer(person))
            if self._random.random() < assumed.lesson_share:
                self._env.process(self._lesson(person))
            if self._random.random() < 1 / assumed.messages_together:
                return
            yield self._env.timeout(self._random.expovariate(1 / assumed.pause_s))

    def _answer(self, person: int) -> Steps:
        name = self._place(person)
        engine, began_s, assumed = self._engines[name], self._env.now, self._assumed
        with engine.streams.request() as stream:
            yield stream
            if self._is_taught(person):
                yield self._env.timeout(self._loaded(engine, person))
            share = engine.streams.count / assumed.streams
            yield self._env.timeout(assumed.answer_s * (1 + (assumed.slowing - 1) * share))
        self.outcome.answers[name] = self.outcome.answers.get(name, 0) + 1
        self.outcome.latencies.append(self._env.now - began_s)

    def _loaded(self, engine: ModelEngine, person: int) -> float:
        """In place: bring a person's adapter into the engine. Return the seconds that takes."""
        if person in engine.in_slots:
            engine.in_slots.move_to_end(person)
            return 0.0
        engine.in_slots[person] = None
        if len(engine.in_slots) > self._assumed.slots:
            engine.in_slots.popitem(last=False)
        if person in engine.on_disk:
            self.outcome.num_loads += 1
            return self._assumed.load_s
        engine.on_disk.add(person)
        self.outcome.num_fetches += 1
        return self._assumed.fetch_s + self._assumed.load_s

    def _lesson(self, person: int) -> Steps:
        engine, began_s = self._engines[self._place(person)], self._env.now
        with engine.trainer.request() as turn:
            yield turn
            self.outcome.lesson_waits.append(self._env.now - began_s)
            yield self._env.timeout(self._assumed.lesson_s)
        engine.on_disk.add(person)
        self.outcome.num_lessons += 1

    def _place(self, person: int) -> str:
        """Return a person's engine, worked out once while the same engines live."""
        if person not in self._placed:
            self._placed[person] = ranked(self._name(person), self._weights)[0]
            if person in self._placed_before:
                self.outcome.num_seen += 1
                self.outcome.num_moved += self._placed[person] != self._placed_before[person]
        return self._placed[person]

    def _name(self, person: int) -> str:
        """Return the id that a person is placed by."""
        return str(person)

    def _is_taught(self, person: int) -> bool:
        """Return True for a person who has an adapter."""
        return (person * 2_654_435_761 % 2**32) / 2**32 < self._assumed.taught_share

    def _one_dies(self, after_s: float) -> Steps:
        yield self._env.timeout(after_s)
        name = next(iter(self._weights))
        self._weights.pop(name)
        self._placed_before, self._placed = self._placed, {}
        if self._assumed.restart_s is not None:
            yield self._env.timeout(self._assumed.restart_s)
            self._engines[name].in_slots.clear()
            self._weights[name] = 1.0
            self._placed_before, self._placed = {}, {}


@dataclass(frozen=True)
class Trace:
    """The messages of a real cluster, and its people by their ids."""

    people: Sequence[str]
    taught: frozenset[int]  # by their places among the people
    messages: Sequence[tuple[float, int]]  # when, in seconds, and whose, in the order of time


class ReplayedModel(ClusterModel):
    """The same people, at the same moments; no lesson is learned meanwhile."""

    def __init__(self, assumed: Assumptions, num_engines: int, trace: Trace) -> None:
        super().__init__(replace(assumed, people=len(trace.people)), num_engines, seed=0)
        self._trace = trace

    def _people_come(self) -> Steps:
        for moment_s, person in self._trace.messages:
            yield self._env.timeout(moment_s - self._env.now)
            self._env.process(self._answer(person))

    def _name(self, person: int) -> str:
        return self._trace.people[person]

    def _is_taught(self, person: int) -> bool:
        return person in self._trace.taught


def engines_for(assumed: Assumptions, busy: float = 0.7) -> int:
    """Return how many engines the peak hour takes if each is that busy with answers and with lessons."""
    answers_a_second = assumed.people * assumed.messages_a_day * assumed.peak / 86_400
    by_answers = answers_a_second * assumed.answer_s * assumed.slowing / (assumed.streams * busy)
    by_lessons = answers_a_second * assumed.lesson_share * assumed.lesson_s / busy
    return max(1, math.ceil(max(by_answers, by_lessons)))
