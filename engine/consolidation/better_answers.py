"""The curriculum: answers that were not good are written better by a teacher, checked, and taught in a consolidation.

Owns one cycle: grade -> teacher -> checks -> storage. Invariants: only answers that no one corrected; a better answer
is kept only if it drops no facts and follows the person's notes, and taught only while the same notes stand; a
teacher that is unreachable or answers rubbish ends or shortens the cycle and nothing else; a conversation leaves this
machine only if the operator has set an endpoint and the person's consent allows it (`storage.people.consent`).
"""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from engine.adapter_ref import ZERO_ADAPTER
from engine.config import BetterAnswersConfig, EngineConfig
from engine.consolidation.grades import Evidence, worst_first
from engine.consolidation.material import DISLIKED, Material, Signal
from engine.consolidation.teacher_endpoint import Draft, Endpoint, Teacher
from engine.errors import TeacherAnswerInvalid, TeacherUnreachable
from engine.gates.texts import is_sound, preserved_share
from engine.prompts.builder import PromptBuilder
from engine.prompts.hindsight import Hindsight, teacher_messages, with_notes
from engine.requests import ChatMessage
from engine.sample import Sample
from engine.samples import notes
from engine.samples.context import LearningContext
from engine.samples.pairs import Views, pair, usable
from engine.samples.rollouts import Rollout, RolloutStore
from storage.conversations import completions
from storage.database import Session
from storage.kinds import BetterState
from storage.learning import better_answers, signals
from storage.learning import notes as note_rows
from storage.people import consent
from storage.tables import BetterAnswer, Completion, Note

logger = logging.getLogger(__name__)
BASE_MODEL = "base model"  # the source of what it writes
_SCORED_AT_ONCE = 4  # pairs in one call into the worker

Clock = Callable[[], float]


@dataclass(frozen=True)
class Graded:
    """Answers of one person by completion id, the evidence about each, and what a teacher needs besides."""

    answers: dict[str, Completion]
    evidence: list[Evidence]
    notes: list[Note]  # that stand
    may_be_sent: bool  # to an endpoint elsewhere


class BaseTeacher:
    """The base model as a teacher that reads the person's notes."""

    source = BASE_MODEL

    def __init__(self, rollouts: RolloutStore, prompts: PromptBuilder, longest: int) -> None:
        """Write answers of at most `longest` tokens."""
        self._rollouts = rollouts
        self._prompts = prompts
        self._longest = longest

    async def write(self, messages: list[ChatMessage]) -> Draft:
        """See Teacher. Raises EngineRestarting."""
        (answer,) = await self._rollouts.greedy_answers(ZERO_ADAPTER, [messages], self._longest)
        return Draft(self._prompts.text(answer).strip(), is_ended=len(answer) < self._longest)


class BetterAnswers:
    """Writes better answers for a person, a few before each consolidation."""

    def __init__(self, context: LearningContext, *, clock: Clock = time.time) -> None:
        """Keep the parts; `clock` returns UTC seconds."""
        self._config = context.config
        self._database = context.database
        self._host = context.host
        self._trainer = context.trainer
        self._prompts = context.prompts
        self._base = BaseTeacher(context.rollouts, context.prompts, context.config.learn.max_rollout_tokens)
        self._clock = clock

    async def cycle(self, found: Graded, newest_s: float | None) -> bool:
        """Have the worst of the answers `found` written better, unless the last one, of `newest_s`, is recent.

        Return False if nothing was tried. May be cancelled at any time. Raises EngineRestarting, TrainerError.
        """
        config = self._config.curriculum
        if not (config.is_on and is_rested(newest_s, self._clock(), config)):
            return False
        evidence = await self._graded(found)
        teacher: Teacher = Endpoint(config) if config.url and found.may_be_sent else self._base
        for one in worst_first(evidence, config)[: config.max_answers]:
            if not await self._improve(found.answers[one.completion_id], one, teacher, found.notes):
                break
        return True

    async def _improve(self, answer: Completion, evidence: Evidence, teacher: Teacher, live: Sequence[Note]) -> bool:
        """Try one answer and store the row. Return True if the teacher can be asked for more."""
        said = [note.text for note in self._fitting(live)]
        seen = teacher_messages(answer.messages, said, Hindsight(DISLIKED if evidence.is_disliked else ""))
        row = BetterAnswer(
            user_id=answer.user_id,
            completion_id=answer.id,
            source=teacher.source,
            notes=[note.text for note in live],
            state=BetterState.FAILED,
        )
        try:
            draft = await teacher.write(seen)
        except TeacherUnreachable as error:
            logger.warning("no better answers are written: %s", error)
            return False
        except TeacherAnswerInvalid as error:
            logger.warning("a better answer was not written: %s", error)
            row.reason = str(error)
        else:
            await self._judge(row, answer, draft, live)
        await self._database.write(lambda s: better_answers.add(s, row))
        return True

    async def _judge(self, row: BetterAnswer, answer: Completion, draft: Draft, live: Sequence[Note]) -> None:
        """Fill the verdict of the checks into the row, in place."""
        row.text, row.preserved = draft.text, preserved_share(answer.text, draft.text)
        row.reason = refusal(answer.text, draft, self._config.gate.min_preserved)
        row.reason = row.reason or await self._unfollowed(answer, draft, self._fitting(live))
        row.state = BetterState.REJECTED if row.reason else BetterState.ACCEPTED

    async def _unfollowed(self, answer: Completion, draft: Draft, live: Sequence[Note]) -> str:
        """Return the note that a draft goes against, by the probe of `engine.samples.notes`; empty if there is none."""
        ids = self._host.tokenizer.encode(draft.text, add_special_tokens=False)
        rollout = Rollout(answer.messages, [], list(ids), [])
        pairs = [notes.beside_sample(note, live, rollout, self._prompts) for note in live]
        if any(len(pair.response_ids) < len(ids) for pair in pairs):  # cut to what the trainer reads
            return "it is too long"
        gains = await self._gains(pairs)
        against = (n.text for n, gain in zip(live, gains, strict=True) if gain < -self._config.curriculum.min_gain)
        return next((f'it does not follow "{text}"' for text in against), "")

    # -- grading -----------------------------------------------------------------------------------------------------

    async def _graded(self, found: "Graded") -> list[Evidence]:
        """Score the answers without a thumb down against the notes."""
        said = [note.text for note in self._fitting(found.notes)]
        silent = [e for e in found.evidence if said and not e.is_disliked]
        gains = await self._gains([self._pair(found.answers[e.completion_id], said) for e in silent])
        gain_of = {e.completion_id: gain for e, gain in zip(silent, gains, strict=True)}
        return [replace(e, gain=gain_of.get(e.completion_id)) for e in found.evidence]

    def _fitting(self, live: Sequence[Note]) -> list[Note]:
        return notes.fitting(live, self._config.note, self._host.max_model_len)

    def _pair(self, answer: Completion, said: Sequence[str]) -> Sample:
        views = Views(answer.messages, with_notes(answer.messages, said))
        return pair("counterfactual", Rollout.of(answer), views, self._prompts)

    async def _gains(self, pairs: Sequence[Sample]) -> list[float]:
        """Return log p(y | second context) - log p(y | first), in nats per answer, under the base model."""
        scores = iter(await self._trainer.score(usable(pairs), ZERO_ADAPTER, _SCORED_AT_ONCE))
        return [next(scores).gain if pair.response_ids else 0.0 for pair in pairs]


def refusal(answer: str, draft: Draft, min_preserved: float) -> str:
    """Return why a draft is no better answer, in plain words; empty if its text is fine."""
    if not is_sound(draft.text) or not draft.is_ended:
        return "it is no whole answer"
    if draft.text.strip() == answer.strip():
        return "it is what was answered already"
    if preserved_share(answer, draft.text) < min_preserved:
        return "it drops facts of the answer"
    return ""


def is_rested(newest_s: float | None, now_s: float, config: BetterAnswersConfig) -> bool:
    """Return True if the last cycle is long enough ago. One in the future does not count: the clock has jumped."""
    return newest_s is None or not 0 <= now_s - newest_s < config.cooldown_s


def newest_s(s: Session, user_id: str) -> float | None:
    """Return when the person's newest better answer was written, in UTC seconds; None if there is none."""
    newest = next(iter(better_answers.recent(s, user_id, 1)), None)
    return newest.created_at if newest else None


def look_at(s: Session, user_id: str, config: EngineConfig) -> Graded:
    """Read the newest answers of a person that are short enough and were neither corrected nor retried."""
    recent = completions.recent(s, user_id, config.curriculum.num_graded)
    ids = [c.id for c in recent]
    left_out = signals.corrected(s, user_id, ids) | {c.retry_of for c in recent}
    left_out |= better_answers.settled(s, user_id, ids, config.curriculum.max_failures)
    disliked = signals.disliked(s, user_id, ids)
    gold = {_asked(c): c.text for c in reversed(recent) if c.is_gold}
    kept = [c for c in recent if c.id not in left_out and _is_whole(c, config)]
    return Graded(
        {c.id: c for c in kept},
        [_evidence(c, gold.get(_asked(c)), disliked) for c in kept],
        note_rows.live(s, user_id),
        consent.may_be_sent(s, user_id),
    )


def with_better_answers(s: Session, user_id: str, material: Material, config: EngineConfig) -> Material:
    """Return the material with the better answers that wait for a consolidation.

    Each takes the place of the thumb down on the same answer. Those whose answer was corrected since, or whose notes
    are not the standing ones any more, are taken in and not taught.
    """
    waiting = better_answers.waiting(s, user_id)[: config.curriculum.max_answers]
    told = signals.corrected(s, user_id, [row.completion_id for row in waiting])
    standing = {note.text for note in note_rows.live(s, user_id)}
    usable = [row for row in waiting if row.completion_id not in told and set(row.notes) == standing]
    taught = {row.completion_id: _signal(s, row, config.curriculum.weight) for row in usable}
    weak = [signal for signal in material.weak if signal.completion.id not in taught]
    return replace(material, weak=[*weak, *taught.values()], better_ids=[row.id for row in waiting])


def _signal(s: Session, row: BetterAnswer, weight: float) -> Signal:
    answer = completions.get(s, row.user_id, row.completion_id)
    return Signal(None, answer, Hindsight(solution=row.text), weight=weight)


def _evidence(answer: Completion, gold: str | None, disliked: set[str]) -> Evidence:
    return Evidence(
        answer.id,
        is_approved=answer.is_gold,
        is_disliked=answer.id in disliked,
        is_sound=is_sound(answer.text),
        preserved=None if gold is None else preserved_share(gold, answer.text),
    )


def _asked(answer: Completion) -> str:
    return answer.messages[-1]["content"] if answer.messages else ""


def _is_whole(answer: Completion, config: EngineConfig) -> bool:
    num_tokens = len(answer.prompt_token_ids) + len(answer.completion_token_ids)
    return bool(answer.completion_token_ids) and num_tokens <= config.gate.max_watched_tokens
