"""The means of every part of `heed eval real`: heed, the journal, the bar; answers, lessons and the wait for their end.

Owns the names of the persons and what is asked of the base model once for all parts. Invariant: a unit that broke off
is done again by persons whom heed has not met.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

from evals.client import Answer, Client, Notes
from evals.journal import Journal
from evals.lesson_end import ended, settled
from evals.real.world import REAL_WISHES, RealPrompt, RealWish, real_prompts
from evals.study import BASE_MODEL, Advance

Arms = tuple[tuple[str, str, Notes], ...]  # what is compared: its name, who is asked, if their notes are in the prompt


def arms_of(noted: str, trained: str) -> Arms:
    """Return the person with the note, and the taught one without and with it."""
    return ("note", noted, "auto"), ("weights", trained, "off"), ("both", trained, "auto")


class RealArguments(Protocol):
    """The arguments that the parts read."""

    @property
    def wishes(self) -> tuple[str, ...]: ...  # noqa: D102 - as in RealConfig
    @property
    def numbers(self) -> range: ...  # noqa: D102 - as in RealConfig
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
    """One run of `heed eval real`."""

    def __init__(self, config: RealArguments, client: Client, journal: Journal, advance: Advance) -> None:
        self.config = config
        self.client = client
        self.journal = journal
        self._advance = advance
        self.neutral: dict[tuple[int, str], tuple[str, list[float]]] = {}  # (seed, prompt) -> answer, its scores
        self._base: dict[tuple[str, ...], str] = {}

    def name(self, *labels: object) -> str:
        """Return the name of a person no one has met before."""
        return f"real-{self.journal.run_id}-{'-'.join(map(str, labels))}"

    @property
    def base(self) -> str:
        """The name of the person who asks the base model."""
        return self.name("base")

    @property
    def chosen(self) -> list[RealWish]:
        """The wishes to measure."""
        return [REAL_WISHES[name] for name in self.config.wishes]

    def words(self, wish: RealWish, seed: int) -> str:
        """Return the words in which the persons of a seed wish this, as a correction and as a note."""
        return wish.phrasing(seed, self.config.phrasings)

    async def once(self, unit: str, work: Callable[[], Awaitable[None]], *persons: str) -> None:
        """Do a unit as `do_once` does, and advance the bar over it."""
        await self.do_once(unit, work, *persons)
        self.pass_over(unit)

    async def do_once(self, unit: str, work: Callable[[], Awaitable[None]], *persons: str) -> None:
        """Do a unit, unless it was done before this run was interrupted; `persons` are those that begin in it."""
        if unit not in self.journal.done:
            if self.journal.is_resumed:
                for person in persons:
                    await self.client.forget(person)
            await work()
            self.journal.finish(unit, 1)

    def pass_over(self, unit: str) -> None:
        """Advance the bar over a unit."""
        self._advance(unit.partition("/")[0])

    async def answers(self, person: str, asked: Sequence[RealPrompt], notes: Notes) -> list[str]:
        """Return greedy answers, asked side by side."""
        calls = [self.client.chat(person, p.messages, notes=notes) for p in asked]
        return [answer.text for answer in await asyncio.gather(*calls)]

    async def base_answers(self, asked: Sequence[RealPrompt]) -> list[str]:
        """Return the base model's greedy answers; each is asked for once."""
        missing = [p for p in asked if p.turns not in self._base]
        calls = [self.client.chat(self.base, p.messages, notes="off", model=BASE_MODEL) for p in missing]
        found = await asyncio.gather(*calls)
        self._base |= {p.turns: answer.text for p, answer in zip(missing, found, strict=True)}
        return [self._base[p.turns] for p in asked]

    async def correct(self, person: str, wish: RealWish, prompt: RealPrompt, seed: int) -> None:
        """Correct one answer and wait until it is learned or refused; record what became of it."""
        answer = await self.client.chat(person, prompt.messages)
        started_s = time.perf_counter()
        outcome = await self.client.correct(person, answer.completion_id, self.words(wish, seed), self.config.overrides)
        await self.ended(person, wish, answer, outcome, started_s)

    async def ended(
        self, person: str, wish: RealWish, answer: Answer, outcome: dict[str, Any], started_s: float
    ) -> None:
        """Wait for the end of a lesson, then for the probes behind it; record its time and its result.

        If heed asks how far the correction reaches, the person says "from now on" (`was_asked`).
        """
        outcome = await self.outcome(person, outcome)
        was_asked = bool(outcome.get("is_unsure"))
        if was_asked:
            chosen = await self.client.choose_always(person, outcome["feedback_id"])
            outcome = await self.outcome(person, chosen)
        seconds = time.perf_counter() - started_s
        await self.settled(person)
        update = {key: value for key, value in (outcome.get("update") or {}).items() if key != "heat"}
        self.journal.record({
            "event": "lesson", "person": person, "wish": wish.name, "status": outcome["status"],
            "reason": outcome.get("reason", ""), "seconds": round(seconds, 2), "reading": outcome.get("reading", ""),
            "was_asked": was_asked,
            "is_accepted": outcome["adapter_version"] != answer.adapter_version,
            "version": outcome["adapter_version"], "update": update,
        })  # fmt: skip

    async def outcome(self, person: str, outcome: dict[str, Any]) -> dict[str, Any]:
        """Return what became of a piece of feedback, once its lesson has ended or the longest wait is over."""
        return await ended(self.client, person, outcome, self.config.settle_s)

    async def settled(self, person: str) -> list[dict[str, Any]]:
        """Wait until no note is being learned, for a bounded time; return the notes."""
        return await settled(self.client, person, self.config.settle_s)

    def follows(
        self, wish: RealWish, texts: Sequence[str], asked: Sequence[RealPrompt], before: Sequence[str] = ()
    ) -> list[bool]:
        """Return which answers follow a wish, held against those `before`, or the base model's, asked for earlier."""
        known = before or [self._base[prompt.turns] for prompt in asked]
        rows = zip(texts, known, asked, strict=True)
        return [wish.is_followed(text, earlier, prompt.question) for text, earlier, prompt in rows]

    def judge(self, labels: dict[str, Any], wish: RealWish, texts: Sequence[str], asked: Sequence[RealPrompt]) -> None:
        """Record an answer per prompt (`labels`: part, seed, arm), and if it follows the wish."""
        for text, follows in zip(texts, self.follows(wish, texts, asked), strict=True):
            self.record(labels, wish, text, follows=follows)

    def record(self, labels: dict[str, Any], wish: RealWish, text: str, *, follows: bool) -> None:
        """Record one answer that was judged."""
        self.journal.record({"event": "answer", **labels, "wish": wish.name, "text": text, "follows": follows})

    async def judge_arms(self, part: str, seed: int, wish: RealWish, arms: Arms) -> None:
        """Ask persons what the wish is judged on; record every answer."""
        asked = self.probes(seed, wish)
        await self.base_answers(asked)
        for arm, person, notes in arms:
            texts = await self.answers(person, asked, notes)
            self.judge({"part": part, "seed": seed, "arm": arm}, wish, texts, asked)

    def probes(self, seed: int, *labels: object) -> list[RealPrompt]:
        """Return prompts that answers are judged on."""
        names = (label.name if isinstance(label, RealWish) else label for label in labels)
        return real_prompts(seed, self.config.split, self.config.prompts, "probes", *names)
