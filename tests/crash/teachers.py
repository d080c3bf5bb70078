"""People who teach heed over HTTP, and the feedback it has acknowledged.

Each piece of feedback keeps its idempotency key and is sent again until heed has acknowledged it, as a client would do.
"""

import random
from dataclasses import dataclass
from typing import Any

import aiohttp

from engine.pocket.style import PREFERENCES
from evals import cases

Json = dict[str, Any]
LESSONS = 0.8  # of all feedback; the rest are thumbs up, and thumbs down without a word
ANSWER_TOKENS = 64


@dataclass
class Said:
    """One piece of feedback."""

    key: str
    user: str
    body: Json
    is_acknowledged: bool = False


class Teachers:
    """Some people; everything random comes from the run's random source."""

    def __init__(self, session: aiohttp.ClientSession, names: tuple[str, ...], random_: random.Random) -> None:
        self.names = names
        self.said: list[Said] = []
        self._session = session
        self._random = random_
        self._number = 0
        self._wished: set[tuple[str, str]] = set()  # who has wished for which preference, and not away again

    @property
    def acknowledged(self) -> list[str]:
        """The keys heed has confirmed."""
        return [said.key for said in self.said if said.is_acknowledged]

    @property
    def known(self) -> list[str]:
        """Those whom heed knows, because it has acknowledged something of theirs."""
        return sorted({said.user for said in self.said if said.is_acknowledged})

    async def act(self) -> None:
        """Ask a question and give feedback on the answer. A heed that goes away meanwhile is tolerated."""
        user = self._random.choice(self.names)
        self._number += 1
        question = cases.earlier(self._random.randrange(1000), 1, "kills", self._number)[0].text
        answer = await self._post("/v1/chat/completions", self._asked(user, question))
        if answer is None:
            return
        key = f"{user}-{self._number}"
        self.said.append(Said(key, user, self._opinion(user, answer)))
        await self._send(self.said[-1])

    async def deliver(self) -> None:
        """Sends again what was not acknowledged."""
        for said in [said for said in self.said if not said.is_acknowledged]:
            await self._send(said)

    async def consolidate(self, user: str) -> Json | None:
        """Asks for a consolidation and waits for what becomes of it; None where heed went away."""
        return await self._post(f"/v1/users/{user}/consolidate", {})

    def _asked(self, user: str, question: str) -> Json:
        messages = [{"role": "user", "content": question}]
        return {"model": "heed", "user": user, "messages": messages, "temperature": 0, "max_tokens": ANSWER_TOKENS}

    def _opinion(self, user: str, answer: Json) -> Json:
        """Mostly a wish; a thumb down only on the base model's answers, since others may take a lesson back."""
        about = {"user": user, "completion_id": answer["id"], "wait": False}
        if self._random.random() < LESSONS:
            return {**about, "kind": "correction", "text": self._wish(user)}
        if answer["heed"]["adapter_version"] == 0 and self._random.random() < 0.5:
            return {**about, "kind": "reaction", "value": -1}
        return {**about, "kind": "approval"}

    def _wish(self, user: str) -> str:
        """Always something new: what was wished for before is wished away."""
        preference = self._random.choice(list(PREFERENCES))
        side = 0 if (user, preference) in self._wished else 1
        self._wished ^= {(user, preference)}
        return cases.wish_for(self._number, (preference, side), "kills").text

    async def _send(self, said: Said) -> None:
        said.is_acknowledged = await self._post("/v1/feedback", said.body, {"Idempotency-Key": said.key}) is not None

    async def _post(self, path: str, body: Json, headers: dict[str, str] | None = None) -> Json | None:
        """Return heed's answer, None if it went away before. Any refusal but 503 is an error of this harness."""
        try:
            async with self._session.post(path, json=body, headers=headers) as response:
                answer: Json = await response.json()
        except (aiohttp.ClientError, TimeoutError):
            return None
        assert response.status in (200, 503), answer
        return answer if response.status == 200 else None
