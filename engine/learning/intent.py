"""The intent of a correction: how far it reaches, found out before anything is taught.

Two legs decide. The probe (`engine.reading`) reads the words; and the feedback is tried on other prompts: a standing
wish moves the teacher there, too, more than a placebo of the same length does. Where the probe is unsure, a wish that
the second leg confirms is one; without a probe the second leg decides alone, and about an agent's work, of which the
probe has read nothing, it decides all but sure wishes. Invariants: the person's own choice overrides both; what is
unsure reaches no other prompt; every reading is stored beside that choice.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from engine.adapter_ref import ZERO_ADAPTER, AdapterRef
from engine.prompts.hindsight import Hindsight
from engine.prompts.tool_messages import carried
from engine.reading.probe import ReactionReading
from engine.requests import ChatMessage
from engine.samples import lessons
from engine.samples.context import LearningContext
from engine.samples.lessons import Lesson
from engine.samples.notes import placebo
from engine.samples.rollouts import Rollout
from storage.kinds import Meaning, Scope
from storage.learning import feedback
from storage.tables import Completion

NUM_OTHERS = 4  # other prompts that feedback is tried on
NUM_SHOWN = 3  # of them on which the wish is then shown by the teacher
NUM_STEPS = 4  # of the session, before the denied call
NUM_TASKS = 12  # begun tasks that feedback about an agent's work is tried on: most wishes concern few of them
NUM_WIDE = 36  # the same for the whole of a lesson, which nobody waits for
NUM_SHOWN_WIDE = 8  # of them, and of the steps, on which the wish is then shown
NUM_COMPARED = 3  # of them, those moved most, on which a placebo is tried, too: any words move some
QUIET = (Meaning.THANKS, Meaning.NOTHING)  # asks for no change
LASTING = (Meaning.WISH, Meaning.FACT)  # stays in mind from now on, as a note at least
_CERTAIN = 0.9  # probability of either of two such meanings from which it does not matter which
_PLACEBO_FACTOR = 2.0  # times what a placebo moves: less is what any words do
_TASK_SHARE = 0.25  # of the move on the denied call that another task must show

REASONS = {
    Meaning.FACT: "Noted. I keep this in mind for when it is asked about.",
    Meaning.THANKS: "Thank you. I keep this answer as a good one.",
    Meaning.NOTHING: "I took this for a remark in passing and changed nothing.",
}


@dataclass(frozen=True)
class Intent:
    """The meaning a correction is taken for. A rewritten answer has no words to read: `was_read` is False."""

    meaning: Meaning
    margin: float | None = None
    is_unsure: bool = False
    was_read: bool = True
    has_note: bool = True  # a wish that is one: a rewritten answer is taught on other prompts with or without
    shown: tuple[list[ChatMessage], ...] = ()  # begun tasks on which a wish about work shows most

    @property
    def reaches_others(self) -> bool:
        """True if it is taught on other prompts, too."""
        return self.meaning == Meaning.WISH

    @property
    def spares_others(self) -> bool:
        """True if the words, or the person, say that it is about one answer; what moves other prompts says it less."""
        is_guess = self.is_unsure and self.margin is None
        return self.meaning == Meaning.REMARK and not is_guess

    @property
    def is_taught(self) -> bool:
        """True if an update is run for it."""
        return self.meaning in (Meaning.WISH, Meaning.REMARK)


Tried = tuple[bool, tuple[list[ChatMessage], ...]]  # a wish or not, and where it shows


class IntentReader:
    """Reads the corrections that are about to be taught."""

    def __init__(self, context: LearningContext) -> None:
        self._config = context.config
        self._database = context.database
        self._trainer = context.trainer
        self._prompts = context.prompts
        self._rollouts = context.rollouts
        self._reader = context.reader

    async def read(
        self, lesson: Lesson, parent: AdapterRef, notes: Sequence[str], recent: Sequence[Completion]
    ) -> Intent:
        """Return what a lesson is taken for, and store it with its feedback. `recent` are answers to its person."""
        reading = await self._reader.read(lesson.hindsight.feedback)
        intent = _told(lesson, reading)
        if intent is None or (intent.is_unsure and intent.meaning == Meaning.WISH):
            is_standing, shown = await self._tried_elsewhere(lesson, parent, notes, recent)
            intent = replace(_tried(lesson, intent, is_standing=is_standing), shown=shown)
        if intent.was_read:
            label = reading.label if reading is not None else intent.meaning
            await self._database.write(
                lambda s: feedback.note_reading(s, lesson.feedback_id, label, intent.margin, is_unsure=intent.is_unsure)
            )
        return chosen(intent, lesson.scope)

    async def widened(
        self, intent: Intent, lesson: Lesson, notes: Sequence[str], recent: Sequence[Completion]
    ) -> Intent:
        """Return the intent of a lesson about work with more of the tasks on which it shows, by trying more of them."""
        _, shown = await self._tried_at_work(lesson, notes, recent, NUM_WIDE)
        more = [task for task in shown if task not in intent.shown]
        return replace(intent, shown=(*intent.shown, *more)[:NUM_SHOWN_WIDE])

    async def _tried_elsewhere(
        self, lesson: Lesson, parent: AdapterRef, notes: Sequence[str], recent: Sequence[Completion]
    ) -> Tried:
        """Return True if the feedback alone moves the teacher on other prompts, too, and more than a placebo does."""
        if carried(lesson.corrected.messages):
            is_there, shown = await self._tried_at_work(lesson, notes, recent, NUM_TASKS)
            return is_there, shown[:NUM_SHOWN]
        others = await self._rollouts.take(parent, recent, NUM_OTHERS, without=lesson.corrected.messages)
        words, nothing = self._compared(lesson)
        moved, placebo = [await self._moves(said, notes, others) for said in (words, nothing)]
        floor = self._config.learn.min_divergence
        return is_standing([*moved.values()], [*placebo.values()], self._config.note.standing_share, floor), ()

    async def _tried_at_work(
        self, lesson: Lesson, notes: Sequence[str], recent: Sequence[Completion], num_tasks: int
    ) -> Tried:
        """Return True if the feedback moves the teacher on some other task as on its own, and where it does most.

        A wish about work shows only where the step it is about comes next: at the denied call, or at a step that led
        to it. The tasks are answered by the base model, once for all lessons.
        """
        words, nothing = self._compared(lesson)
        steps = steps_before(lesson, recent)
        drawn = await self._rollouts.take(ZERO_ADAPTER, [], num_tasks, without=lesson.corrected.messages)
        places = [lesson.corrected, *steps, *drawn]
        moved = await self._moves(words, notes, places[1:])
        order = sorted((n for n in moved if n), key=lambda n: -moved[n])
        calls = [0, *[n for n in order if n <= len(steps) and moved[n] > moved[0]][:1]]
        most_moved = [n for n in order if n > len(steps)][: num_tasks // NUM_TASKS * NUM_COMPARED]
        if not most_moved:
            return False, ()
        tried = [*calls, *most_moved]
        found = await self._moves(nothing, notes, [places[n] for n in tried[1:]])
        beside = {tried[k]: value for k, value in found.items()}
        floor, call = self._config.learn.min_divergence, max(moved[n] for n in calls)
        of_call = max((beside[n] for n in calls if n in beside), default=0.0)
        sides = [((call, moved[n]), (of_call, beside[n])) for n in most_moved if n in beside]
        is_there = any(is_standing_at_work(of_words, of_nothing, floor) for of_words, of_nothing in sides)
        needed = {n: max(floor, _TASK_SHARE * call, _PLACEBO_FACTOR * beside.get(n, 0.0)) for n in order}
        return is_there, tuple(places[n].messages for n in order if moved[n] >= needed[n])

    def _compared(self, lesson: Lesson) -> tuple[Lesson, Lesson]:
        """Return a lesson in the words that all prompts are told, and one that says nothing at the same length."""
        words = lesson.as_elsewhere()
        return words, replace(words, hindsight=self._placebo(words.hindsight))

    async def _moves(self, lesson: Lesson, notes: Sequence[str], others: Sequence[Rollout]) -> dict[int, float]:
        """Return how far the lesson's words move the teacher, by number: the corrected prompt is 0, others follow it.

        What does not fit is left out; without the corrected prompt there is nothing.
        """
        return await self._trainer.divergences(lessons.moves(lesson, notes, others, self._prompts), ZERO_ADAPTER)

    def _placebo(self, hindsight: Hindsight) -> Hindsight:
        """Return hindsight of the same form and about the same length that asks for nothing."""
        words = hindsight.solution or hindsight.feedback
        text = placebo(words, self._prompts)
        return replace(hindsight, solution=text) if hindsight.solution else replace(hindsight, feedback=text)


def steps_before(lesson: Lesson, recent: Sequence[Completion]) -> list[Rollout]:
    """Return the newest steps of the session that led to the denied call."""
    now = lesson.completion.messages
    led = [row for row in recent if len(row.messages) < len(now) and row.messages == now[: len(row.messages)]]
    return [Rollout.of(row) for row in led[:NUM_STEPS]]


def of_words(reading: ReactionReading) -> Intent:
    """Return the intent that the words alone tell.

    Thanks and small talk need no telling apart to be left alone, nor do a wish and a fact to be kept in mind.
    """
    alike = QUIET if reading.label in QUIET else LASTING if reading.label in LASTING else ()
    is_certain = sum(reading.probabilities[meaning] for meaning in alike) >= _CERTAIN
    return Intent(reading.label, reading.margin, is_unsure=not (reading.is_sure or is_certain))


def _told(lesson: Lesson, reading: ReactionReading | None) -> Intent | None:
    """Return the intent that the words tell, None without a probe. About an agent's work they tell a wish at most."""
    intent = of_words(reading) if reading is not None else None
    if intent is None or intent.meaning == Meaning.WISH:
        return intent
    if carried(lesson.corrected.messages):
        return None
    return replace(intent, meaning=Meaning.REMARK) if intent.is_unsure else intent


def _tried(lesson: Lesson, told: Intent | None, *, is_standing: bool) -> Intent:
    """Return the intent that other prompts tell: a wish if the feedback moves the teacher there, too."""
    if not lesson.hindsight.feedback:
        return Intent(Meaning.WISH, was_read=False, has_note=is_standing)
    meaning, margin = Meaning.WISH if is_standing else Meaning.REMARK, told.margin if told else None
    return Intent(meaning, margin, is_unsure=not is_standing)


def chosen(intent: Intent, scope: str) -> Intent:
    """Return the intent with the person's own choice in its place, if they made one."""
    if not scope:
        return intent
    meaning = Meaning.WISH if scope == Scope.ALWAYS else Meaning.REMARK
    return replace(intent, meaning=meaning, is_unsure=False, has_note=True)


def is_standing(moved: Sequence[float], placebo: Sequence[float], share: float, floor: float) -> bool:
    """Return True if feedback is about more than one answer: it moves the teacher on other prompts, too.

    `moved` and `placebo` are in nats per token, the corrected prompt first. On the others feedback must move at least
    `share` of what it moves on the corrected one, more than a placebo by a factor, and more than `floor`.
    """
    if not moved:  # the conversation does not fit: there is nothing to compare with
        return False
    first, *others = moved
    if not others:
        return first > floor
    beside = placebo[1:]
    needed = max(share * first, _PLACEBO_FACTOR * sum(beside) / len(beside), floor)
    return sum(others) / len(others) >= needed


def is_standing_at_work(moved: Sequence[float], placebo: Sequence[float], floor: float) -> bool:
    """Return True if feedback about an agent's call is about other tasks, too.

    `moved` and `placebo` are in nats per token, on the denied call and on another task. Both must be moved more than by
    a placebo and than `floor`, the other one at least a quarter as much as the denied call.
    """
    own, other = moved
    needed = [max(floor, _PLACEBO_FACTOR * beside) for beside in placebo]
    return own >= needed[0] and other >= max(needed[-1], _TASK_SHARE * own)
