"""Standing notes: when a note leaves the prompt, when it comes back, when a newer one has replaced it.

Owns the probe. A note n among the notes N that the teacher reads is judged on the adapter's greedy answers to a few
prompts: y with the notes left out that may leave, y' with all of N in view. With the adapter a, the base model p as
judge, S the notes that stay, and a placebo o of n's length that says nothing:

    moved_n   = mean_t KL( a(. | S + n) || a(. | S) )         what the note still changes with the adapter active
    placebo_n = mean_t KL( a(. | S + o) || a(. | S) )         what any words change; and the same for p and N
    gain_n(y) = log p(y | N) - log p(y | N without n)         the log-likelihood ratio, in nats per answer
    effect_n  = mean_t KL( p(. | N) || p(. | N without n) )   what the note changes, beside the others
    alone_n   = mean_t KL( p(. | n) || p(. | nothing) )       what it would change by itself

The weights hold n when it moves the adapter hardly more than a placebo does, and when y shows it as y' does: with the
gain of each answer capped, so that no single one decides, and with whole gains, since an answer that follows n only at
its beginning has won some nats, too, and in a long one that is little of what n does. Where n is
no more than a placebo beside newer notes though it would move the model alone, a newer note has replaced it. A note
that y' does not show (a fact, on these prompts) proves nothing either way and stays where it is, until it has questions
of its own (`engine.samples.facts`): then the prompts are those.

A fact that stays in the prompt can wait until a question concerns it: a small model reads few facts at once, of twenty
in its prompt it tells one in answer to every question. One that was told in passing, as a word about an answer, waits
from the beginning (ADR 34). A fact concerns a question that shares a word with it, one that hardly another note of the
person has and that is not in every other question. Invariants: a probe trains nothing and only changes notes' states;
every note that does not wait is always shown.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from statistics import fmean

from engine.config import NoteConfig, Teacher
from engine.gates.texts import apart
from engine.prompts.bank import shipped_bank
from engine.prompts.builder import PromptBuilder
from engine.prompts.hindsight import with_notes
from engine.requests import ChatMessage
from engine.sample import Sample, Score
from engine.samples import pairs
from engine.samples.pairs import Views
from engine.samples.questions import unshared
from engine.samples.rollouts import Rollout
from storage.kinds import NoteState
from storage.tables import Note

_PLACEBO = "ok, go on "  # asks for nothing
_NUM_TURNS = 2  # of the person, the newest: "and what is he called?" goes on with the one before
_EVERYDAY = 4  # topics of the shipped bank with a word that tells nothing
_MIN_LETTERS = 3  # of a word that says something, but in scripts without blanks, where each letter is looked at


@dataclass(frozen=True)
class NoteView:
    """The notes around one that is probed, oldest first."""

    note: Note
    taught: Sequence[Note]  # N: those that the teacher reads, this one among them
    staying: Sequence[Note]  # S: those in the prompt without it

    @property
    def may_be_replaced(self) -> bool:
        """True if it is a wish and a newer note is among those that the teacher reads."""
        return not self.note.questions and self.taught[-1].id != self.note.id


@dataclass(frozen=True)
class GreedyPair:
    """The adapter's greedy answers to one prompt, as token ids."""

    messages: list[ChatMessage]
    without: list[int]  # y: the notes that may leave left out
    beside: list[int]  # y': all notes in view


@dataclass(frozen=True)
class NoteEffect:
    """The measurements of one note on one prompt; gains in nats per answer, all else in nats per token."""

    moved: float
    placebo_moved: float
    gain: float  # of the answer without the note
    gain_beside: float  # of the answer with it
    effect: float
    placebo_effect: float
    placebo_gain: float
    alone: float  # 0 for a note that no newer one can have replaced
    says_as_much: bool = True  # the answer without the note has every word of it that the one with it has (`carries`)


def prompt_notes(notes: Sequence[Note], *, has_adapter: bool) -> list[Note]:
    """Return the notes that stand in the prompt, oldest first: those that the weights do not hold.

    Until every note is probed all of them stand there: some alone would read as everything that was ever wished. A
    probe has read the answers with just those notes in the prompt that stay. Without an adapter no weights hold any.
    """
    is_probed = has_adapter and all(_is_probed(n) for n in notes)
    return [n for n in notes if n.state != NoteState.IN_WEIGHTS] if is_probed else list(notes)


def _is_probed(note: Note) -> bool:
    has_place = note.state in (NoteState.IN_WEIGHTS, NoteState.WHEN_ASKED)
    return has_place or (note.state == NoteState.IN_PROMPT and note.probe is not None)


def placebo(text: str, prompts: PromptBuilder) -> str:
    """Return words of about the same length that ask for nothing."""
    count = max(1, round(prompts.count(text) / prompts.count(_PLACEBO)))
    return (_PLACEBO * count).strip()


def showing(notes: Sequence[Note]) -> list[Note]:
    """Return all notes but facts (`engine.samples.facts`, or read as such): those that show by themselves."""
    return [note for note in notes if not note.questions and note.state != NoteState.WHEN_ASKED]


def shown(notes: Sequence[Note], live: Sequence[Note], messages: Sequence[ChatMessage]) -> list[Note]:
    """Return the notes without those that wait for a question and are not asked for. `live`: all that stand."""
    return [note for note in notes if note.state != NoteState.WHEN_ASKED or concerns(note, live, messages)]


def concerns(note: Note, live: Sequence[Note], messages: Sequence[ChatMessage]) -> bool:
    """Return True if the person's newest turns share one of the note's own words among the `live` ones."""
    return bool(_shared_words(note, live, messages))


def best_last(notes: Sequence[Note], live: Sequence[Note], messages: Sequence[ChatMessage]) -> list[Note]:
    """Return the notes that concern the newest turns, the closest last.

    One goes where another shares all the words that it shares, and more: "my favourite colour" is no question about
    the favourite food, and a small model answers it with what stands nearest.
    """
    shared = {note.id: _shared_words(note, live, messages) for note in notes}
    found = [
        note for note in notes if shared[note.id] and not any(shared[note.id] < words for words in shared.values())
    ]
    return sorted(found, key=lambda note: len(shared[note.id]))


def _shared_words(note: Note, live: Sequence[Note], messages: Sequence[ChatMessage]) -> set[str]:
    asked = [message["content"] for message in messages if message["role"] == "user"][-_NUM_TURNS:]
    return _own_words(note, live) & _telling_words(" ".join(asked))


def _own_words(note: Note, live: Sequence[Note]) -> set[str]:
    """Return the words of a note that fewer than two others have and no question is full of; all, if it has none."""
    others = [_telling_words(other.text) for other in live if other.id != note.id]
    words = _telling_words(note.text)
    return set(unshared(words - _everyday_words() or words, others))


@cache
def _everyday_words() -> frozenset[str]:
    """Return words that tell nothing of what is asked, such as "what" and "the": many shipped topics have them."""
    uses = Counter(word for topic in shipped_bank().topics for word in _telling_words(topic))
    return frozenset(word for word, number in uses.items() if number >= _EVERYDAY)


def _telling_words(text: str) -> set[str]:
    plain = text.casefold()
    words = re.findall(r"[^\W\d_]+", apart(plain))
    return {word for word in words if len(word) >= _MIN_LETTERS or apart(word) != word}


def num_tokens(text: str, count: Callable[[str], int]) -> int:
    """Return the tokens that a note takes in the prompt; `count` returns a text's tokens."""
    return count(f"- {text}\n")


def prompt_room(config: NoteConfig, max_model_len: int) -> int:
    """Return the tokens that the notes in one prompt may take together, and so the most that any one may take."""
    return int(config.prompt_share * max_model_len)


def fitting(notes: Sequence[Note], config: NoteConfig, max_model_len: int) -> list[Note]:
    """Return the newest notes that fit, oldest first: a long list must not leave a person without answers."""
    room, kept = prompt_room(config, max_model_len), list[Note]()
    for note in reversed(notes):
        if note.num_tokens <= room and len(kept) < config.max_notes:
            room -= note.num_tokens
            kept.insert(0, note)
    return kept


def emphasised(notes: Sequence[Note], config: NoteConfig, max_model_len: int) -> list[str]:
    """Return the words of the notes in an answer's prompt: facts that it calls up stand there once more, behind all.

    With a fact once the pocket model answers 97.4 % of the questions about it, with it twice all (LOG, "A fact, said
    twice"). Nothing is said again where that would push out another note.
    """
    called = [note for note in notes if note.state == NoteState.WHEN_ASKED]
    twice = said([*notes, *called], config, max_model_len)
    return twice if len(twice) == len(notes) + len(called) else [note.text for note in notes]


def said(notes: Sequence[Note], config: NoteConfig, max_model_len: int) -> list[str]:
    """Return the words of the notes that fit."""
    return [note.text for note in fitting(notes, config, max_model_len)]


def beside_sample(note: Note, live: Sequence[Note], rollout: Rollout, prompts: PromptBuilder) -> Sample:
    """Return the pair of contexts that shows what a note adds to the others on an answer."""
    without, beside, _ = _contexts(note, live, prompts)
    return _pair(rollout.messages, without, beside, rollout.response_token_ids, prompts)


def adapter_samples(view: NoteView, pair: GreedyPair, prompts: PromptBuilder) -> list[Sample]:
    """Return pairs for the trainer's score with the adapter on both sides: S against S and the note, or a placebo."""
    staying = {n.id for n in view.staying} | {view.note.id}
    around = [n for n in _in_order(view) if n.id in staying]
    without, beside, dummy = _contexts(view.note, around, prompts)
    return [_pair(pair.messages, without, seen, pair.without, prompts, "current") for seen in (beside, dummy)]


def base_samples(view: NoteView, pair: GreedyPair, prompts: PromptBuilder) -> list[Sample]:
    """Return pairs for the base model: the note beside the others, on both answers, and a placebo in its place.

    A fourth shows a note alone that a newer one may have replaced.
    """
    without, beside, dummy = _contexts(view.note, view.taught, prompts)
    found = [
        _pair(pair.messages, without, beside, pair.without, prompts),
        _pair(pair.messages, without, beside, pair.beside or pair.without, prompts),
        _pair(pair.messages, without, dummy, pair.beside or pair.without, prompts),
    ]
    alone = _pair(pair.messages, [], [view.note.text], pair.without, prompts)
    return [*found, alone] if view.may_be_replaced else found


def carries(note: str, question: str, without: str, beside: str) -> bool:
    """Return True if the answer `without` the note has all of its words that `beside` has and the question has not.

    "You live in Rex" is far likelier with the note "i live in Oslo" than without, and still wrong.
    """
    told = _words(note) - _words(question)
    return told & _words(beside) <= _words(without)


def effect_of(by_adapter: Sequence[Score], by_base: Sequence[Score], *, says_as_much: bool = True) -> NoteEffect:
    """Return the measurements from the scores of `adapter_samples` and `base_samples`."""
    (moved, dummy), (without, beside, placebo_beside, *alone) = by_adapter, by_base
    return NoteEffect(
        moved.divergence,
        dummy.divergence,
        without.gain,
        beside.gain,
        without.divergence,
        placebo_beside.divergence,
        placebo_beside.gain,
        alone[0].divergence if alone else 0.0,
        says_as_much,
    )


def held_share(effects: Sequence[NoteEffect], config: NoteConfig) -> float | None:
    """Return sum min(max(0, gain(y)), w) / sum w, w = min(gain(y'), max_gain), over prompts where y' shows the note.

    None when it shows on none. Not a count: where teacher and student are of two minds the gain is small either way.
    """
    return _share_of(_shown(effects, config), config.max_gain)


def shown_share(effects: Sequence[NoteEffect], config: NoteConfig) -> float | None:
    """Return the same with w = gain(y'): the share that y shows of everything that the note does to y'."""
    return _share_of(_shown(effects, config), math.inf)


def _share_of(shown: Sequence[NoteEffect], most: float) -> float | None:
    weights = [min(e.gain_beside, most) for e in shown]
    kept = [min(max(0.0, e.gain), w) for e, w in zip(shown, weights, strict=True)]
    return sum(kept) / sum(weights) if shown else None


def is_inert(effects: Sequence[NoteEffect], config: NoteConfig) -> bool:
    """Return True if the note moves the adapter hardly more than a placebo moves the adapter or the base model.

    Both, because an adapter that is sure of its answers ignores any words.
    """
    dummy = max(fmean(e.placebo_moved for e in effects), fmean(e.placebo_effect for e in effects))
    return fmean(e.moved for e in effects) <= max(config.placebo_factor * dummy, config.inert_effect)


def is_superseded(effects: Sequence[NoteEffect], config: NoteConfig) -> bool:
    """Return True if the note would move the model alone, and beside the newer ones is no more than a placebo."""
    effect, dummy = fmean(e.effect for e in effects), fmean(e.placebo_effect for e in effects)
    moves_alone = fmean(e.alone for e in effects) >= max(config.placebo_factor * dummy, config.moving_effect)
    return moves_alone and effect <= max(dummy, config.inert_effect)


def next_state(view: NoteView, effects: Sequence[NoteEffect], config: NoteConfig) -> NoteState:
    """Return the state of the note after its probe. A fact must be right in each answer, a wish in most of each."""
    note = view.note
    if view.may_be_replaced and is_superseded(effects, config):
        return NoteState.SUPERSEDED
    share, whole = held_share(effects, config), shown_share(effects, config)
    if share is None or whole is None:
        return NoteState.IN_PROMPT if note.state == NoteState.LEARNING else NoteState(note.state)
    lasts = min(share, whole) >= config.held_share and (not note.questions or _is_always_right(effects, config))
    return NoteState.IN_WEIGHTS if lasts and is_inert(effects, config) else NoteState.IN_PROMPT


def _is_always_right(effects: Sequence[NoteEffect], config: NoteConfig) -> bool:
    follows = (e.gain >= 0.5 * min(e.gain_beside, config.max_gain) for e in _shown(effects, config))
    return all(e.says_as_much for e in effects) and all(follows)


def _shown(effects: Sequence[NoteEffect], config: NoteConfig) -> list[NoteEffect]:
    """Return the prompts on which the answer with the note in view shows it, more than it would show a placebo."""
    return [e for e in effects if e.gain_beside >= max(config.min_gain, config.placebo_factor * abs(e.placebo_gain))]


def _words(text: str) -> set[str]:
    """Return the words of a text, and each letter of scripts that put no blanks between words."""
    return set(re.findall(r"\w+", apart(text.casefold())))


def _in_order(view: NoteView) -> list[Note]:
    """Return every note of a view once, oldest first."""
    found = {n.id: n for n in (*view.staying, *view.taught)}
    return sorted(found.values(), key=lambda n: n.seq or 0)


def _contexts(note: Note, around: Sequence[Note], prompts: PromptBuilder) -> tuple[list[str], list[str], list[str]]:
    """Return the words of notes without one of them, with it, and with a placebo in its place."""
    without = [n.text for n in around if n.id != note.id]
    dummy = placebo(note.text, prompts)
    return without, [n.text for n in around], [dummy if n.id == note.id else n.text for n in around]


def _pair(
    messages: list[ChatMessage],
    first: list[str],
    second: list[str],
    response: list[int],
    prompts: PromptBuilder,
    teacher: Teacher | None = None,
) -> Sample:
    views = Views(with_notes(messages, first), with_notes(messages, second))
    return replace(pairs.pair("counterfactual", Rollout(messages, [], response, []), views, prompts), teacher=teacher)
