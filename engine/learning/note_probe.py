"""Probes of standing notes, which decide for each note between prompt and weights.

Owns the probes that run behind every lesson (the measure is `engine.samples.notes`). All notes are taken out of the
prompt first; those that fail return to it, facts beside the questions that concern them (`engine.samples.notes`),
and the others are read again beside them, a bounded number of times. Invariants: a probe trains nothing; it may be
cancelled at any time, for all notes move in one transaction at its end; a note leaves the prompt only if the greedy
answers were read with just those notes in the prompt that stay there; facts that stay are always in view only if with
all of them as many questions are answered rightly as with those that concern each; a note that was undone meanwhile
stays undone.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from engine.adapter_ref import ZERO_ADAPTER, AdapterRef
from engine.learning.intent import NUM_OTHERS
from engine.prompts.hindsight import with_notes
from engine.prompts.tool_messages import carried
from engine.requests import ChatMessage
from engine.samples import notes
from engine.samples.context import LearningContext
from engine.samples.notes import GreedyPair, NoteView
from engine.samples.rollouts import RECENT_ANSWERS, Rollout, conversation
from storage.conversations import completions
from storage.database import Session
from storage.kinds import NoteState
from storage.learning import notes as note_rows
from storage.people import people
from storage.tables import Completion, Note

_ROUNDS = 3  # after which what has not passed beside the notes that stay goes back to them


@dataclass(frozen=True)
class Placement:
    """The place of a note after its probe, and the share of its effect that the weights hold."""

    state: NoteState
    share: float | None


@dataclass(frozen=True)
class _Standing:
    """The notes that stand in the prompt. Those that wait are seen beside the questions that concern them."""

    notes: Sequence[Note]  # oldest first
    waiting: Collection[str]  # note ids
    live: Sequence[Note]

    def beside(self, messages: Sequence[ChatMessage]) -> list[Note]:
        """Return the notes that a conversation is shown."""
        concerned = (n for n in self.notes if n.id not in self.waiting or notes.concerns(n, self.live, messages))
        return list(concerned)


@dataclass
class _Probing:
    """The state of the probes of one person's notes."""

    ref: AdapterRef
    everything: Sequence[Note]
    wishes: Sequence[Note]  # that the teacher reads
    prompts: Sequence[list[ChatMessage]]  # that wishes are probed on
    besides: dict[str, list[list[int]]] = field(default_factory=dict)  # greedy answers with the notes in view
    placed: dict[str, Placement] = field(default_factory=dict)  # by note id

    @property
    def leaving(self) -> list[Note]:
        """The notes that may still leave the prompt, oldest first."""
        probed = [*self.wishes, *(note for note in self.everything if note.questions)]
        return [note for note in probed if note.id not in self.placed]


class NoteProbe:
    """Probes the standing notes of one person after another."""

    def __init__(self, context: LearningContext) -> None:
        self._config = context.config
        self._database = context.database
        self._host = context.host
        self._trainer = context.trainer
        self._prompts = context.prompts
        self._rollouts = context.rollouts
        self._active = context.active

    async def settle(self, user_id: str) -> None:
        """Prepare the next update's rollouts and move each note to where it belongs. May be cancelled at any time."""
        version = await self._version(user_id)
        ref = await self._active.active(user_id)
        recent = await self._recent(user_id)
        fresh = await self._rollouts.prepare(ref, recent, self._num_ready)
        everything = await self._database.read(lambda s: note_rows.live(s, user_id))
        if not everything:
            return
        wishes = self._fitting(notes.showing(everything))
        probed = [*fresh[: self._config.note.probe_prompts], *await self._at_work(ref, recent)]
        probing = _Probing(ref, everything, wishes, [rollout.messages for rollout in probed])
        placed = await self._in_view(probing, await self._placed(probing) if ref.number else _unheld(everything))
        await self._database.write(lambda s: _move(s, everything, placed, version))

    async def _at_work(self, ref: AdapterRef, recent: Sequence[Completion]) -> list[Rollout]:
        """Return rollouts of an agent's work, if the person has had one at work: there other wishes show."""
        newest = next((like for answer in recent if carried(like := conversation(answer))), None)
        if newest is None:
            return []
        ready = await self._rollouts.prepare(ref, recent, self._num_ready, newest)
        return ready[: self._config.note.probe_prompts]

    @property
    def _num_ready(self) -> int:
        """Rollouts for the probes and for the next lesson, which may leave one of them out."""
        return max(self._config.note.probe_prompts, NUM_OTHERS + 1)

    async def _placed(self, probing: _Probing) -> dict[str, Placement]:
        """Return the place of each note that was probed: at most _ROUNDS probes of each."""
        for _ in range(_ROUNDS):
            leaving = probing.leaving
            found = await self._probed(probing, leaving)
            probing.placed |= {key: place for key, place in found.items() if place.state != NoteState.IN_WEIGHTS}
            if len(probing.leaving) == len(leaving):
                return probing.placed | found
        left = {note.id: Placement(NoteState.IN_PROMPT, found[note.id].share) for note in probing.leaving}
        return probing.placed | left

    async def _in_view(self, probing: _Probing, placed: dict[str, Placement]) -> dict[str, Placement]:
        """Return the places with the facts that stay waiting for their questions, if they answer more rightly so.

        A small model reads few facts at once: of twenty in its prompt it tells one in answer to every question.
        """
        facts = [note for note in probing.everything if note.id in placed and note.questions]
        staying = [note for note in facts if placed[note.id].state == NoteState.IN_PROMPT]
        if not staying:
            return placed
        waiting = [note.id for note in probing.everything if _waits(note) and note.id not in placed]
        always = _Standing([note for note in probing.everything if _stays(note, placed)], waiting, probing.everything)
        when_asked = replace(always, waiting=[*waiting, *(note.id for note in staying)])
        if await self._num_right(probing, facts, always) >= await self._num_right(probing, facts, when_asked):
            return placed
        return placed | {note.id: replace(placed[note.id], state=NoteState.WHEN_ASKED) for note in staying}

    async def _num_right(self, probing: _Probing, facts: Sequence[Note], standing: _Standing) -> int:
        """Return how many questions about facts are answered rightly, with these notes in the prompt."""
        right = 0
        for note in facts:
            pairs = await self._fact_pairs(probing, note, standing)
            right += sum(self._says_as_much(note, pair) for pair in pairs)
        return right

    async def _probed(self, probing: _Probing, leaving: Sequence[Note]) -> dict[str, Placement]:
        """Probe each of the notes, with only those in the prompt that stay there."""
        gone = {note.id for note in leaving} | {
            key for key, place in probing.placed.items() if place.state == NoteState.SUPERSEDED
        }
        staying = [note for note in probing.everything if note.id not in gone]
        waiting = [note.id for note in staying if note.questions or _waits(note)]
        standing = _Standing(staying, waiting, probing.everything)
        shared = await self._pairs(probing, "", probing.prompts, probing.wishes, standing)
        found = {}
        for note in leaving:
            pairs = await self._fact_pairs(probing, note, standing) if note.questions else shared
            taught = [*probing.wishes, note] if note.questions else probing.wishes
            found[note.id] = await self._probe(NoteView(note, taught, staying), standing, pairs, probing.ref)
        return found

    async def _fact_pairs(self, probing: _Probing, note: Note, standing: _Standing) -> list[GreedyPair]:
        asked: list[list[ChatMessage]] = [[{"role": "user", "content": text}] for text in note.questions or ()]
        return await self._pairs(probing, note.id, asked, [*probing.wishes, note], standing)

    async def _pairs(
        self,
        probing: _Probing,
        name: str,
        asked: Sequence[list[ChatMessage]],
        taught: Sequence[Note],
        standing: _Standing,
    ) -> list[GreedyPair]:
        """Answer prompts with the standing notes and with the taught ones; the latter once for all rounds."""
        if name not in probing.besides:
            probing.besides[name] = await self._greedy(probing.ref, [(messages, taught) for messages in asked])
        seen = [(messages, self._fitting(standing.beside(messages))) for messages in asked]
        answers = zip(asked, await self._greedy(probing.ref, seen), probing.besides[name], strict=True)
        return [GreedyPair(*answer) for answer in answers if answer[1]]

    async def _greedy(
        self, ref: AdapterRef, asked: Sequence[tuple[list[ChatMessage], Sequence[Note]]]
    ) -> list[list[int]]:
        seen = [with_notes(messages, [note.text for note in said]) for messages, said in asked]
        return await self._rollouts.greedy_answers(ref, seen, self._config.learn.max_rollout_tokens)

    async def _probe(
        self, around: NoteView, standing: _Standing, pairs: Sequence[GreedyPair], ref: AdapterRef
    ) -> Placement:
        effects = []
        for pair in pairs:
            view = replace(around, staying=self._fitting(standing.beside(pair.messages)))
            of_adapter = notes.adapter_samples(view, pair, self._prompts)
            of_base = notes.base_samples(view, pair, self._prompts)
            if not all(sample.response_ids for sample in (*of_adapter, *of_base)):
                continue  # longer than the trainer reads
            by_adapter = await self._trainer.score_in_turn(of_adapter, ref)
            by_base = await self._trainer.score_in_turn(of_base, ZERO_ADAPTER)
            effects.append(notes.effect_of(by_adapter, by_base, says_as_much=self._says_as_much(view.note, pair)))
        if not effects:
            return Placement(NoteState.IN_PROMPT, None)
        return Placement(
            notes.next_state(around, effects, self._config.note), notes.held_share(effects, self._config.note)
        )

    def _says_as_much(self, note: Note, pair: GreedyPair) -> bool:
        without, beside = self._prompts.text(pair.without), self._prompts.text(pair.beside)
        return notes.carries(note.text, pair.messages[-1]["content"], without, beside)

    def _fitting(self, live: Sequence[Note]) -> list[Note]:
        return notes.fitting(live, self._config.note, self._host.max_model_len)

    async def _version(self, user_id: str) -> int:
        return await self._database.read(lambda s: people.get(s, user_id).active_version)

    async def _recent(self, user_id: str) -> list[Completion]:
        return await self._database.read(lambda s: completions.recent(s, user_id, RECENT_ANSWERS))


def _unheld(everything: Sequence[Note]) -> dict[str, Placement]:
    """Return the places of facts under the base model, which holds none of them."""
    return {note.id: Placement(NoteState.IN_PROMPT, None) for note in everything if note.questions}


def _waits(note: Note) -> bool:
    return note.state == NoteState.WHEN_ASKED


def _stays(note: Note, placed: dict[str, Placement]) -> bool:
    return note.id not in placed or placed[note.id].state in (NoteState.IN_PROMPT, NoteState.WHEN_ASKED)


def _move(s: Session, probed: Sequence[Note], placed: dict[str, Placement], version: int) -> None:
    """Move probed notes, unless they or the version were undone meanwhile. A note that shows nowhere is not held."""
    if probed and people.get(s, probed[0].user_id).active_version != version:
        return  # what was read of one version says nothing about another
    for note in probed:
        place = placed.get(note.id)
        if place is None or note_rows.get(s, note.user_id, note.id).state not in note_rows.LIVE:
            continue
        is_held = place.state == NoteState.IN_WEIGHTS
        share = 0.0 if place.share is None and not is_held else place.share
        note_rows.set_state(s, note.id, place.state, probe=share, learned_version=version if is_held else None)
