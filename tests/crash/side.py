"""A chat platform as the crash runs use it: a server that outlives heed, and people who talk to heed over it."""

import random
from collections.abc import Callable
from typing import Any, Protocol

from tests.crash.history import History

Json = dict[str, Any]
NUM_PEOPLE = 8
ACTS = ("ask", "ask", "correct", "up", "down", "react", "again")
OPINION = "that was too long"


class Side(Protocol):
    """One platform. What people do is noted in `history`; everything random comes from the run's random source."""

    history: History

    @property
    def environment(self) -> dict[str, str]:
        """Return the settings that switch the platform on."""
        ...

    @property
    def num_calls(self) -> int:
        """Requests heed has made so far."""
        ...

    def num_pending(self, kept: dict[str, Any]) -> int:
        """Things heed was not told yet, or has not confirmed. `kept`: the settings in heed's storage."""
        ...

    async def consent(self) -> None:
        """Everybody says hello and lets heed learn."""
        ...

    async def act(self) -> None:
        """Do one random thing as a person."""
        ...

    def disturb(self) -> None:
        """Before a life: make its delivery as bad as the platform's may be."""
        ...

    def calm(self) -> None:
        """Before a life: from now on everything is delivered in order."""
        ...

    async def connected(self) -> None:
        """Wait until a heed that has just begun takes what happens."""
        ...

    async def until(self, is_true: Callable[[], object]) -> None:
        """Wait until something holds."""
        ...

    def account_for(self, taken: set[str]) -> None:
        """In place: what people did, without what the platform itself has lost. `taken`: update ids in heed's inbox."""
        ...

    def shown(self) -> list[str]:
        """Every text of heed's that is shown."""
        ...


def choose(random_: random.Random, *, has_answers: bool) -> str:
    """Choose a person's next act."""
    return random_.choice(ACTS) if has_answers else "ask"
