"""The part `remarks` of `heed eval real`: what is no standing wish must leave the answers to other prompts as they are.

One person per kind of remark (thanks, small talk, the next question, a word about this one answer ...) says each as a
reply to an answer. Then other prompts are asked with the notes off and on; their greedy answers are compared with the
base model's, which a person without lessons gets. Invariant: prompts are asked one at a time, since a model's numbers
vary with the batch; an answer that differs is asked for once more, and the base model twice, which is the noise.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from evals.client import Notes
from evals.real.study import RealStudy
from evals.real.world import RealPrompt, read_rows
from evals.study import BASE_MODEL

WAYS: tuple[Notes, ...] = ("off", "auto")


@dataclass(frozen=True)
class Remark:
    """A reply to the answer to a question, and its kind."""

    kind: str
    question: str
    remark: str


REMARKS = tuple(Remark(**row) for row in read_rows("remarks.tsv"))
KINDS = tuple(dict.fromkeys(remark.kind for remark in REMARKS))


async def remarks(study: RealStudy, seed: int) -> None:
    """Let the persons of this seed make their remarks: each kind belongs to one seed."""
    for kind in kinds_of(study.config.numbers.index(seed), len(study.config.numbers)):
        person = study.name("remarks", KINDS.index(kind))
        await study.once(f"remarks/{kind}", partial(_remark, study, seed, kind, person), person)


def kinds_of(seed: int, seeds: int) -> tuple[str, ...]:
    """Return the kinds of a seed; each kind is measured once."""
    return KINDS[seed::seeds]


async def _remark(study: RealStudy, seed: int, kind: str, person: str) -> None:
    asked = study.probes(seed, "remarks")
    before = await _before(study, asked)
    for remark in (r for r in REMARKS if r.kind == kind):
        await _say(study, person, remark)
    for notes in WAYS:
        for prompt, text in zip(asked, before, strict=True):
            after = [await _one(study, person, prompt, notes)]
            if after[0] != text:
                after.append(await _one(study, person, prompt, notes))
            study.journal.record({
                "event": "remarked", "seed": seed, "kind": kind, "notes": notes, "prompt": prompt.turns[-1],
                "before": text, "after": after, "is_changed": text not in after,
            })  # fmt: skip


async def _say(study: RealStudy, person: str, remark: Remark) -> None:
    answer = await study.client.chat(person, [{"role": "user", "content": remark.question}])
    outcome = await study.client.correct(person, answer.completion_id, remark.remark, study.config.overrides)
    outcome = await study.outcome(person, outcome)
    await study.settled(person)
    study.journal.record({
        "event": "remark", "kind": remark.kind, "text": remark.remark, "reading": outcome.get("reading", ""),
        "status": outcome["status"], "is_trained": outcome["adapter_version"] != answer.adapter_version,
    })  # fmt: skip


async def _before(study: RealStudy, asked: Sequence[RealPrompt]) -> list[str]:
    """Return the base model's answers, each the second of two; the first is compared for the noise."""
    found = []
    for prompt in asked:
        first, second = [await _one(study, study.base, prompt, "off", BASE_MODEL) for _ in range(2)]
        study.journal.record({"event": "noise", "prompt": prompt.turns[-1], "is_changed": first != second})
        found.append(second)
    return found


async def _one(study: RealStudy, person: str, prompt: RealPrompt, notes: Notes, model: str = "heed") -> str:
    return (await study.client.chat(person, prompt.messages, notes=notes, model=model)).text
