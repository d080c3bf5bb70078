"""Three arms side by side: notes in the prompt and nothing trained; weights alone; both.

A person of the evaluation exists twice. To one every wish is told as a standing note; the other corrects an answer,
waits until heed has learned it, and goes on once the probes that follow have settled. The second answers with its
notes off (weights) and with them (both). Invariant: neither is asked a probe before its last lesson, since a person's
questions become training prompts.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from evals.cases import Question, Wish
from evals.client import Answer, Client, Notes
from evals.config import EvalConfig

BASE, NOTES, WEIGHTS, BOTH = "base", "notes", "weights", "both"
ARMS = (NOTES, WEIGHTS, BOTH)
POLL_S = 0.1
Texts = dict[str, list[str]]  # arm -> answers in the order of the questions


@dataclass(frozen=True)
class Lesson:
    """What became of one correction."""

    status: str
    version: int
    reason: str
    seconds: float  # from sending the correction to heed's answer that it is learned
    settle_s: float  # from there until the probes that follow had ended
    is_settled: bool  # whether they ended in time
    note_states: tuple[str, ...]
    update: dict[str, Any]  # steps, divergences and phases, as heed told them

    def to_record(self) -> dict[str, Any]:
        """Plain values, for steps.jsonl."""
        return {**asdict(self), "note_states": list(self.note_states)}


class Person:
    """One user of the measured heed."""

    def __init__(self, client: Client, name: str, config: EvalConfig) -> None:
        self.name = name
        self._client = client
        self._config = config

    async def say(self, question: Question) -> Answer:
        """Asks one question and reads the answer."""
        return await self._client.chat(self.name, [{"role": "user", "content": question.text}])

    async def answers(self, texts: Sequence[str], notes: Notes = "auto") -> list[str]:
        """The answers to questions of their own, side by side."""
        return [answer.text for answer in await self._client.ask(self.name, texts, notes=notes)]

    async def note(self, text: str) -> None:
        """Tells something to keep in mind."""
        await self._client.note(self.name, text)

    async def correct(self, question: Question, text: str) -> Lesson:
        """Asks, corrects the answer, and waits until everything that follows has settled."""
        answer = await self.say(question)
        started_s = time.perf_counter()
        outcome = await self._client.correct(self.name, answer.completion_id, text, self._config.overrides)
        seconds = time.perf_counter() - started_s
        states = await self.settle()
        return Lesson(
            status=outcome["status"],
            version=outcome["adapter_version"],
            reason=outcome.get("reason", ""),
            seconds=round(seconds, 6),
            settle_s=round(time.perf_counter() - started_s - seconds, 3),
            is_settled="learning" not in states,
            note_states=tuple(states),
            update={key: value for key, value in (outcome.get("update") or {}).items() if key != "heat"},
        )

    async def settle(self) -> list[str]:
        """Waits until no note is being learned, for a bounded time; the notes' states."""
        ends_s = time.perf_counter() + self._config.settle_s
        while True:
            states = [note["state"] for note in await self._client.notes(self.name)]
            if "learning" not in states or time.perf_counter() > ends_s:
                return states
            await asyncio.sleep(POLL_S)

    async def roll_back(self, version: int) -> None:
        """Makes an earlier version answer."""
        await self._client.rollback(self.name, version)

    async def forget(self) -> None:
        """Erases this person."""
        await self._client.forget(self.name)


class Pair:
    """One person of the evaluation, once per way of learning."""

    def __init__(self, client: Client, name: str, config: EvalConfig) -> None:
        self.noted = Person(client, f"{name}-n", config)
        self.trained = Person(client, f"{name}-t", config)

    async def teach(self, question: Question, wish: Wish) -> Lesson:
        """Tells one of them, corrects the other's answer."""
        await self.noted.note(wish.text)
        return await self.trained.correct(question, wish.text)

    async def answers(self, questions: Sequence[Question]) -> Texts:
        """The answers of every arm, all asked side by side."""
        return await self.answers_to([question.text for question in questions])

    async def answers_to(self, texts: Sequence[str]) -> Texts:
        """The answers of every arm to any texts."""
        noted, trained = await asyncio.gather(self.noted.answers(texts), self.trained_answers(texts))
        return {NOTES: noted, **trained}

    async def trained_answers(self, texts: Sequence[str]) -> Texts:
        """The answers of the two arms that were trained."""
        alone, both = await asyncio.gather(self.trained.answers(texts, "off"), self.trained.answers(texts, "auto"))
        return {WEIGHTS: alone, BOTH: both}

    async def forget(self) -> None:
        """Erases both."""
        await self.noted.forget()
        await self.trained.forget()
