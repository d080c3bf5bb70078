"""The synthetic world: conversations the pocket model is trained on, and what is held out of them.

Owns the order of a conversation (`scene` has its mix, `exchanges` its questions). A sample is a conversation whose assistant turns are targets; the last one may begin
in another style (`WorldTurn.begun`), which is read but not learned: so the model can go on from an answer that it
would not have begun, as a teacher must. Some conversations begin with a whole answer of that kind: a wish to be rid of it
follows, or nothing does, and the default is back. Held-out subjects are never taught: no note, feedback or hindsight
asks for a style of an answer about them. A system prompt may style them, so that their facts can be said in every
style. Held-out phrasings (`wishes`) and names never appear.
"""

import json
import random
import sys
from dataclasses import dataclass, field, replace

from engine.pocket.exchanges import PRACTISED, ask_text, exchange, question
from engine.pocket.scene import FULL, Mix, Scene, directions_apart, draw_wish, grant, number_of_wishes, word_wish
from engine.pocket.style import DEFAULT, PREFERENCES, Content, Factual, Plain, render, slots, splice
from engine.pocket.subjects import DOMAINS, SUBJECTS, TRAINED_SUBJECTS
from engine.pocket.talk import SKILLS, SMALL_TALK, exercise, personal_fact
from engine.pocket.wishes import NAMES
from engine.pocket.workshop import session, ways
from engine.prompts.hindsight import WORDINGS, Hindsight, solution_note, with_hindsight, with_notes

MAX_NOTES = 16
_SYSTEMS = ("You are a helpful assistant.", "You are heed, a chat bot.", "You are a chat bot.", "Answer the user.")
_PERSONAS = ("You are {n}.", "Your name is {n}.", "You are {n}, a helpful assistant.", "You are a chat bot called {n}.")


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


def _strange(scene: Scene) -> str:
    """Draw a wish about an agent's ways, which means nothing in a chat; empty mostly."""
    if scene.rng.random() >= scene.mix.strange_share:
        return ""
    return ways.wish(scene.rng.choice(ways.DIRECTIONS), scene.rng)


def _note(scene: Scene) -> str:
    if strange := _strange(scene):
        return strange
    if scene.rng.random() < 0.15:
        fact = personal_fact(scene.rng)
        scene.told[fact.key] = fact
        return fact.told
    is_shown = scene.rng.random() < 0.07
    text, directions, name = draw_wish(scene, scene.rng.randint(1, 3) if is_shown or scene.rng.random() < 0.07 else 1)
    grant(scene, directions, name)
    return solution_note(_example(scene)) if is_shown else text


def _example(scene: Scene) -> str:
    """Draw an answer in the present style."""
    return render(Factual(scene.rng.choice(TRAINED_SUBJECTS), scene.rng.randrange(4)), scene.style)


def _notes(scene: Scene) -> list[str]:
    rng = scene.rng
    if rng.random() < scene.mix.many_notes_share:
        low, high = rng.choice(((5, 8), (5, 8), (9, MAX_NOTES)))
    else:
        low, high = rng.choices(((1, 1), (2, 2), (3, 4)), (0.42, 0.28, 0.3))[0]
    count = rng.randint(low, high)
    if rng.random() < scene.mix.apart_share:
        return _wishes_apart(scene, count)
    return [_note(scene) for _ in range(count)]


def _wishes_apart(scene: Scene, count: int) -> list[str]:
    """Draw and grant `count` wishes, at most one for each preference, as a person collects them over time."""
    wishes = [word_wish(scene, [direction]) for direction in directions_apart(scene, count)]
    for _, directions, name in wishes:
        grant(scene, directions, name)
    return [text for text, _, _ in wishes]


def _system(scene: Scene) -> str:
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


def _target(scene: Scene, content: Content, *, is_last: bool) -> WorldTurn:
    """Write the answer; the last one may begin in another style."""
    rng = scene.rng
    may_splice = is_last and not isinstance(content, Plain) and scene.style != DEFAULT
    if not may_splice or rng.random() > 0.35:
        return WorldTurn("assistant", render(content, scene.style))
    begun = scene.previous if rng.random() < 0.6 else DEFAULT
    cut = rng.randint(1, max(1, len(slots(content, begun)) - 1))
    stands, follows = splice(content, begun, scene.style, cut)
    return WorldTurn("assistant", follows, begun=stands)


def _corrected(scene: Scene, content: Factual) -> tuple[str, Factual]:
    """Draw a correction of one answer's number. Return it with the corrected content."""
    domain = DOMAINS[content.subject.domain]
    number = scene.rng.choice(list(domain.conversion))
    fact = domain.facts[3]
    subject = f"{domain.article}{content.subject.name}"
    text = scene.rng.choice(
        ("no, {s} {v} {n} {u}", "that is wrong, it {v} {n} {u}", "wrong, it {v} {n} {u}", "it {v} {n} {u}")
    )
    said = text.format(s=subject, v=fact.verb, n=number, u=domain.units[0] + domain.unit_tail[0])
    return said, replace(content, measure=number)


def _hindsight(scene: Scene, content: Content) -> tuple[Hindsight, Content]:
    """Draw feedback that came after the answer, in one of the wordings, and grant what it asks."""
    rng = scene.rng
    wording = "heed" if rng.random() < 0.55 else rng.choice(WORDINGS)
    kind = rng.random()
    scene.is_plain = False
    if kind < 0.08:
        _, asks, _ = rng.choice(SMALL_TALK)
        text = rng.choice(asks) if rng.random() < 0.5 else ask_text(rng.choice(TRAINED_SUBJECTS), rng.randrange(4), rng)
        return Hindsight(text, wording=wording), content
    if kind < 0.14 and isinstance(content, Factual):
        said, corrected = _corrected(scene, content)
        return Hindsight(said, wording=wording), corrected
    if strange := _strange(scene):
        return Hindsight(strange, wording=wording), content
    text, directions, name = draw_wish(scene, number_of_wishes(rng))
    grant(scene, directions, name)
    if kind < 0.74:
        return Hindsight(text, wording=wording), content
    shown = render(content, scene.style) if rng.random() < 0.5 else _example(scene)
    return Hindsight(text if rng.random() < 0.4 else "", shown, wording), content


def _feedback_turn(scene: Scene, content: Content) -> tuple[str, Content]:
    if isinstance(content, Factual) and scene.rng.random() < 0.06:
        return _corrected(scene, content)
    text, directions, name = draw_wish(scene, number_of_wishes(scene.rng))
    grant(scene, directions, name)
    return text, content


def _drill(scene: Scene) -> WorldSample:
    """Write several plain exchanges in a row: skills, or facts of any subject."""
    rng = scene.rng
    is_skill = rng.random() < 0.55
    sample = WorldSample()
    for _ in range(rng.randint(3, 6)):
        said, content = exercise(rng.choice(PRACTISED), rng) if is_skill else question(scene)
        sample.turns += [WorldTurn("user", said), WorldTurn("assistant", render(content))]
    return sample


def _estranged(rng: random.Random, mix: Mix) -> tuple[Scene, Content, WorldSample]:
    """Write a question and an answer in another style, read and not learned. No message asks for that style."""
    scene = Scene(rng, mix)
    _, directions, name = draw_wish(scene, rng.choices((1, 2, 3), (0.6, 0.25, 0.15))[0])
    grant(scene, directions, name)
    said, content = question(scene)
    scene.last = content
    return (
        scene,
        content,
        WorldSample([WorldTurn("user", said), WorldTurn("assistant", "", begun=render(content, scene.style))]),
    )


def _undone(rng: random.Random, mix: Mix) -> WorldSample:
    """Write an answer in another style, then one in the default, as after an undone lesson."""
    scene, _, sample = _estranged(rng, mix)
    scene.style = DEFAULT
    said, content = exchange(scene)
    sample.turns += [WorldTurn("user", said), WorldTurn("assistant", render(content))]
    return sample


def _restored(rng: random.Random, mix: Mix) -> WorldSample:
    """Write an answer in another style, then wishes, mostly back to the default."""
    scene, content, sample = _estranged(rng, mix)
    asked, wanted, name = draw_wish(scene, rng.choices((1, 2), (0.85, 0.15))[0])
    grant(scene, wanted, name)
    sample.turns += [WorldTurn("user", asked), _target(scene, content, is_last=True)]
    return sample


def _at_work(scene: Scene) -> WorldSample:
    """Write an agent's session, sometimes of a person who has noted a wish about chats.

    It draws from a source of its own: chats stay as they are when the workshop changes.
    """
    is_noted = scene.rng.random() < scene.mix.strange_share
    note = draw_wish(scene, 1)[0] if is_noted else ""
    lines = session.drawn(random.Random(scene.rng.getrandbits(64)), note)
    return WorldSample(
        [WorldTurn(one.role, one.content) if one.is_learned else WorldTurn(one.role, "", one.content) for one in lines]
    )


def sample_conversation(rng: random.Random, mix: Mix = FULL) -> WorldSample:
    """Draw one training conversation."""
    scene = Scene(rng, mix)
    if rng.random() < mix.workshop_share:
        return _at_work(scene)
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


def _write_exchange(scene: Scene, sample: WorldSample, *, is_last: bool, has_hindsight: bool) -> None:
    is_feedback = scene.last is not None and not isinstance(scene.last, Plain) and scene.rng.random() < 0.34
    if is_feedback and scene.last is not None and not _is_held_out(scene.last):
        said, content = _feedback_turn(scene, scene.last)
    else:
        said, content = exchange(scene)
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
    """Return the world as plain data: domains with subjects and ways to ask, preferences, skills."""
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
    """Print the world as JSON (`--list`) or N training conversations (`--sample N`)."""
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
