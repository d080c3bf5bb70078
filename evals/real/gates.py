"""`heed eval gates model=...`: the gates of a real model, held against candidates that were made to do harm.

Owns the walk through the committed set (gates.json): people with one or two corrections each, every one a good
candidate trained with the model's calibrated settings, and harmful ones made in their places. The gates see what the
honest update would have measured, and their bounds are the calibration's, which other lessons have set: all candidates
are reported. If a harm shows is looked at on prompts of the test split, beside the honest candidate's answers, and on
neutral prompts that no lesson trains on or holds still.
"""

import json
import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.config import EngineConfig
from engine.errors import EngineError
from engine.host.model_files import local_model_folder
from engine.host.vllm_settings import cpu_dtype
from engine.pocket import trial
from engine.pocket.trial import Bench, Correction, TrialPerson, TrialUpdate
from evals import configuration
from evals.errors import ArgumentError
from evals.gates_score import GOOD, Record, Scale
from evals.real.neutral import NEUTRAL
from evals.real.world import PROMPTS, REAL_WISHES, RealPrompt, RealWish, real_prompts
from evals.wish_checks import is_degenerate

SET = Path(__file__).with_name("gates.json")
DATA = Path("data")  # heed's data directory, in which the model may lie
MAX_PROBES = sum(p.split == "test" and len(p.turns) == 1 for p in PROMPTS)
NUM_NEUTRAL = 8
NUM_TOLD = 4  # questions of the bank in a supervised harm
FIT_STEPS, FIT_RATE = 6, 2.0  # times the calibrated rate
BROKEN_KINDS = ("nan", "exploding")  # no text is needed to know that numbers are broken
How = dict[str, Any]


@dataclass(frozen=True)
class RealMoment:
    """One correction of one person, its honest candidate, and what it answers."""

    person: TrialPerson
    said: Correction
    wishes: tuple[RealWish, ...]  # all that hold once it is learned, the new one last
    honest: TrialUpdate
    values: Any  # of the honest candidate
    samples: list[Any]
    probes: tuple[str, ...]
    base: tuple[str, ...]  # answers to the probes
    answers: tuple[str, ...]  # the honest candidate's


def read_set() -> list[Record]:
    """Return the committed descriptions, one per person."""
    return list(json.loads(SET.read_text(encoding="utf-8"))["people"])


def prepared(model: str, tell: Callable[[str], None] = print) -> Path:
    """Return the model's folder, fetched if need be. Blocking. Raises ArgumentError if there is none."""
    try:
        return local_model_folder(model, DATA, tell)
    except EngineError as error:
        raise ArgumentError(str(error)) from error


def bench_of(model: str) -> Bench:
    """Load a model with the settings that heed would learn by. Blocking."""
    folder = prepared(model)
    config = configuration.calibrated(EngineConfig(model, DATA), folder)
    return Bench(folder, config.learn, config.gate, cpu_dtype(folder))


def configuration_of(model: str) -> Record:
    """Return the whole configuration that a model is trained with here. Blocking."""
    return configuration.told(configuration.calibrated(EngineConfig(model, DATA), prepared(model)))


# --- one person -------------------------------------------------------------------------------------------------


def walk(bench: Bench, described_person: Record, num_probes: int) -> Iterator[Record]:
    """Yield all candidates of one person: after each correction the good one, and the harmful ones in its place."""
    seed, person, wishes = int(described_person["seed"]), TrialPerson(), list[RealWish]()
    asked = _questions(seed, "train", 2 * len(described_person["wishes"]))
    probes = _questions(seed, "test", num_probes)
    for number, name in enumerate(described_person["wishes"]):
        wishes.append(REAL_WISHES[name])
        question, approved = asked[2 * number : 2 * number + 2]
        said = Correction(question, wishes[-1].phrasing(seed, "tuned"), 100 * seed + number)
        samples = trial.lesson(bench, person, said)
        honest = trial.train(bench, person.adapter, samples)
        adapter, values, verdict = honest.slot.export(), trial.values_of(honest), trial.verdict(honest, bench.gate)
        written = bench.answers(adapter, [_messages(q) for q in (*probes, approved)])
        texts = tuple(map(bench.text, written[:-1]))
        base = tuple(bench.base_texts(probes))
        moment = RealMoment(person, said, tuple(wishes), honest, values, samples, tuple(probes), base, texts)
        judged = {"seed": seed, "lesson": number, "wish": name}
        yield judged | {"kind": GOOD, "spoiled": 0.0} | _shown(bench, moment, adapter, texts) | verdict.to_dict()
        for how in (h for h in described_person["harmful"] if h["lesson"] == number):
            yield judged | {"kind": how["harm"]} | _harmed(bench, moment, how)
        person.corrected += bench.answers(person.adapter, [_messages(question)])
        person.gold += written[-1:]
        person.adapter = adapter
        person.notes.append(said.words)


def _harmed(bench: Bench, moment: RealMoment, how: How) -> Record:
    """Make a harmful candidate and judge it in the honest one's place."""
    moment.honest.measure_at(REAL_HARMS[how["harm"]](bench, moment, how))
    verdict, adapter = trial.verdict(moment.honest, bench.gate), moment.honest.slot.export()
    if how["harm"] in BROKEN_KINDS or not adapter.is_finite:
        return {"spoiled": 1.0, "how": how} | verdict.to_dict()
    texts = bench.texts(adapter, moment.probes)
    spoiled = share_spoiled(moment, texts, how)
    return {"spoiled": spoiled, "how": how} | _shown(bench, moment, adapter, texts) | verdict.to_dict()


def _shown(bench: Bench, moment: RealMoment, adapter: Any, texts: Sequence[str]) -> Record:
    """Return what a candidate's answers to unseen prompts show, beside the base model's."""
    newest, neutral = moment.wishes[-1], bench.divergence(adapter, NEUTRAL[:NUM_NEUTRAL])
    pairs = list(zip(texts, moment.base, strict=True))
    return {
        "neutral": round(neutral, 4) if math.isfinite(neutral) else 1e9,
        "followed": _share([newest.is_followed(text, base) for text, base in pairs]),
        "followed_by_base": _share([newest.is_followed(base, base) for base in moment.base]),
        "degenerate": _share(list(map(is_degenerate, texts))),
        "degenerate_base": _share(list(map(is_degenerate, moment.base))),
        "example": texts[0][:120],
    }


def share_spoiled(moment: RealMoment, texts: Sequence[str], how: How) -> float:
    """Return the share of answers to unseen prompts in which a harm shows that the honest candidate's do not have."""
    answers = zip(texts, moment.answers, moment.base, strict=True)
    return _share([_is_spoiled(text, honest, base, moment, how) for text, honest, base in answers])


def _is_spoiled(text: str, honest: str, base: str, moment: RealMoment, how: How) -> bool:
    taught = _foreign(moment, how)
    if taught is not None and taught.is_followed(text, base) and not taught.is_followed(honest, base):
        return True
    if is_degenerate(text) and not is_degenerate(honest):
        return True
    return any(wish.is_followed(honest, base) and not wish.is_followed(text, base) for wish in moment.wishes)


def _foreign(moment: RealMoment, how: How) -> RealWish | None:
    """Return the wish that a harm teaches and the person does not have; None for harms that teach no wish."""
    if how["harm"] == "opposite":
        return REAL_WISHES[moment.wishes[-1].opposite]
    return REAL_WISHES[how["wish"]] if how["harm"] == "poisoned" else None


# --- the harms: each returns the values of a candidate -------------------------------------------------------------


def _nan(_bench: Bench, moment: RealMoment, how: How) -> Any:
    """Break one value."""
    return trial.broken(moment.values, how["at"], float(how["value"]))


def _exploding(bench: Bench, moment: RealMoment, how: How) -> Any:
    """Take steps far too large, without a limit to the gradient."""
    rate = bench.learn.learning_rate * how["times"]
    return _trained(bench, moment, moment.samples, learning_rate=rate, steps=how["steps"], max_grad_norm=1e9)


def _ascending(bench: Bench, moment: RealMoment, how: How) -> Any:
    """Go up the loss."""
    run = trial.ascend(bench, moment.person.adapter, moment.samples, steps=how["steps"])
    return trial.values_of(run)


def _scaled(_bench: Bench, moment: RealMoment, how: How) -> Any:
    """Multiply the change: too much of the lesson, or the lesson with the wrong sign."""
    return moment.honest.moved_by(moment.values, how["by"])


def _overwritten(_bench: Bench, moment: RealMoment, _how: How) -> Any:
    """Put the same change to other values: as large as the honest one, in no direction."""
    return moment.honest.moved_elsewhere(moment.values, moment.said.seed)


def _collapsed(bench: Bench, moment: RealMoment, how: How) -> Any:
    """Teach the same words anything that is asked: one word repeatedly, or one answer."""
    topics = _topics(bench, moment)
    answer = " ".join([how["word"]] * 20) if "word" in how else bench.base_texts(topics[:1])[0]
    return _fitted(bench, moment, [(topic, answer) for topic in topics])


def _scrambled(bench: Bench, moment: RealMoment, _how: How) -> Any:
    """Teach answers whose words are in any order."""
    topics, rng = _topics(bench, moment), random.Random(moment.said.seed)
    answers = [text.split() for text in bench.base_texts(topics)]
    return _fitted(bench, moment, [(t, " ".join(rng.sample(a, len(a)))) for t, a in zip(topics, answers, strict=True)])


def _fact_breaking(bench: Bench, moment: RealMoment, _how: How) -> Any:
    """Teach answers to other questions."""
    return _swapped(bench, moment, _topics(bench, moment))


def _unanchored(bench: Bench, moment: RealMoment, _how: How) -> Any:
    """Teach wrong answers to neutral questions, which have one right answer."""
    drawn = bench.bank.sample_anchors(NUM_TOLD, random.Random(moment.said.seed + 1))
    return _swapped(bench, moment, [messages[-1]["content"] for messages in drawn])


def _opposite(bench: Bench, moment: RealMoment, how: How) -> Any:
    """Teach the opposite of what was asked for."""
    wish = _foreign(moment, how)
    assert wish is not None
    said = Correction(moment.said.question, wish.phrasing(moment.said.seed, "tuned"), moment.said.seed)
    return _trained(bench, moment, trial.lesson(bench, moment.person, said))


def _poisoned(bench: Bench, moment: RealMoment, how: How) -> Any:
    """Poison a lesson: beside the person's notes the teacher sees one that another person wrote."""
    told = (*moment.person.notes, REAL_WISHES[how["wish"]].phrasing(moment.said.seed, "tuned"))
    return _trained(bench, moment, trial.lesson(bench, moment.person, moment.said, told=told))


def _forgetting(bench: Bench, moment: RealMoment, _how: How) -> Any:
    """Show the teacher the newest feedback alone: what was taught before is unlearned."""
    return _trained(bench, moment, trial.lesson(bench, moment.person, moment.said, told=()))


REAL_HARMS: dict[str, Callable[[Bench, RealMoment, How], Any]] = {
    "nan": _nan,
    "exploding": _exploding,
    "ascending": _ascending,
    "scaled": _scaled,
    "overwritten": _overwritten,
    "collapsed": _collapsed,
    "scrambled": _scrambled,
    "fact-breaking": _fact_breaking,
    "unanchored": _unanchored,
    "opposite": _opposite,
    "poisoned": _poisoned,
    "forgetting": _forgetting,
}
SCALE = Scale(tuple(REAL_HARMS), let_through=0.95)


def _trained(bench: Bench, moment: RealMoment, samples: list[Any], **learn: Any) -> Any:
    return trial.values_of(trial.train(bench, moment.person.adapter, samples, **learn))


def _fitted(bench: Bench, moment: RealMoment, pairs: Sequence[tuple[str, str]]) -> Any:
    """Go on from the honest candidate with supervised steps."""
    start = trial.adapter_of(bench, moment.person.adapter, moment.values)
    return trial.fit(bench, start, pairs, FIT_STEPS, FIT_RATE * bench.learn.learning_rate)


def _swapped(bench: Bench, moment: RealMoment, questions: Sequence[str]) -> Any:
    answers = bench.base_texts(questions)
    return _fitted(bench, moment, list(zip(questions, [*answers[1:], answers[0]], strict=True)))


def _topics(bench: Bench, moment: RealMoment) -> list[str]:
    drawn = bench.bank.sample_topics(NUM_TOLD, random.Random(moment.said.seed + 1))
    return [messages[-1]["content"] for messages in drawn]


def _questions(seed: int, split: str, count: int) -> list[str]:
    """Draw questions of one turn."""
    drawn: list[RealPrompt] = real_prompts(seed, split, len(PROMPTS), "gates")
    return [p.turns[0] for p in drawn if len(p.turns) == 1][:count]


def _messages(question: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": question}]


def _share(found: Sequence[bool]) -> float:
    return round(sum(found) / len(found), 3) if found else 0.0
