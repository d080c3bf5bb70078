"""One evaluation while it runs: the heed it talks to, what it has recorded, how far it is.

Owns the records: one per judged answer and one per lesson, each with its part and seed, as they go to steps.jsonl; and
the units of work, each of which is done once, also over an interruption. The base model's answers, which every "before"
is, are asked once per question.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from engine.prompts.bank import load_bank
from evals.arms import Pair, TaughtLesson
from evals.client import Client
from evals.config import EvalConfig
from evals.journal import Journal, Record
from evals.provenance import folder_of

__all__ = ["BASE_MODEL", "Advance", "Record", "Study", "rehearsed_prompts"]

Advance = Callable[[str], None]
BASE_MODEL = "heed-base"


class Study:
    """The means that every part of an evaluation works with."""

    def __init__(
        self,
        config: EvalConfig,
        client: Client,
        journal: Journal,
        advance: Advance,
        rehearsed: Collection[str] = (),
    ) -> None:
        """`rehearsed` are prompts heed trains on; `journal` gets every record at once, and knows what is done."""
        self.config = config
        self.client = client
        self.rehearsed = rehearsed
        self.base_user = f"eval-{journal.run_id}-base"
        self._journal = journal
        self._advance = advance
        self._num_steps = 0
        self._base: dict[str, str] = {}

    @property
    def records(self) -> list[Record]:
        """Everything seen so far."""
        return self._journal.records

    def advance(self, part: str) -> None:
        """One step further on the bar."""
        self._num_steps += 1
        self._advance(part)

    async def once(self, unit: str, work: Callable[[], Awaitable[None]]) -> None:
        """Do a piece of work, unless it was done before this run was interrupted; its name begins with its part."""
        if unit in self._journal.done:
            for _ in range(self._journal.done[unit]):
                self._advance(unit.partition("/")[0])
            return
        before = self._num_steps
        await work()
        self._journal.finish(unit, self._num_steps - before)

    async def once_each(self, part: str, work: Callable[[int, str], Awaitable[None]]) -> None:
        """Do a part's piece of work for every seed and preference."""
        for seed, preference in self.config.seeded_preferences:
            await self.once(f"{part}/{seed}/{preference}", partial(work, seed, preference))

    def record(self, part: str, seed: int, **fields: Any) -> None:
        """Keep one observation."""
        self._journal.record({"part": part, "seed": seed, **fields})

    def lesson(self, part: str, seed: int, lesson: TaughtLesson, **fields: Any) -> None:
        """Keep what became of one correction."""
        self.record(part, seed, event="lesson", **fields, **lesson.to_record())

    @asynccontextmanager
    async def pair(self, *labels: object, goes_on: bool = False) -> AsyncIterator[Pair]:
        """Provide a person no one has met before; erased afterwards where the heed is a person's own.

        One that `goes_on` is met again after an interruption; any other begins anew then.
        """
        pair = Pair(self.client, f"eval-{self._journal.run_id}-{'-'.join(map(str, labels))}", self.config)
        if self._journal.is_resumed and not goes_on:
            await pair.forget()
        yield pair
        if self.config.url:
            await pair.forget()

    async def before(self, texts: Sequence[str]) -> list[str]:
        """Return the base model's answers: what a person who has taught nothing gets."""
        missing = [text for text in dict.fromkeys(texts) if text not in self._base]
        asked = await self.client.ask(self.base_user, missing, model=BASE_MODEL)
        self._base.update({text: answer.text for text, answer in zip(missing, asked, strict=True)})
        return [self._base[text] for text in texts]

    async def close(self) -> None:
        """Erase who asked the base model, where the heed is a person's own."""
        if self.config.url:
            await self.client.forget(self.base_user)


def rehearsed_prompts(model: str) -> frozenset[str]:
    """Return what heed trains on beside a person's own words, where the model is on this machine."""
    bank = load_bank(folder_of(model))
    return frozenset([*bank.topics, *bank.anchors])
