"""Probes of standing notes, which decide for each note between prompt and weights.

Owns the probes that run behind every lesson (the measure is `engine.samples.notes`). Invariants: a probe trains
nothing; it may be cancelled at any time; a note that was undone meanwhile stays undone.
"""

from collections.abc import Sequence
from itertools import cycle, islice

from engine.adapter_ref import ZERO_ADAPTER, AdapterRef
from engine.learning.intent import NUM_OTHERS
from engine.samples import notes
from engine.samples.context import LearningContext
from engine.samples.rollouts import RECENT_ANSWERS, Rollout
from storage.conversations import completions
from storage.database import Session
from storage.kinds import NoteState
from storage.learning import notes as note_rows
from storage.tables import Completion, Note


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
        ref = await self._active.active(user_id)
        fresh = await self._rollouts.prepare(ref, await self._recent(user_id), self._num_ready)
        everything = await self._database.read(lambda s: note_rows.live(s, user_id))
        if ref.number:
            live = notes.fitting(notes.showing(everything), self._config.note, self._host.max_model_len)
            await self._probe_showing(live, fresh, ref)
            for fact in (note for note in everything if note.questions):
                await self._probe_fact(fact, live, ref)

    @property
    def _num_ready(self) -> int:
        """Rollouts for the probes and for the next lesson, which may leave one of them out."""
        return max(self._config.note.probe_rollouts, NUM_OTHERS + 1)

    async def _probe_showing(self, live: Sequence[Note], fresh: Sequence[Rollout], ref: AdapterRef) -> None:
        """Probe notes that show by themselves. A note that fails on a few answers is probed on more of them."""
        first = fresh[: self._config.note.probe_rollouts]
        failed = [note for note in live if not await self._probe(note, live, first, ref, is_last=False)]
        if failed:
            longest = self._config.note.long_probe_rollouts
            more = await self._rollouts.prepare(ref, await self._recent(failed[0].user_id), longest)
            for note in failed:
                await self._probe(note, live, more[:longest], ref, is_last=True)

    async def _probe_fact(self, fact: Note, live: Sequence[Note], ref: AdapterRef) -> None:
        """Probe a fact in the same two steps, on answers to every one of its own questions."""
        for count, is_last in (
            (self._config.note.probe_rollouts, False),
            (self._config.note.long_probe_rollouts, True),
        ):
            questions = fact.questions or []
            asked = await self._rollouts.answers_to(ref, list(islice(cycle(questions), max(count, len(questions)))))
            if await self._probe(fact, [*live, fact], asked, ref, is_last=is_last):
                return

    async def _probe(
        self, note: Note, live: Sequence[Note], rollouts: Sequence[Rollout], ref: AdapterRef, *, is_last: bool
    ) -> bool:
        """Move a note to where it belongs. Return False if it failed and has to be probed once more."""
        pairs = [notes.probe_samples(note, live, rollout, self._prompts) for rollout in rollouts]
        scores = [
            await self._trainer.score_in_turn(both, ZERO_ADAPTER)
            for both in pairs
            if all(sample.response_ids for sample in both)
        ]
        if not scores:
            return True
        probe = notes.probe_of(scores)
        state = notes.next_state(note, probe, self._config.note, is_newest=note.id == live[-1].id)
        share = notes.held_share(probe, self._config.note)
        if state == NoteState.IN_PROMPT and share is not None and not is_last:
            return False
        learned = ref.number if state == NoteState.IN_WEIGHTS else None
        await self._database.write(lambda s: _move(s, note, state, probe=share, learned_version=learned))
        return True

    async def _recent(self, user_id: str) -> list[Completion]:
        return await self._database.read(lambda s: completions.recent(s, user_id, RECENT_ANSWERS))


def _move(s: Session, note: Note, state: NoteState, *, probe: float | None, learned_version: int | None) -> None:
    """Move a probed note, unless it was undone while it was probed."""
    if note_rows.get(s, note.user_id, note.id).state in note_rows.LIVE:
        note_rows.set_state(s, note.id, state, probe=probe, learned_version=learned_version)
