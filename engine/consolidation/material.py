"""The material of a consolidation: new signals and earlier corrections of one person.

Owns the choice; trains nothing. A correction whose note stands is taught through the note: said again as the newest
feedback it would win over what was said since. Approvals bring no gradient: they count, and the gates use them.
A person's ordinary next messages are hindsight, too (after arXiv 2603.12273, which trains on every next message; here
it takes more): the message after an answer, shown to the teacher of that answer, if the person allows it
(`storage.people.consent`) and no one said anything about the answer; one that moves the teacher less than
`follow_up_gap` trains nothing and is looked at once.
Invariants: only this person's own signals; a lesson that a newer one has replaced is not rehearsed; a signal that finds
no place is not taken in and stays new.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from engine.config import ConsolidationConfig, EngineConfig
from engine.gates.texts import can_tell_names, entities
from engine.prompts.builder import PromptBuilder
from engine.prompts.hindsight import Hindsight, teacher_messages
from engine.sample import Sample
from engine.samples.lessons import Lesson
from engine.samples.pairs import Views, pair
from engine.samples.rollouts import Rollout
from engine.samples.spacing import mix, spread
from storage.conversations import completions
from storage.database import Session
from storage.errors import CompletionNotFound
from storage.kinds import TAUGHT_AT_ONCE, FeedbackKind, FeedbackStatus
from storage.learning import notes as note_rows
from storage.learning import signals
from storage.people import consent
from storage.tables import Completion, Feedback

DISLIKED = "I did not like this answer"  # what a thumb down says


@dataclass(frozen=True)
class Signal:
    """A teachable fact about one answer; `feedback_id` None: the answer was dropped for another one."""

    feedback_id: str | None
    completion: Completion
    hindsight: Hindsight
    note: str = ""  # the standing note it is taught through
    weight: float | None = None  # in shares of a correction's; None: by how far it moves the teacher
    most: float | None = None  # share of a correction's weight if that decides; None: sleep.weak_weight
    least: float | None = None  # nats per token that it must move the teacher; None: sleep.min_gap

    def said(self, notes: Sequence[str]) -> list[str]:
        """Return the notes its teacher sees: its own comes first, as the oldest, if it was left out of too many."""
        return list(notes) if not self.note or self.note in notes else [self.note, *notes]

    @property
    def rollout(self) -> Rollout:
        """The answer as it was given."""
        return Rollout.of(self.completion)


@dataclass(frozen=True)
class Material:
    """The signals that one consolidation takes in and trains on."""

    new: list[Signal]
    earlier: list[Signal]
    weak: list[Signal]
    feedback_ids: list[str]  # taken in: those of `new` and `weak`, and what brings no gradient
    completion_ids: list[str]
    kept_ids: list[str]  # answers that took the place of dropped ones: gold from now on
    better_ids: list[str] = field(
        default_factory=list
    )  # better answers taken in (`engine.consolidation.better_answers`)

    @property
    def num_new(self) -> int:
        """Signals taken in, whether they train anything or not."""
        return len(self.feedback_ids) + len(self.completion_ids)

    @property
    def is_anything_new(self) -> bool:
        """True if there is a signal or a better answer to take in."""
        return self.num_new > 0 or bool(self.better_ids)

    @property
    def lessons_only(self) -> "Material":
        """It with lessons that were learned, and nothing else; all other signals stay new."""
        learned = [signal.feedback_id for signal in self.new if signal.feedback_id is not None]
        return Material(self.new, self.earlier, weak=[], feedback_ids=learned, completion_ids=[], kept_ids=[])


def gather(s: Session, user_id: str, config: ConsolidationConfig) -> Material:
    """Read what is new about a person and finds a place, and earlier corrections beside it."""
    fresh = signals.fresh(s, user_id)
    lessons = [found for row in fresh if (found := _rehearsal(s, row))]
    known = [found for row in signals.rehearsed(s, user_id) if (found := _rehearsal(s, row))]
    new, earlier = mix(lessons, known, config.num_lessons, config.new_share)
    pairs = {gone.id: (gone, kept) for gone, kept in signals.regenerated(s, user_id) if gone.completion_token_ids}
    dropped = [Signal(None, gone, Hindsight(solution=kept.text)) for gone, kept in pairs.values()]
    disliked = [*_disliked(s, user_id, fresh), *dropped]
    weak = disliked[: config.max_weak]
    left = {signal.feedback_id for signal in [*lessons, *disliked]} - {signal.feedback_id for signal in [*new, *weak]}
    feedback_ids = [row.id for row in fresh if row.id not in left]
    completion_ids = [signal.completion.id for signal in weak if signal.feedback_id is None]
    kept_ids = sorted({pairs[completion_id][1].id for completion_id in completion_ids})
    return Material(new, earlier, weak, feedback_ids, completion_ids, kept_ids)


def with_follow_ups(s: Session, user_id: str, material: Material, config: ConsolidationConfig) -> Material:
    """Return the material with next messages, if the person allows it.

    Messages that find no place stay new; those about something else are taken in and not taught.
    """
    if not consent.allows_follow_ups(s, user_id):
        return material
    taught = {signal.completion.id for signal in (*material.new, *material.earlier, *material.weak)}
    found = [(answer, text) for answer, text in signals.followed(s, user_id) if answer.id not in taught]
    about = [pair for pair in found if is_about(*pair)]
    chosen = spread(about, config.max_follow_ups)
    placed = {answer.id for answer, _ in chosen}
    seen = [answer.id for answer, text in found if answer.id in placed or not is_about(answer, text)]
    weak = [
        Signal(None, a, Hindsight(text), most=config.follow_up_weight, least=config.follow_up_gap) for a, text in chosen
    ]
    return replace(material, weak=[*material.weak, *weak], completion_ids=[*material.completion_ids, *seen])


def is_about(answer: Completion, text: str) -> bool:
    """Return True if a next message can be about the answer. One with names or numbers of its own is a new question."""
    has_names = can_tell_names(answer.text) and can_tell_names(text)
    return entities(text, has_names=has_names) <= entities(answer.text, has_names=has_names)


def weight_of(gap: float, config: ConsolidationConfig, most: float | None = None, least: float | None = None) -> float:
    """Return w = most * min(1, gap / full_gap), 0 below `least`; gap in nats per token that the teacher was moved.

    `most` defaults to weak_weight and `least` to min_gap.
    """
    if not math.isfinite(gap) or gap < (config.min_gap if least is None else least):
        return 0.0
    return (config.weak_weight if most is None else most) * min(1.0, gap / config.full_gap)


def steps_of(num_samples: int, num_facts: int, config: EngineConfig) -> int:
    """Return the optimizer steps: `fact.passes` over the samples that ask for facts, `sleep.passes` over the others, in
    mini-batches; no fewer than a lesson's, and than `fact.min_steps` if there is a fact.
    """
    passes = config.sleep.passes * (num_samples - num_facts) + config.fact.passes * num_facts
    wanted = math.ceil(passes / config.learn.mini_batch_samples)
    return min(max(wanted, config.fact.min_steps if num_facts else config.learn.steps), config.sleep.max_steps)


def gaps(weak: Sequence[Signal], notes: Sequence[str], prompts: PromptBuilder) -> list[Sample]:
    """Return pairs that show what each weak signal changes in the teacher: (notes) against (notes and hindsight)."""
    plain = [teacher_messages(w.rollout.messages, notes, Hindsight()) for w in weak]
    told = [teacher_messages(w.rollout.messages, notes, w.hindsight) for w in weak]
    views = [Views(*both) for both in zip(plain, told, strict=True)]
    return [pair("counterfactual", w.rollout, seen, prompts) for w, seen in zip(weak, views, strict=True)]


def _rehearsal(s: Session, row: Feedback) -> Signal | None:
    """Return a learned correction as it holds today; None for other feedback, and if nothing is left to train on."""
    if row.status == FeedbackStatus.KEPT:  # a fact: its note asks its own questions (`engine.samples.facts`)
        return None
    answer = _answer(s, row) if row.kind in TAUGHT_AT_ONCE else None
    made = note_rows.by_feedback(s, row.user_id, row.id)
    if answer is None or any(note.state not in note_rows.LIVE for note in made):
        return None
    if made:
        return Signal(row.id, answer, Hindsight(), made[-1].text)
    return Signal(row.id, answer, Lesson.of(row, answer).hindsight)


def _disliked(s: Session, user_id: str, fresh: Sequence[Feedback]) -> list[Signal]:
    """Return the thumbs down on answers that were not corrected in words, one for each answer."""
    rows = [row for row in fresh if row.kind == FeedbackKind.REACTION]
    told = signals.corrected(s, user_id, [row.completion_id for row in rows if row.completion_id])
    first = {row.completion_id: row for row in reversed(rows) if row.completion_id not in told}
    answers = [(row, _answer(s, row)) for row in reversed(first.values())]
    return [Signal(row.id, answer, Hindsight(feedback=DISLIKED)) for row, answer in answers if answer is not None]


def _answer(s: Session, row: Feedback) -> Completion | None:
    """Return the answer that feedback is about, if there is one with anything in it."""
    if row.completion_id is None:
        return None
    try:
        found = completions.get(s, row.user_id, row.completion_id)
    except CompletionNotFound:
        return None
    return found if found.completion_token_ids else None
