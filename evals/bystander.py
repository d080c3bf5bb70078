"""A person else, who taught one thing and is then left alone: are their answers bit-equal anything that another one
does?

What is compared are the token ids and their log-probabilities, of answers that are asked for one at a time. Each
question is asked twice in a row and the second answer counts, so that the prompt cache holds the prompt either way.
What follows the other person's last lesson may still share a batch with it: an answer that differs is asked for again.
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

from engine.pocket.style import Direction
from evals import cases
from evals.arms import TaughtPerson
from evals.cases import Question
from evals.study import Study

EVENT = "bystander"
MEETS = "meets the bystander"
ROUNDS = 3
PAUSE_S = 1.0
TAUGHT: Direction = ("emoji", 1)


class Bystander:
    """One such person, for one part and seed."""

    def __init__(self, study: Study, part: str, seed: int, person: TaughtPerson, questions: Sequence[Question]) -> None:
        self._study = study
        self._part = part
        self._seed = seed
        self._person = person
        self._texts = [question.text for question in questions]

    async def meet(self) -> None:
        """Lets them teach their one thing, and keeps their answers."""
        await self._study.once(f"{self._part}/{self._seed}/{MEETS}", self._meet)

    async def ask_again(self, after: int) -> None:
        """Asks the same; `after` counts what the other person has done."""
        await self._study.once(f"{self._part}/{self._seed}/{EVENT}/{after}", partial(self._ask_again, after))

    async def _meet(self) -> None:
        wish = cases.wish_for(self._seed, TAUGHT, EVENT)
        await self._person.correct(cases.corrected(self._seed, 1, EVENT)[0], wish.text)
        self._study.record(self._part, self._seed, event=MEETS, answers=await self._answers(self._texts))

    async def _ask_again(self, after: int) -> None:
        before = dict(zip(self._texts, self._met(), strict=True))
        answers: dict[str, Any] = {}
        again = 0  # answers that differed when they were asked for first
        for number in range(ROUNDS):
            differing = [text for text in self._texts if answers.get(text) != before[text]]
            if not differing:
                break
            if number:
                again = again or len(differing)
                await asyncio.sleep(PAUSE_S)
            answers |= dict(zip(differing, await self._answers(differing), strict=True))
        self._study.record(
            self._part, self._seed, event=EVENT, after=after, asked=len(answers), again=again, tries=ROUNDS,
            changed=sum(answers[text] != before[text] for text in self._texts),
            texts=[answers[text][0] for text in self._texts],
        )  # fmt: skip

    def _met(self) -> list[Any]:
        """Return the answers from before, which an interrupted run may have asked for."""
        met = (
            r for r in self._study.records if (r["part"], r["seed"], r.get("event")) == (self._part, self._seed, MEETS)
        )
        return list(next(met)["answers"])

    async def _answers(self, texts: Sequence[str]) -> list[list[Any]]:
        """Of each question the second answer: its text, then its token ids with their log-probabilities."""
        found = []
        for text in texts:
            await self._person.exactly(text)
            found.append(await self._person.exactly(text))
        return found
