"""The synthetic world: conversations the pocket model is trained on, and what is held out of them.

Owns the mix of what people say. A sample is a conversation whose assistant turns are targets; the last one may begin
in another style (`WorldTurn.begun`), which is read but not learned: so the model knows how to go on from an answer it would
not have begun, as a teacher must. Some conversations begin with a whole answer of that kind: a wish to be rid of it
follows, or nothing does, and the default is back. Held-out subjects are never taught: no note, feedback or hindsight
asks for a style of an answer about them. A system prompt may style them, so that their facts can be said in every
style. Held-out phrasings (`wishes`) and names never appear.
"""

import json
import random
import sys
from dataclasses import dataclass, field, replace

from engine.pocket.style import (
    DEFAULT,
    DIRECTIONS,
    PREFERENCES,
    Content,
    Direction,
    Factual,
    Plain,
    Style,
    Talk,
    render,
    slots,
    splice,
)
from engine.pocket.subjects import DOMAINS, SUBJECTS, Subject
from engine.pocket.talk import (
    NOT_TOLD,
    SKILLS,
    SMALL_TALK,
    UNKNOWN,
    WHO_ASKS,
    PersonalFact,
    exercise,
    personal_fact,
    unknown_ask,
    who,
)
from engine.pocket.wishes import HELD_OUT_NAMES, NAMES, apply, wish
from engine.prompts.hindsight import WORDINGS, Hindsight, solution_note, with_hindsight, with_notes

MAX_NOTES = 16
_HELD_OUT = [s for s in SUBJECTS if s.is_held_out]
_NOT_INVENTED = {*HELD_OUT_NAMES, *(s.name.capitalize() for s in _HELD_OUT)}
_TRAINED = [s for s in SUBJECTS if not s.is_held_out]
_SYSTEMS = ("You are a helpful assistant.", "You are heed, a chat bot.", "You are a chat bot.", "Answer the user.")
_PRACTISED = (*SKILLS, "add", "add", "repeat", "repeat")  # what is learned last is asked most
_ONSETS = ("", *"b br c ch d dr f fl g gr h j k kl l m n p pr r s st t tr v w z".split())
_CODAS = ("", "", "", "", *"s l n r k t d x th m st".split())
_PERSONAS = ("You are {n}.", "Your name is {n}.", "You are {n}, a helpful assistant.", "You are a chat bot called {n}.")


@dataclass(frozen=True)
class Mix:
    """How often conversations of each kind are drawn."""

    notes_share: float = 0.48
    many_notes_share: float = 0.4  # of conversations with notes: five or more
    apart_share: float = 0.5  # of conversations with notes: every note about another preference
    hindsight_share: float = 0.33
    invented_names_share: float = 0.5  # of names; the rest come from a list
    system_share: float = 0.36  # conversations whose system prompt wishes for a style
    held_out_share: float = 0.2  # of questions before any wish: about held-out subjects
    styled_held_out_share: float = 0.6  # the same under a system prompt that wishes
    turns: tuple[float, ...] = (0.58, 0.28, 0.10, 0.04)  # conversations of one, two, three, four exchanges
    drill_share: float = 0.12  # conversations of skills or facts alone
    restored_share: float = 0.16  # conversations that begin in another style, which the person wants no more
    undone_share: float = 0.05  # conversations that begin in a style nobody asks for, and go on in the default


START = Mix(many_notes_share=0.0, turns=(0.75, 0.25), drill_share=0.2)  # short, while the model learns to read
FULL = Mix()
# What shows in the fewest letters of an answer is asked for more often.
_WEIGHTS = dict.fromkeys(PREFERENCES, 1.0) | {"units": 2.5, "case": 1.5, "name": 1.8, "numbers": 1.3, "length": 1.2}


@dataclass
class WorldTurn:
    """One message. `begun` is the part of an assistant message that is read but not learned."""

    role: str
    content: str
    begun: str = ""


@dataclass
class WorldSample:
    """A conversation; what an assistant turn did not begin with is a target."""

    turns: list[WorldTurn] = field(default_factory=list)


@dataclass
class _Scene:
    """What holds while a conversation is written."""

    rng: random.Random
    mix: Mix = FULL
    style: Style = DEFAULT
    is_plain: bool = True  # no style was ever asked for: held-out subjects may appear
    persona: str = "heed"
    last: Content | None = None
    told: dict[str, PersonalFact] = field(default_factory=dict)
    previous: Style = DEFAULT  # the style before the last wish


def ask_text(subject: Subject, lead: int, rng: random.Random) -> str:
    """A question about a subject that wants the fact `lead` (0: general)."""
    domain = DOMAINS[subject.domain]
    asks = domain.about if lead == 0 and rng.random() < 0.8 else domain.facts[lead].asks
    text = rng.choice(asks).format(s=domain.article + subject.name)
    return _worn(text, rng)


def _worn(text: str, rng: random.Random) -> str:
    """A question as people type it: without capitals or punctuation, or with a word in front."""
    kind = rng.random()
    if kind < 0.2:
        text = text.lower()
    elif kind < 0.3:
        text = text.rstrip("?").lower()
    if rng.random() < 0.08:
        text = rng.choice(("hey, ", "please ", "so ", "ok, ", "hmm, ", "and ")) + text
    return text


def _subject(scene: _Scene) -> Subject:
    share = scene.mix.held_out_share if scene.style == DEFAULT else scene.mix.styled_held_out_share
    if scene.is_plain and scene.rng.random() < share:
        return scene.rng.choice(_HELD_OUT)
    return scene.rng.choice(SUBJECTS if scene.is_plain else _TRAINED)


def _question(scene: _Scene) -> tuple[str, Content]:
    subject = _subject(scene)
    lead = scene.rng.choice((0, 0, 1, 2, 3))
    return ask_text(subject, lead, scene.rng), Factual(subject, lead)


def _follow_up(scene: _Scene, last: Factual) -> tuple[str, Content]:
    lead = scene.rng.randrange(4)
    asks = DOMAINS[last.subject.domain].facts[lead].follow_ups
    text = scene.rng.choice(asks)
    return (text[:1].upper() + text[1:] if scene.rng.random() < 0.3 else text), Factual(last.subject, lead)


def _small_talk(scene: _Scene) -> tuple[str, Content]:
    rng = scene.rng
    if rng.random() < 0.2:
        return _worn(rng.choice(WHO_ASKS), rng), who(scene.persona)
    _, asks, answer = rng.choice(SMALL_TALK)
    text = rng.choice(asks)
    return (text[:1].upper() + text[1:] if rng.random() < 0.5 else text), answer


def _personal(scene: _Scene) -> tuple[str, Content]:
    rng = scene.rng
    if scene.told and rng.random() < 0.7:
        fact = rng.choice(list(scene.told.values()))
        return rng.choice(fact.asks), fact.recalled
    fact = personal_fact(rng)
    if rng.random() < 0.35:
        return rng.choice(fact.asks), scene.told[fact.key].recalled if fact.key in scene.told else NOT_TOLD
    scene.told[fact.key] = fact
    return fact.told, fact.noted


def _exchange(scene: _Scene) -> tuple[str, Content]:
    """One thing said and the content of its answer."""
    rng = scene.rng
    kind = rng.random()
    if isinstance(scene.last, Factual) and kind < 0.14:
        return _follow_up(scene, scene.last)
    if kind < 0.68:
        return _question(scene)
    if kind < 0.79:
        return exercise(rng.choice(_PRACTISED), rng)
    if kind < 0.87:
        return _small_talk(scene)
    return _personal(scene) if kind < 0.94 else (unknown_ask(rng), UNKNOWN)


def _direction(preference: str, scene: _Scene) -> Direction:
    """Mostly away from what holds: people ask for a change more often than for what they already have."""
    is_default = getattr(scene.style, preference) == PREFERENCES[preference][0]
    is_change = scene.rng.random() < 0.85
    return preference, 1 if is_default == is_change else 0


def _directions(scene: _Scene, count: int) -> list[Direction]:
    """Different preferences, one of them often among those that were changed before."""
    rng = scene.rng
    changed = [p for p, (default, _) in PREFERENCES.items() if getattr(scene.style, p) != default]
    first = _drawn(changed if changed and rng.random() < 0.6 else list(PREFERENCES), rng)
    others = rng.sample([p for p in PREFERENCES if p != first], count - 1)
    return [_direction(p, scene) for p in (first, *others)]


def _drawn(preferences: list[str], rng: random.Random) -> str:
    return rng.choices(preferences, [_WEIGHTS[p] for p in preferences])[0]


def _apart(scene: _Scene, count: int) -> list[Direction]:
    """Different preferences in random order, those with more weight more often among them."""
    rank = {p: scene.rng.random() ** (1 / weight) for p, weight in _WEIGHTS.items()}
    return [_direction(p, scene) for p in sorted(rank, key=rank.__getitem__, reverse=True)[:count]]


def _wish(scene: _Scene, count: int) -> tuple[str, list[Direction], str]:
    return _worded(scene, _directions(scene, count))


def _worded(scene: _Scene, directions: list[Direction]) -> tuple[str, list[Direction], str]:
    name = scene.rng.choice(NAMES) if scene.rng.random() < 1 - scene.mix.invented_names_share else _invented_name(scene)
    return wish(directions, name, scene.rng), directions, name


def _invented_name(scene: _Scene) -> str:
    """A name nobody was trained on before: copied, not remembered. Never a held-out one, nor a held-out subject."""
    rng = scene.rng
    syllables = (rng.choice(_ONSETS) + rng.choice("aeiouy") + rng.choice(_CODAS) for _ in range(rng.randint(1, 3)))
    name = "".join(syllables).capitalize()
    return "Ano" if name in _NOT_INVENTED or len(name) < 3 else name


def _number_of_wishes(rng: random.Random) -> int:
    return rng.choices((1, 2, 3), (0.78, 0.16, 0.06))[0]


def _grant(scene: _Scene, directions: list[Direction], name: str) -> None:
    scene.previous = scene.style
    scene.style = apply(scene.style, directions, name)
    scene.is_plain = False


def _note(scene: _Scene) -> str:
    if scene.rng.random() < 0.15:
        fact = personal_fact(scene.rng)
        scene.told[fact.key] = fact
        return fact.told
    is_shown = scene.rng.random() < 0.07
    text, directions, name = _wish(scene, scene.rng.randint(1, 3) if is_shown or scene.rng.random() < 0.07 else 1)
    _grant(scene, directions, name)
    return solution_note(_example(scene)) if is_shown else text


def _example(scene: _Scene) -> str:
    """Some answer in the style that holds."""
    return render(Factual(scene.rng.choice(_TRAINED), scene.rng.randrange(4)), scene.style)


def _notes(scene: _Scene) -> list[str]:
    rng = scene.rng
    if rng.random() < scene.mix.many_notes_share:
        low, high = rng.choice(((5, 8), (5, 8), (9, MAX_NOTES)))
    else:
        low, high = rng.choices(((1, 1), (2, 2), (3, 4)), (0.42, 0.28, 0.3))[0]
    count = rng.randint(low, high)
    if rng.random() < scene.mix.apart_share:
        return _wishes_apart(scene, count)
    return [_note(scene) for _ in range(count)]


def _wishes_apart(scene: _Scene, count: int) -> list[str]:
    """As many wishes, at most one for each preference, granted: what a person asks for over time and keeps."""
    wishes = [_worded(scene, [direction]) for direction in _apart(scene, count)]
    for _, directions, name in wishes:
        _grant(scene, directions, name)
    return [text for text, _, _ in wishes]


def _system(scene: _Scene) -> str:
    rng = scene.rng
    text = ""
    kind = rng.random()
    if kind < 0.12:
        text = rng.choice(_SYSTEMS)
    elif kind < 0.18:
        scene.persona = rng.choice(NAMES)
        text = rng.choice(_PERSONAS).format(n=scene.persona)
    if rng.random() < scene.mix.system_share:
        for asked in _wishes_apart(scene, rng.choices(range(1, 7), (0.4, 0.2, 0.12, 0.1, 0.1, 0.08))[0]):
            text = f"{text} {asked}{'' if asked[-1] in '.!?' else '.'}".strip()
    return text


def _target(scene: _Scene, content: Content, *, is_last: bool) -> WorldTurn:
    """The answer; the last one may begin in another style."""
    rng = scene.rng
    may_splice = is_last and not isinstance(content, Plain) and scene.style != DEFAULT
    if not may_splice or rng.random() > 0.35:
        return WorldTurn("assistant", render(content, scene.style))
    begun = scene.previous if rng.random() < 0.6 else DEFAULT
    cut = rng.randint(1, max(1, len(slots(content, begun)) - 1))
    stands, follows = splice(content, begun, scene.style, cut)
    return WorldTurn("assistant", follows, begun=stands)


def _corrected(scene: _Scene, content: Factual) -> tuple[str, Factual]:
    """A correction of one answer's number, and the corrected content."""
    domain = DOMAINS[content.subject.domain]
    number = scene.rng.choice(list(domain.conversion))
    fact = domain.facts[3]
    subject = f"{domain.article}{content.subject.name}"
    text = scene.rng.choice(
        ("no, {s} {v} {n} {u}", "that is wrong, it {v} {n} {u}", "wrong, it {v} {n} {u}", "it {v} {n} {u}")
    )
    said = text.format(s=subject, v=fact.verb, n=number, u=domain.units[0] + domain.unit_tail[0])
    return said, replace(content, measure=number)


def _hindsight(scene: _Scene, content: Content) -> tuple[Hindsight, Content]:
    """Feedback that came after the answer, in one of the wordings; grants what it asks."""
    rng = scene.rng
    wording = "heed" if rng.random() < 0.55 else rng.choice(WORDINGS)
    kind = rng.random()
    scene.is_plain = False
    if kind < 0.08:
        _, asks, _ = rng.choice(SMALL_TALK)
        text = rng.choice(asks) if rng.random() < 0.5 else ask_text(rng.choice(_TRAINED), rng.randrange(4), rng)
        return Hindsight(text, wording=wording), content
    if kind < 0.14 and isinstance(content, Factual):
        said, corrected = _corrected(scene, content)
        return Hindsight(said, wording=wording), corrected
    text, directions, name = _wish(scene, _number_of_wishes(rng))
    _grant(scene, directions, name)
    if kind < 0.74:
        return Hindsight(text, wording=wording), content
    shown = render(content, scene.style) if rng.random() < 0.5 else _example(scene)
    return Hindsight(text if rng.random() < 0.4 else "", shown, wording), content


def _feedback_turn(scene: _Scene, content: Content) -> tuple[str, Content]:
    if isinstance(content, Factual) and scene.rng.random() < 0.06:
        return _corrected(scene, content)
    text, directions, name = _wish(scene, _number_of_wishes(scene.rng))
    _grant(scene, directions, name)
    return text, content


def _drill(scene: _Scene) -> WorldSample:
    """Several plain exchanges in a row: skills, or facts of any subject."""
    rng = scene.rng
    is_skill = rng.random() < 0.55
    sample = WorldSample()
    for _ in range(rng.randint(3, 6)):
        said, content = exercise(rng.choice(_PRACTISED), rng) if is_skill else _question(scene)
        sample.turns += [WorldTurn("user", said), WorldTurn("assistant", render(content))]
    return sample


def _estranged(rng: random.Random, mix: Mix) -> tuple[_Scene, Content, WorldSample]:
    """A question and its answer in another style, read and not learned; what asked for the style is not to be seen."""
    scene = _Scene(rng, mix)
    _, directions, name = _wish(scene, rng.choices((1, 2, 3), (0.6, 0.25, 0.15))[0])
    _grant(scene, directions, name)
    said, content = _question(scene)
    scene.last = content
    return (
        scene,
        content,
        WorldSample([WorldTurn("user", said), WorldTurn("assistant", "", begun=render(content, scene.style))]),
    )


def _undone(rng: random.Random, mix: Mix) -> WorldSample:
    """After an answer in a style nobody asks for: the default again, as when a lesson was undone."""
    scene, _, sample = _estranged(rng, mix)
    scene.style = DEFAULT
    said, content = _exchange(scene)
    sample.turns += [WorldTurn("user", said), WorldTurn("assistant", render(content))]
    return sample


def _restored(rng: random.Random, mix: Mix) -> WorldSample:
    """An answer in another style; then wishes, mostly back to the default."""
    scene, content, sample = _estranged(rng, mix)
    asked, wanted, name = _wish(scene, rng.choices((1, 2), (0.85, 0.15))[0])
    _grant(scene, wanted, name)
    sample.turns += [WorldTurn("user", asked), _target(scene, content, is_last=True)]
    return sample


def sample_conversation(rng: random.Random, mix: Mix = FULL) -> WorldSample:
    """One training conversation."""
    scene = _Scene(rng, mix)
    if rng.random() < mix.drill_share:
        return _drill(scene)
    if rng.random() < mix.restored_share:
        return _restored(rng, mix)
    if rng.random() < mix.undone_share:
        return _undone(rng, mix)
    system = _system(scene)
    scene.is_plain = True  # a system prompt may style held-out subjects
    is_noted = rng.random() < mix.notes_share * (0.4 if scene.style != DEFAULT else 1.0)
    notes = _notes(scene) if is_noted else []
    sample = WorldSample()
    count = rng.choices(range(1, len(mix.turns) + 1), mix.turns)[0]
    has_hindsight = rng.random() < mix.hindsight_share
    for index in range(count):
        _write_exchange(scene, sample, is_last=index == count - 1, has_hindsight=has_hindsight)
    return _with_system(sample, system, notes)


def _write_exchange(scene: _Scene, sample: WorldSample, *, is_last: bool, has_hindsight: bool) -> None:
    is_feedback = scene.last is not None and not isinstance(scene.last, Plain) and scene.rng.random() < 0.34
    if is_feedback and scene.last is not None and not _is_held_out(scene.last):
        said, content = _feedback_turn(scene, scene.last)
    else:
        said, content = _exchange(scene)
    if is_last and has_hindsight and not _is_held_out(content):
        hindsight, content = _hindsight(scene, content)
        said = with_hindsight([{"role": "user", "content": said}], hindsight)[0]["content"]
    scene.last = content
    sample.turns += [WorldTurn("user", said), _target(scene, content, is_last=is_last)]


def _is_held_out(content: Content) -> bool:
    return isinstance(content, Factual) and content.subject.is_held_out


def _with_system(sample: WorldSample, system: str, notes: list[str]) -> WorldSample:
    messages = with_notes([{"role": "system", "content": system}] if system else [], notes)
    return WorldSample([*(WorldTurn(m["role"], m["content"]) for m in messages), *sample.turns])


def listing() -> dict[str, object]:
    """What the world holds, as plain data: domains with subjects and ways to ask, preferences, skills."""
    domains = {
        name: {
            "subjects": [
                {"name": s.name, "facts": s.facts, "held_out": s.is_held_out} for s in SUBJECTS if s.domain == name
            ],
            "ask": [
                text.replace("{s}", f"{domain.article}{{subject}}")
                for text in (*domain.about, *(a for f in domain.facts for a in f.asks))
            ],
        }
        for name, domain in DOMAINS.items()
    }
    return {
        "domains": domains,
        "preferences": [{"name": p, "default": d or "none", "other": o} for p, (d, o) in PREFERENCES.items()],
        "default_style": {p: getattr(DEFAULT, p) or "none" for p in PREFERENCES},
        "skills": list(SKILLS),
    }


def main(arguments: list[str]) -> int:
    """`--list` prints the world as JSON; `--sample N` prints N training conversations."""
    if arguments[:1] == ["--list"]:
        json.dump(listing(), sys.stdout, ensure_ascii=False, indent=1)
        sys.stdout.write("\n")
        return 0
    if arguments[:1] == ["--sample"]:
        rng = random.Random(0)
        for _ in range(int(arguments[1])):
            turns = sample_conversation(rng).turns
            sys.stdout.write("\n".join(f"{t.role}: {t.begun}|{t.content}" for t in turns) + "\n---\n")
        return 0
    sys.stderr.write("usage: python -m engine.pocket.world --list | --sample N\n")
    return 2


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

__all__ = [
    "DIRECTIONS",
    "FULL",
    "START",
    "Mix",
    "Talk",
    "WorldSample",
    "WorldTurn",
    "ask_text",
    "listing",
    "sample_conversation",
]
