"""The part `facts` of `heed eval real`: told, consolidated, then asked with what stands in the prompt after.

One person of each seed tells eight facts as notes and consolidates; another tells the same and does not (the ceiling:
every note in the prompt). Both are asked in new conversations; the first also for what was never told. Invariant: an
answer that neither carries the fact nor says that it is not known is made up.
"""

import asyncio
import random
import re
import time
from collections.abc import Sequence
from typing import Any

from evals.lesson_end import POLL_S
from evals.real.study import RealStudy
from evals.real.world import read_rows, says
from evals.wish_checks import is_degenerate

NUM_FACTS = 8
STILL_S = 30.0  # without a note that moved: the probes have ended
_ROWS = read_rows("facts.tsv")
TOLD = tuple(row for row in _ROWS if row["kind"] == "told")
UNTOLD = tuple(row["question"] for row in _ROWS if row["kind"] == "untold")
_NOT = r"(?:do|does|did|have|has|can|could)(?: not|n['\u2019]t)|cannot|never"
_UNKNOWN = re.compile(
    rf"\b(?:(?:{_NOT})(?: yet| really| actually)? (?:know|tell|told|recall|remember|have|access|see|find|determine"
    r"|say|said|mention(?:ed)?|shared?)|not (?:sure|able|aware|certain)|unable|unknown|no (?:access|information))\b",
    re.IGNORECASE,
)


def grade(text: str, accepted: str) -> str:
    """Return "right", "unknown" if the answer says that it does not know, otherwise "made up"."""
    if accepted and says(text, accepted):
        return "right"
    return "unknown" if is_degenerate(text) or _UNKNOWN.search(text) else "made up"


async def facts(study: RealStudy, seed: int) -> None:
    """Record what is answered, and which notes have left the prompt."""
    persons = [study.name("facts", seed, role) for role in ("n", "t")]
    await study.once(f"facts/{seed}", lambda: _one(study, seed, *persons), *persons)


def told(seed: int) -> list[dict[str, str]]:
    """Return the facts of a seed: three seeds have them all."""
    drawn = random.Random("facts").sample(TOLD, len(TOLD))
    first = seed * NUM_FACTS % len(drawn)
    return (drawn + drawn)[first : first + NUM_FACTS]


async def _one(study: RealStudy, seed: int, noted: str, trained: str) -> None:
    rows = told(seed)
    for row in rows:
        for person in (noted, trained):
            await study.client.note(person, row["note"])
    outcome = await study.client.consolidate(trained)
    probed = await _probed(study, trained)  # which place the facts that stay notes, too
    left = {note["text"] for note in probed if note["state"] == "in_weights"}
    study.journal.record({
        "event": "consolidated", "seed": seed, "status": outcome["status"], "reason": outcome.get("reason", ""),
    })  # fmt: skip
    for arm, person in (("note", noted), ("consolidated", trained)):
        texts = await _ask(study, person, [row["question"] for row in rows])
        for row, text in zip(rows, texts, strict=True):
            study.journal.record({
                "event": "fact", "seed": seed, "arm": arm, "note": row["note"], "text": text,
                "grade": grade(text, row["accepted"]), "left_prompt": arm != "note" and row["note"] in left,
            })  # fmt: skip
    for question, text in zip(UNTOLD, await _ask(study, trained, UNTOLD), strict=True):
        study.journal.record({
            "event": "untold", "seed": seed, "question": question, "text": text, "grade": grade(text, ""),
            "names": [row["note"] for row in rows if says(text, row["accepted"])],
        })  # fmt: skip


async def _probed(study: RealStudy, person: str) -> list[dict[str, Any]]:
    """Return the notes once the probes behind a consolidation have ended: all left the prompt, or no more moves."""
    ends_s = time.perf_counter() + study.config.settle_s
    notes, still_s = await study.client.notes(person), time.perf_counter()
    while time.perf_counter() < ends_s and any(note["state"] != "in_weights" for note in notes):
        now = await study.client.notes(person)
        if now != notes or any(note["state"] == "in_prompt" and note.get("probe") is None for note in now):
            notes, still_s = now, time.perf_counter()
        elif time.perf_counter() - still_s > STILL_S:
            break
        await asyncio.sleep(POLL_S)
    return notes


async def _ask(study: RealStudy, person: str, questions: Sequence[str]) -> list[str]:
    """Return the answers with what stands in the prompt now."""
    return [answer.text for answer in await study.client.ask(person, questions)]
