"""People with answers and lessons, as the dashboards show them."""

from dataclasses import dataclass
from typing import Any

from storage.learning import updates
from storage.people import people
from tests.bot.conftest import Heed

CURVES = {"loss": [1.5, 1.0, 0.2], "divergence": [2.0, 1.0, 0.1]}
GATE: dict[str, Any] = {"accepted": True, "reason": "", "checks": {"is_finite": True}, "figures": {"update_norm": 0.5}}


@dataclass(frozen=True)
class Pupil:
    """A person with one lesson and the new answer; `update_id` is the lesson's update."""

    id: str
    update_id: str


async def pupil(heed: Heed, name: str = "ana", said: str = "bees", correction: str = "too long") -> Pupil:
    """Store one answer, one correction, the new answer, and every figure that an update can have."""
    answer = await heed.ask(said, user=name)
    await heed.correct(answer["id"], correction, user=name, retry=True)
    found = await heed.core.database.read(lambda s: people.find(s, "http", name))
    assert found is not None
    user_id = found.id
    run = (await heed.core.database.read(lambda s: updates.recent(s, user_id, 1)))[0]
    figures: dict[str, Any] = {"curves": CURVES, "notes": [f"a note of {name}"], "gate": GATE}
    await heed.core.database.write(lambda s: updates.finish(s, run.id, **figures))
    return Pupil(user_id, run.id)
