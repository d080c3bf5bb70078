"""One evaluation while it runs: the heed it talks to, what it has recorded, how far it is.

Owns the records: one per judged answer and one per lesson, each with its part and seed, as they go to steps.jsonl.
The base model's answers, which every "before" is, are asked once per question.
"""

from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from engine.bank import load_bank
from evals.arms import Lesson, Pair
from evals.client import Client
from evals.config import EvalConfig

Record = dict[str, Any]
Advance = Callable[[str], None]
Sink = Callable[[Record], None]
BASE_MODEL = "heed-base"


class Study:
    """What every part of an evaluation works with."""

    def __init__(
        self,
        config: EvalConfig,
        client: Client,
        run_id: str,
        advance: Advance,
        rehearsed: Collection[str] = (),
        sink: Sink = lambda _record: None,
    ) -> None:
        """`run_id` keeps this run's users apart from an earlier run's; `rehearsed` are prompts heed trains on;
        `sink` gets every record at once, so that a run that breaks off leaves what it had seen."""
        self.config = config
        self.client = client
        self.rehearsed = rehearsed
        self.records: list[Record] = []
        self.advance = advance
        self.base_user = f"eval-{run_id}-base"
        self._run_id = run_id
        self._sink = sink
        self._base: dict[str, str] = {}

    def record(self, part: str, seed: int, **fields: Any) -> None:
        """Keeps one observation."""
        self.records.append({"part": part, "seed": seed, **fields})
        self._sink(self.records[-1])

    def lesson(self, part: str, seed: int, lesson: Lesson, **fields: Any) -> None:
        """Keeps what became of one correction."""
        self.record(part, seed, event="lesson", **fields, **lesson.to_record())

    @asynccontextmanager
    async def pair(self, *labels: object) -> AsyncIterator[Pair]:
        """A person nobody has met before; erased afterwards where the heed is somebody's own."""
        pair = Pair(self.client, f"eval-{self._run_id}-{'-'.join(map(str, labels))}", self.config)
        yield pair
        if self.config.url:
            await pair.forget()

    async def before(self, texts: Sequence[str]) -> list[str]:
        """The base model's answers: what a person who has taught nothing gets."""
        missing = [text for text in dict.fromkeys(texts) if text not in self._base]
        asked = await self.client.ask(self.base_user, missing, model=BASE_MODEL)
        self._base.update({text: answer.text for text, answer in zip(missing, asked, strict=True)})
        return [self._base[text] for text in texts]

    async def close(self) -> None:
        """Erases who asked the base model, where the heed is somebody's own."""
        if self.config.url:
            await self.client.forget(self.base_user)


def rehearsed_prompts(model: str) -> frozenset[str]:
    """What heed trains on beside a person's own words, where the model is on this machine."""
    bank = load_bank(Path(model))
    return frozenset([*bank.topics, *bank.anchors])
