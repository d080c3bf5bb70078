"""Three arms side by side: notes in the prompt and nothing trained; weights alone; both.

A person of the evaluation exists twice. To one every wish is told as a standing note; the other corrects an answer,
waits until heed has learned it, and goes on once the probes that follow have settled. The second answers with its
notes off (weights) and with them (both). Invariant: neither is asked a probe before its last lesson, since a person's
questions become training prompts.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass
from typing import Any

from evals.cases import Question, Wish
from evals.client import Answer, Client, Notes
from evals.config import EvalConfig
from evals.lesson_end import ended

BASE, NOTES, WEIGHTS, BOTH = "base", "notes", "weights", "both"
ARMS = (NOTES, WEIGHTS, BOTH)
POLL_S = 0.1
LONGEST_LESSON_S = 900.0  # a pretrained model learns for minutes where others compute, too
Texts = dict[str, list[str]]  # arm -> answers in the order of the questions


@dataclass(frozen=True)
class TaughtLesson:
    """The result of one correction."""

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


class TaughtPerson:
    """One user of the measured heed."""

    def __init__(self, client: Client, name: str, config: EvalConfig) -> None:
        self.name = name
        self._client = client
        self._config = config

    async def say(self, question: Question) -> Answer:
        """Asks one question and reads the answer."""
        return await self._client.chat(self.name, [{"role": "user", "content": question.text}])

    async def answers(self, texts: Sequence[str], notes: Notes = "auto") -> list[str]:
        """Return the answers to questions of their own, side by side."""
        return [answer.text for answer in await self._client.ask(self.name, texts, notes=notes)]

    async def both_ways(self, texts: Sequence[str]) -> Texts:
        """Return the answers by the weights alone, and with the notes beside them."""
        alone, both = await asyncio.gather(self.answers(texts, "off"), self.answers(texts, "auto"))
        return {WEIGHTS: alone, BOTH: both}

    async def exactly(self, text: str) -> list[Any]:
        """Return the answer to one question: its text, and each token with its log-probability, to the last bit."""
        answer = await self._client.chat(self.name, [{"role": "user", "content": text}], logprobs=True)
        return [answer.text, *map(list, answer.tokens)]

    async def first_token_s(self, text: str) -> float:
        """Seconds from a question to the first piece of its answer."""
        started_s = time.perf_counter()
        async with aclosing(self._client.stream(self.name, text)) as pieces:
            async for arrived_s in pieces:
                return arrived_s - started_s
        return float("inf")

    async def note(self, text: str) -> None:
        """Tells something to keep in mind."""
        await self._client.note(self.name, text)

    async def reply(self, question: Question, answer: Answer, text: str) -> Answer:
        """Says something after an answer, in the same conversation."""
        turns = [("user", question.text), ("assistant", answer.text), ("user", text)]
        return await self._client.chat(self.name, [{"role": role, "content": content} for role, content in turns])

    async def note_tokens(self) -> tuple[int, int]:
        """Tokens that learned notes save in every prompt, and tokens that the others still cost."""
        return await self._client.note_tokens(self.name)

    async def correct(self, question: Question, text: str) -> TaughtLesson:
        """Asks, corrects the answer, and waits until everything that follows has settled."""
        return await self.teach(await self.say(question), text)

    async def teach(self, answer: Answer, text: str) -> TaughtLesson:
        """Corrects an answer, and waits until everything that follows has settled."""
        started_s = time.perf_counter()
        queued = await self._client.correct(self.name, answer.completion_id, text, self._config.overrides)
        outcome = await ended(self._client, self.name, queued, LONGEST_LESSON_S)
        seconds = time.perf_counter() - started_s
        states = await self.settle()
        return TaughtLesson(
            status=outcome["status"],
            version=outcome["adapter_version"],
            reason=outcome.get("reason", ""),
            seconds=round(seconds, 6),
            settle_s=round(time.perf_counter() - started_s - seconds, 3),
            is_settled="learning" not in states,
            note_states=tuple(states),
            update={key: value for key, value in (outcome.get("update") or {}).items() if key != "heat"},
        )

    async def sleep(self) -> dict[str, Any]:
        """One consolidation, and the probes that follow it: what became of it."""
        outcome = await self._client.consolidate(self.name)
        await self._states(lambda states: set(states) <= {"in_weights", "when_asked"})
        return outcome

    async def in_weights(self) -> set[str]:
        """Return the notes that have left the prompt."""
        return {note["text"] for note in await self._client.notes(self.name) if note["state"] == "in_weights"}

    async def settle(self) -> list[str]:
        """Wait until no note is being learned, for a bounded time; the notes' states."""
        return await self._states(lambda states: "learning" not in states)

    async def _states(self, is_over: Callable[[list[str]], bool]) -> list[str]:
        """Return the notes' states once they are as wanted, or after a bounded time."""
        ends_s = time.perf_counter() + self._config.settle_s
        while True:
            states = [note["state"] for note in await self._client.notes(self.name)]
            if is_over(states) or time.perf_counter() > ends_s:
                return states
            await asyncio.sleep(POLL_S)

    async def roll_back(self, version: int) -> None:
        """Make an earlier version answer."""
        await self._client.rollback(self.name, version)

    async def forget(self) -> None:
        """Erases this person."""
        await self._client.forget(self.name)


class Pair:
    """One person of the evaluation, once per way of learning."""

    def __init__(self, client: Client, name: str, config: EvalConfig) -> None:
        self.noted = TaughtPerson(client, f"{name}-n", config)
        self.trained = TaughtPerson(client, f"{name}-t", config)

    async def teach(self, question: Question, wish: Wish) -> TaughtLesson:
        """Tells one of them, corrects the other's answer."""
        await self.noted.note(wish.text)
        return await self.trained.correct(question, wish.text)

    async def answers(self, questions: Sequence[Question]) -> Texts:
        """Return the answers of every arm, all asked side by side."""
        return await self.answers_to([question.text for question in questions])

    async def answers_to(self, texts: Sequence[str]) -> Texts:
        """Return the answers of every arm to any texts."""
        noted, trained = await asyncio.gather(self.noted.answers(texts), self.trained_answers(texts))
        return {NOTES: noted, **trained}

    async def trained_answers(self, texts: Sequence[str]) -> Texts:
        """Return the answers of the two arms that were trained."""
        return await self.trained.both_ways(texts)

    async def forget(self) -> None:
        """Erases both."""
        await self.noted.forget()
        await self.trained.forget()
