"""Facts: standing notes that show only in answers to questions about them, and how they get into the weights.

Owns which notes are facts, and their samples. For a note that was read as a fact, or moves no answer by itself, the
base model writes questions and answers them with and without the note; those on which the note makes a difference are
kept (`engine.samples.questions`). In a consolidation the teacher answers them with the note in view, beside the notes
that show by themselves, and the student learns to answer so without. Invariants: a fact is taught on its own questions
only, and not on every third of them, which only its probe asks; the questions of a note are kept with it, so that each
note is examined once.
"""

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from engine.adapter_ref import ZERO_ADAPTER, AdapterRef
from engine.config import NoteConfig
from engine.prompts.hindsight import with_facts, with_notes
from engine.requests import ChatMessage
from engine.sample import Sample
from engine.samples import lessons, questions
from engine.samples.context import LearningContext
from engine.samples.notes import placebo
from engine.samples.pairs import usable
from engine.samples.questions import NoteQuestion
from engine.samples.rollouts import Rollout
from storage.database import Session
from storage.kinds import NoteState
from storage.learning import notes as note_rows
from storage.tables import Note

_NUM_TOPICS = 8  # of the bank, on which a note shows by itself or does not
View = Callable[[list[ChatMessage], str], list[ChatMessage]]  # of a conversation with a note


@dataclass(frozen=True)
class Examined:
    """The result of examining notes: questions by note id, and the notes whose questions a newer one answers.

    Those that are `waiting` were read as facts and have no questions: they show beside what is asked about them.
    """

    questions: dict[str, list[str]]
    replaced: set[str]
    waiting: set[str]

    def keep(self, s: Session) -> None:
        """Store the questions and mark replaced notes as superseded."""
        for note_id, texts in self.questions.items():
            note_rows.set_questions(s, note_id, texts)
        for note_ids, state in ((self.replaced, NoteState.SUPERSEDED), (self.waiting, NoteState.WHEN_ASKED)):
            for note_id in note_ids:
                note_rows.set_state(s, note_id, state)


@dataclass(frozen=True)
class NoteGap:
    """The divergence that a note alone makes in an answer, and that of a placebo, in nats per token."""

    note: float
    placebo: float


class Facts:
    """Finds the facts among a person's notes and makes their samples."""

    def __init__(self, context: LearningContext) -> None:
        self._config = context.config
        self._trainer = context.trainer
        self._prompts = context.prompts
        self._rollouts = context.rollouts
        self._bank = context.bank

    async def examine(self, live: Sequence[Note], facts: Collection[str] = ()) -> "Examined":
        """Examine every standing note that has not been examined yet; return the questions to keep.

        `facts` are the ids of notes that were surely read as facts. Whether they show in other answers is not asked:
        beside some of them a small model says them in answer to everything.
        """
        new = {place for place, note in enumerate(live) if note.questions is None}
        told = {place for place in new if live[place].id in facts}
        found = [NoteQuestion(p, text, math.inf) for p, note in enumerate(live) for text in note.questions or ()]
        topics = await self._rollouts.prepare(ZERO_ADAPTER, [], _NUM_TOPICS) if new - told else []
        for place in new:
            if place in told or not await self._shows(live[place], topics):
                found += await self._asked(place, live)
        kept = questions.chosen(found, self._config.fact)
        replaced = {q.note for q in found if q.gap >= self._config.fact.min_gap and q.note not in kept}
        return Examined(
            questions={live[p].id: kept.get(p, []) for p in new | {q.note for q in found}},
            replaced={live[place].id for place in replaced},
            waiting={live[place].id for place in told - replaced if not kept.get(place)},
        )

    async def samples(
        self, parent: AdapterRef, live: Sequence[Note], standing: Sequence[str], limit: int
    ) -> list[Sample]:
        """Return at most `limit` of the facts' questions, answered by the teacher.

        `standing`: the notes that show without being asked about.
        """
        pairs = questions_in_turn(live, limit)
        conversations = [_conversation(text) for _, text in pairs]
        seen = self._with_their_facts(pairs, standing)
        ref = ZERO_ADAPTER if self._config.learn.teacher == "base" else parent
        answers = zip(conversations, seen, await self._answers(ref, seen), strict=True)
        return [lessons.teacher_sample(*answer, self._prompts) for answer in answers]

    def _with_their_facts(self, asked: Sequence[tuple[Note, str]], standing: Sequence[str]) -> list[list[ChatMessage]]:
        """Return questions as they are read beside the notes that show unasked and each its own."""
        return [self._beside(_conversation(text), note.text, standing) for note, text in asked]

    def _beside(self, question: list[ChatMessage], fact: str, standing: Sequence[str] = ()) -> list[ChatMessage]:
        """Return a question as it is read beside the notes that show unasked and a fact, as in an answer's prompt."""
        if self._config.learn.facts_in_message:
            return with_facts(question, [fact], standing)
        return with_notes(question, [*standing, fact])

    async def untold(self, live: Sequence[Note], num_told: int) -> list[Sample]:
        """Return questions about things that no note tells, as the base model answers them; none if there is no fact.

        They are worded as those about what was told (`num_told`), and there are more of them beside many of those:
        twenty facts make a habit of answering. They are no anchors: those must have different answers, or the gate on
        variety sees a collapse.
        """
        count = max(self._config.fact.num_untold, round(self._config.fact.untold_share * num_told))
        conversations = self._about_untold(live, questions.taught(self._bank.things), count)
        answers = zip(conversations, await self._answers(ZERO_ADAPTER, conversations), strict=True)
        samples = [lessons.teacher_sample(c, c, answer, self._prompts) for c, answer in answers]
        return [replace(sample, teacher="base") for sample in samples]

    async def made_up(self, ref: AdapterRef, live: Sequence[Note]) -> float | None:
        """Return the share of questions about untold things that a version answers with a word of what was told.

        Nothing trains on these things. Returns None if there is no fact, or nothing to ask.
        """
        asked = self._about_untold(live, questions.left_out(self._bank.things), self._config.fact.num_untold_asked)
        if not asked:
            return None
        texts = [note.text for note in live]
        own = [questions.own_words(note.text, [t for t in texts if t != note.text]) for note in live if note.questions]
        answers = [self._prompts.text(answer) for answer in await self._answers(ref, asked)]
        pairs = [(c[-1]["content"], answer) for c, answer in zip(asked, answers, strict=True)]
        return fmean(any(questions.tells(words, *pair) for words in own) for pair in pairs)

    async def told(self, ref: AdapterRef, live: Sequence[Note], standing: Sequence[str]) -> float | None:
        """Return the share of questions about facts that a version answers with a word of the note, which it reads.

        Of those that the base model answers so; None if there are none. `standing`: notes that show unasked.
        """
        asked = in_turn([(note, note.questions or []) for note in live], self._config.fact.num_told_asked)
        by_base = await self._telling(ZERO_ADAPTER, asked, live, standing)
        kept = [pair for pair, is_told in zip(asked, by_base, strict=True) if is_told]
        return fmean(await self._telling(ref, kept, live, standing)) if kept else None

    async def _telling(
        self, ref: AdapterRef, asked: Sequence[tuple[Note, str]], live: Sequence[Note], standing: Sequence[str]
    ) -> list[bool]:
        """Return for each question whether it is answered with a word of its note's own."""
        answers = await self._answers(ref, self._with_their_facts(asked, standing))
        own = {note.id: questions.own_words(note.text, _others(note, live)) for note in live}
        pairs = zip(asked, answers, strict=True)
        return [questions.tells(own[note.id], text, self._prompts.text(answer)) for (note, text), answer in pairs]

    def _about_untold(self, live: Sequence[Note], things: Sequence[str], count: int) -> list[list[ChatMessage]]:
        """Return questions about things that no note tells, worded as those about facts; none without a fact."""
        kept = [(note.text, note.questions) for note in live if note.questions]
        if not kept:
            return []
        frames = questions.in_use(self._bank.frames, kept)
        return [_conversation(text) for text in questions.untold(frames, things, [note.text for note in live], count)]

    async def _shows(self, note: Note, topics: Sequence[Rollout]) -> bool:
        """Return True if the note alone moves answers to more than one question that has nothing to do with it.

        A wish about style moves most; a name that was told now and then moves one by chance. Each move is held against
        that of a placebo: on a real model any system prompt moves every answer.
        """
        found = await self._gaps(note, [(r.messages, r.response_token_ids) for r in topics], _among_notes)
        return shows_unasked(found, self._config.note)

    async def _asked(self, place: int, live: Sequence[Note]) -> list[NoteQuestion]:
        """Return questions about the note at that place, each with the gap that the note makes in its answer."""
        note, others = live[place], _others(live[place], live)
        texts = [*await self._written(note), *questions.framed(note.text, self._bank.frames, others)]
        conversations = [_conversation(text) for text in dict.fromkeys(texts)]
        answers = await self._answers(ZERO_ADAPTER, [self._beside(c, note.text) for c in conversations])
        pairs = [(c, answer) for c, answer in zip(conversations, answers, strict=True) if answer]
        own = questions.own_words(note.text, others)
        telling = [
            (c, answer) for c, answer in pairs if questions.tells(own, c[-1]["content"], self._prompts.text(answer))
        ]
        gaps = zip(telling or pairs, await self._gaps(note, telling or pairs, self._beside), strict=True)
        bound = self._config.note.placebo_factor
        return [
            NoteQuestion(place, c[-1]["content"], gap.note) for (c, _), gap in gaps if gap.note >= bound * gap.placebo
        ]

    async def _written(self, note: Note) -> list[str]:
        """Return the questions that the base model writes about the note; none if it cannot write one."""
        wanted = [questions.request(note.text)] * self._config.fact.num_written
        answers = await self._rollouts.by_teacher(ZERO_ADAPTER, wanted)
        return [text for answer in answers if (text := questions.cleaned(self._prompts.text(answer)))]

    async def _gaps(
        self, note: Note, answers: Sequence[tuple[list[ChatMessage], list[int]]], view: View
    ) -> list[NoteGap]:
        """Return how far the note alone and a placebo alone move each answer, where `view` puts them."""
        found = []
        for messages, response_ids in answers:
            pairs = [
                lessons.teacher_sample(messages, view(messages, text), response_ids, self._prompts)
                for text in (note.text, placebo(note.text, self._prompts))
            ]
            if len(usable(pairs)) < len(pairs):  # longer than the trainer reads
                found.append(NoteGap(0.0, 0.0))
                continue
            by_note, by_placebo = await self._trainer.score_in_turn(pairs, ZERO_ADAPTER)
            found.append(NoteGap(by_note.divergence, by_placebo.divergence))
        return found

    async def _answers(self, ref: AdapterRef, conversations: Sequence[list[ChatMessage]]) -> list[list[int]]:
        return await self._rollouts.greedy_answers(ref, conversations, self._config.learn.max_rollout_tokens)


def shows_unasked(gaps: Sequence[NoteGap], config: NoteConfig) -> bool:
    """Return True if more than one answer is moved further than a placebo moves them on average, by a factor."""
    if not gaps:
        return False
    least = max(config.moving_effect, config.placebo_factor * fmean(gap.placebo for gap in gaps))
    return sum(gap.note >= least for gap in gaps) > 1


def questions_in_turn(live: Sequence[Note], limit: int) -> list[tuple[Note, str]]:
    """Return at most `limit` trained questions with their notes, in turns.

    Notes that the weights do not hold come first. Every third question of a note is left to its probe.
    """
    facts = sorted((note for note in live if note.questions), key=lambda note: note.state == NoteState.IN_WEIGHTS)
    return in_turn([(note, questions.taught(note.questions or [])) for note in facts], limit)


def in_turn(asked: Sequence[tuple[Note, Sequence[str]]], limit: int) -> list[tuple[Note, str]]:
    """Return at most `limit` questions with their notes: one of every note before the second of any."""
    longest = max((len(texts) for _, texts in asked), default=0)
    return [(note, text) for turn in range(longest) for note, texts in asked for text in texts[turn : turn + 1]][:limit]


def _among_notes(messages: list[ChatMessage], text: str) -> list[ChatMessage]:
    return with_notes(messages, [text])


def _others(note: Note, live: Sequence[Note]) -> list[str]:
    return [other.text for other in live if other is not note]


def _conversation(text: str) -> list[ChatMessage]:
    return [{"role": "user", "content": text}]
