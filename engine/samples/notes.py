"""Standing notes: when a note leaves the prompt, when it comes back, when a newer one has replaced it.

Owns the probe. For a note n among the live notes N, over fresh rollouts y of the person's adapter (made without any
note in the prompt), with the base model p as judge:

    gain_n(y)  = log p(y | N) - log p(y | N without n)        the log-likelihood ratio, in nats per answer
    effect_n   = mean_t KL( p(. | N) || p(. | N without n) )  what the note still changes, beside the others
    alone_n    = mean_t KL( p(. | n) || p(. | nothing) )      what it would change by itself

The adapter holds n when its answers are likelier with n than without it; where n is inert beside newer notes though it
would move the model alone, a newer note has replaced it. A note that moves nothing (a fact, on these questions) proves
nothing either way and stays where it is, until it has questions of its own (`engine.samples.facts`): then y are answers
to those. Invariant: a probe trains nothing and only changes notes' states.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from engine.config import NoteConfig
from engine.prompts.builder import PromptBuilder
from engine.prompts.hindsight import with_notes
from engine.sample import Sample, Score
from engine.samples.pairs import Views, pair
from engine.samples.rollouts import Rollout
from storage.kinds import NoteState
from storage.tables import Note

IN_PROMPT_STATES = (NoteState.IN_PROMPT, NoteState.LEARNING)


@dataclass(frozen=True)
class Probe:
    """The measurements of one note, one entry per rollout."""

    gains: list[float]  # nats per answer
    effects: list[float]  # nats per token
    alones: list[float]  # nats per token


def prompt_notes(notes: Sequence[Note], *, has_adapter: bool) -> list[Note]:
    """Return the notes that stand in the prompt: all of them, oldest first, until the weights hold every one.

    Some alone would read as everything that was ever wished, and would undo the others that the weights hold.
    Without an adapter no weights hold any.
    """
    is_held = has_adapter and not any(n.state in IN_PROMPT_STATES for n in notes)
    return [] if is_held else list(notes)


def showing(notes: Sequence[Note]) -> list[Note]:
    """Return all notes but facts (`engine.samples.facts`): those that show by themselves or are not examined yet."""
    return [note for note in notes if not note.questions]


def fitting(notes: Sequence[Note], config: NoteConfig, max_model_len: int) -> list[Note]:
    """Return the newest notes that fit, oldest first: a long list must not leave a person without answers."""
    room, kept = int(config.prompt_share * max_model_len), list[Note]()
    for note in reversed(notes):
        if note.num_tokens <= room and len(kept) < config.max_notes:
            room -= note.num_tokens
            kept.insert(0, note)
    return kept


def said(notes: Sequence[Note], config: NoteConfig, max_model_len: int) -> list[str]:
    """Return the words of the notes that fit."""
    return [note.text for note in fitting(notes, config, max_model_len)]


def probe_samples(note: Note, notes: Sequence[Note], rollout: Rollout, prompts: PromptBuilder) -> list[Sample]:
    """Return two pairs of contexts for the trainer's score: (N without n, N) and (nothing, n)."""
    texts = [n.text for n in notes]
    without = [n.text for n in notes if n.id != note.id]
    return [
        _pair(rollout, without, texts, prompts),
        _pair(rollout, [], [note.text], prompts),
    ]


def _pair(rollout: Rollout, first: list[str], second: list[str], prompts: PromptBuilder) -> Sample:
    views = Views(with_notes(rollout.messages, first), with_notes(rollout.messages, second))
    return pair("counterfactual", rollout, views, prompts)


def probe_of(scores: Sequence[Sequence[Score]]) -> Probe:
    """Return the probe from the trainer's scores of `probe_samples`, one pair per rollout."""
    return Probe(
        gains=[beside.gain for beside, _ in scores],
        effects=[beside.divergence for beside, _ in scores],
        alones=[alone.divergence for _, alone in scores],
    )


def held_share(probe: Probe, config: NoteConfig) -> float | None:
    """Return sum_y max(0, g(y)) / sum_y |g(y)|, g = gain_n(y) cut at +-max_gain, over rollouts on which the note shows.

    None when it shows on none. Not a count: where teacher and student are of two minds the ratio is small either way.
    """
    shown = [max(-config.max_gain, min(config.max_gain, g)) for g in probe.gains if abs(g) >= config.min_gain]
    return sum(g for g in shown if g > 0) / sum(map(abs, shown)) if shown else None


def is_superseded(probe: Probe, config: NoteConfig) -> bool:
    """Return True if the note would move the model alone, and no longer does beside the newer ones."""
    return max(probe.effects) < config.inert_effect and max(probe.alones) >= config.moving_effect


def next_state(note: Note, probe: Probe, config: NoteConfig, *, is_newest: bool) -> NoteState:
    """Return the state of the note after its probe."""
    if not is_newest and is_superseded(probe, config):
        return NoteState.SUPERSEDED
    share = held_share(probe, config)
    if share is None:
        return NoteState.IN_PROMPT if note.state == NoteState.LEARNING else NoteState(note.state)
    return NoteState.IN_WEIGHTS if share >= config.held_share else NoteState.IN_PROMPT
