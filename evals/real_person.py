"""The parts of `heed eval real`: adoption, answers rewritten, reversal.

Owns the parts. Each wish of each seed has two persons: one is told a note (the ceiling), the other corrects one answer
to a train prompt, and is then asked with the notes off (weights alone) and on (both). Invariant: no person is asked a
probe before their last lesson, and the base model answers every probe first.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

from evals.client import Client, Notes
from evals.journal import Journal
from evals.real_world import REAL_WISHES, RealPrompt, RealWish, real_prompts
from evals.study import BASE_MODEL, Advance

POLL_S = 0.5
NUM_NEUTRAL = 4


class RealArguments(Protocol):
    """The arguments that the parts read."""

    @property
    def wishes(self) -> tuple[str, ...]: ...  # noqa: D102 - as in RealConfig
    @property
    def prompts(self) -> int: ...  # noqa: D102 - as in RealConfig
    @property
    def split(self) -> str: ...  # noqa: D102 - as in RealConfig
    @property
    def phrasings(self) -> str: ...  # noqa: D102 - as in RealConfig
    @property
    def settle_s(self) -> int: ...  # noqa: D102 - as in RealConfig
    @property
    def overrides(self) -> dict[str, Any]: ...  # noqa: D102 - as in RealConfig


class RealStudy:
    """The means of every part: heed, the journal, the bar."""

    def __init__(self, config: RealArguments, client: Client, journal: Journal, advance: Advance) -> None:
        self.config = config
        self.client = client
        self.journal = journal
        self._advance = advance

    def name(self, *labels: object) -> str:
        """Return the name of a person no one has met before."""
        return f"real-{self.journal.run_id}-{'-'.join(map(str, labels))}"

    async def once(self, unit: str, work: Callable[[], Awaitable[None]]) -> None:
        """Do one person's part, unless it was done before this run was interrupted."""
        if unit not in self.journal.done:
            if self.journal.is_resumed:
                for role in ("n", "t"):
                    await self.client.forget(self.name(*unit.split("/"), role))
            await work()
            self.journal.finish(unit, 1)
        self._advance(unit.partition("/")[0])

    async def answers(self, person: str, asked: Sequence[RealPrompt], notes: Notes, model: str = "heed") -> list[str]:
        """Return greedy answers, asked side by side."""
        calls = [self.client.chat(person, p.messages, notes=notes, model=model) for p in asked]
        return [answer.text for answer in await asyncio.gather(*calls)]

    async def correct(self, person: str, wish: RealWish, prompt: RealPrompt, words: str) -> None:
        """Correct one answer and wait until it is learned or refused; keep what became of it."""
        answer = await self.client.chat(person, prompt.messages)
        started_s = time.perf_counter()
        outcome = await self.client.correct(person, answer.completion_id, words, self.config.overrides)
        await self.kept(person, wish, answer.adapter_version, outcome, started_s)

    async def kept(self, person: str, wish: RealWish, version: int, outcome: dict[str, Any], started_s: float) -> None:
        """Wait for the end of a lesson; record its time and if another version answers now."""
        await self._settled(person)
        seconds = time.perf_counter() - started_s
        now = await self.client.chat(person, [{"role": "user", "content": "Hello"}], notes="off")
        update = {key: value for key, value in (outcome.get("update") or {}).items() if key != "heat"}
        self.journal.record({
            "event": "lesson", "person": person, "wish": wish.name, "status": outcome["status"],
            "reason": outcome.get("reason", ""), "seconds": round(seconds, 2),
            "is_accepted": now.adapter_version != version, "update": update,
        })  # fmt: skip

    async def _settled(self, person: str) -> None:
        ends_s = time.perf_counter() + self.config.settle_s
        while time.perf_counter() < ends_s:
            if all(note["state"] != "learning" for note in await self.client.notes(person)):
                return
            await asyncio.sleep(POLL_S)

    def judge(self, part: str, seed: int, wish: RealWish, arm: str, texts: Sequence[str], base: Sequence[str]) -> None:
        """Record an answer per prompt, and if it follows the wish."""
        for text, before in zip(texts, base, strict=True):
            follows = wish.is_followed(text, before)
            self.journal.record({
                "event": "answer", "part": part, "seed": seed, "wish": wish.name, "arm": arm, "text": text,
                "follows": follows,
            })  # fmt: skip

    async def judge_all(self, part: str, seed: int, wish: RealWish, noted: str, trained: str) -> None:
        """Ask the base model, the person with the note and the taught one; record every answer."""
        asked = real_prompts(seed, self.config.split, self.config.prompts, "probes", wish.name)
        base = await self.answers(self.name("base"), asked, "off", BASE_MODEL)
        self.judge(part, seed, wish, "base", base, base)
        for arm, person, notes in (("note", noted, "auto"), ("weights", trained, "off"), ("both", trained, "auto")):
            self.judge(part, seed, wish, arm, await self.answers(person, asked, notes), base)  # type: ignore[arg-type]


async def adoption(study: RealStudy, seed: int) -> None:
    """One correction per wish, each by a new person; and what it moved on neutral answers."""
    for wish in _chosen(study):
        await study.once(f"adoption/{wish.name}/{seed}", lambda wish=wish: _adopt(study, seed, wish))  # type: ignore[misc]


async def _adopt(study: RealStudy, seed: int, wish: RealWish) -> None:
    noted, trained = (study.name("adoption", wish.name, seed, role) for role in ("n", "t"))
    await study.client.note(noted, wish.note)
    prompt = real_prompts(seed, "train", 1, "corrected", wish.name)[0]
    await study.correct(trained, wish, prompt, wish.phrasing(seed, study.config.phrasings))
    await study.judge_all("adoption", seed, wish, noted, trained)
    await _drift(study, seed, wish, trained)


async def _drift(study: RealStudy, seed: int, wish: RealWish, person: str) -> None:
    """Record nats per token that the base model's own greedy answers lose: a one-sample KL(base || weights)."""
    for prompt in real_prompts(seed, "development", NUM_NEUTRAL, "neutral"):
        text = (await study.answers(study.name("base"), [prompt], "off", BASE_MODEL))[0]
        before = await study.client.score(study.name("base"), prompt.messages, text, model=BASE_MODEL)
        after = await study.client.score(person, prompt.messages, text)
        lost = (sum(before) - sum(after)) / max(len(before), 1)
        study.journal.record({"event": "drift", "seed": seed, "wish": wish.name, "nats": round(lost, 5)})


async def rewritten(study: RealStudy, seed: int) -> None:
    """Give the answer as it should have been: the model's own, made with the note in its prompt."""
    for wish in _chosen(study):
        await study.once(f"rewritten/{wish.name}/{seed}", lambda wish=wish: _rewrite(study, seed, wish))  # type: ignore[misc]


async def _rewrite(study: RealStudy, seed: int, wish: RealWish) -> None:
    noted, trained = (study.name("rewritten", wish.name, seed, role) for role in ("n", "t"))
    await study.client.note(noted, wish.note)
    prompt = real_prompts(seed, "train", 1, "corrected", wish.name)[0]
    ideal = (await study.answers(noted, [prompt], "auto"))[0]
    answer = await study.client.chat(trained, prompt.messages)
    started_s = time.perf_counter()
    outcome = await study.client.rewrite(trained, answer.completion_id, ideal, study.config.overrides)
    await study.kept(trained, wish, answer.adapter_version, outcome, started_s)
    await study.judge_all("rewritten", seed, wish, noted, trained)


async def reversal(study: RealStudy, seed: int) -> None:
    """Two corrections, the second of which takes the first back: judged by the second."""
    for wish in (w for w in _chosen(study) if w.opposite):
        await study.once(f"reversal/{wish.name}/{seed}", lambda wish=wish: _reverse(study, seed, wish))  # type: ignore[misc]


async def _reverse(study: RealStudy, seed: int, wish: RealWish) -> None:
    noted, trained = (study.name("reversal", wish.name, seed, role) for role in ("n", "t"))
    back = REAL_WISHES[wish.opposite]
    await study.client.note(noted, back.note)
    first, second = real_prompts(seed, "train", 2, "reversal", wish.name)
    await study.correct(trained, wish, first, wish.phrasing(seed, study.config.phrasings))
    await study.correct(trained, back, second, back.phrasing(seed, study.config.phrasings))
    await study.judge_all("reversal", seed, back, noted, trained)


def _chosen(study: RealStudy) -> list[RealWish]:
    return [REAL_WISHES[name] for name in study.config.wishes]


PART_WORK: dict[str, Callable[[RealStudy, int], Awaitable[None]]] = {
    "adoption": adoption,
    "rewritten": rewritten,
    "reversal": reversal,
}
