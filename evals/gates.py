"""`heed eval gates [key=value ...]`: do the gates stop harmful candidates and let good ones through?

For the pocket model; with model=, for another one (`evals.real.gates`). Owns the walk through the committed set
(gates.json): twenty people with five corrections each, every one a good
candidate, and sixty harmful ones made in their places by real training. A harm is done to the training, to its data or
to the values behind it; the gates then see only what the honest update would have measured. Whether it did harm at all
is looked at on questions that nothing was trained on. Bounds are set on the candidates of every other lesson, and the
others are reported: what chose a bound does not judge it. Results go to gates.jsonl person by person: a run that
breaks off goes on where it was.
"""

import asyncio
import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from engine.config import LearnConfig
from engine.pocket import WEIGHTS, trial
from engine.pocket.exchanges import ask_text
from engine.pocket.style import DEFAULT, Direction, Factual, Style, has_facts, render
from engine.pocket.subjects import SUBJECTS, Subject
from engine.pocket.trial import Bench, Correction, TrialPerson
from engine.pocket.wishes import apply
from evals import cases, command, provenance, report
from evals.arguments import described
from evals.cases import Question, Wish
from evals.errors import ArgumentError
from evals.gates_score import GOOD, Record, Scale, drawn, in_halves, summarise, table
from evals.real import gates as real_gates
from evals.study import Advance
from evals.verdict import follows

SET = Path(__file__).with_name("gates.json")
LEARN = LearnConfig(reads_own_note=False)  # as the bounds of the pocket model were set
SIGNAL_S = 0.01  # between two candidates, so that a signal can end the run
How = dict[str, Any]


@dataclass(frozen=True)
class GatesConfig:
    """The arguments of the study."""

    model: str = described(provenance.POCKET, "the model, as HEED_MODEL")
    people: int = described(0, "how many people of the model's set to walk through (0: all)")
    probes: int = described(6, "questions on which a harm must show")
    out: str = described("evals/results", "folder for gates.jsonl, gates.json, gates.html and gates.png")
    check: bool = described(False, "exit with 1 where a target is missed")

    def __post_init__(self) -> None:
        """Raise ArgumentError on a value nothing can be measured with."""
        known, most = len(self.read_set()), 60 if self.is_pocket else real_gates.MAX_PROBES
        if not 0 <= self.people <= known:
            raise ArgumentError(f"people wants a number from 0 to {known}, not {self.people}")
        if not 1 <= self.probes <= most:
            raise ArgumentError(f"probes wants a number from 1 to {most}, not {self.probes}")

    @property
    def is_pocket(self) -> bool:
        """Return True for the pocket model, which has a world and a set of its own."""
        return self.model == provenance.POCKET

    def read_set(self) -> list[Record]:
        """Return the committed descriptions, one per person."""
        return read_set() if self.is_pocket else real_gates.read_set()


@dataclass(frozen=True)
class Moment:
    """One correction of one person, before anything is trained."""

    person: TrialPerson
    said: Correction
    wishes: tuple[Wish, ...]  # all that hold once it is learned, the new one last
    probes: tuple[Question, ...]

    @property
    def style(self) -> Style:
        """How answers ought to be afterwards."""
        style = DEFAULT
        for wish in self.wishes:
            style = apply(style, [wish.direction], wish.name)
        return style


def read_set() -> list[Record]:
    """Return the committed descriptions, one per person."""
    return list(json.loads(SET.read_text(encoding="utf-8"))["people"])


def main(words: Sequence[str]) -> int:
    """Run the command line. Return the exit code."""
    return command.execute("heed eval gates", GatesConfig, words, run)


async def run(config: GatesConfig, console: Console) -> int:
    """Make and judge every candidate, print the table; return the exit code. Blocking between two candidates."""
    folder, before = Path(config.out), provenance.machine()
    people = config.read_set()[: config.people or None]
    done = whole(people, _read(folder / "gates.jsonl"))
    missing = [p for p in people if p["seed"] not in {r["seed"] for r in done}]
    model = provenance.POCKET
    if not config.is_pocket:
        model = real_gates.prepared(config.model, console.print).name
    if missing:
        _write(folder / "gates.jsonl", done)
        with command.progress_bar() as progress:
            advance = command.Bar(progress, sum(map(num_candidates, missing)))
            for record in _walked(config, missing, advance):
                done.append(record)
                await asyncio.sleep(SIGNAL_S)
    of_people = [r for r in done if r["seed"] in {p["seed"] for p in people}]
    summary = in_halves(of_people, SCALE) if config.is_pocket else summarise(of_people, real_gates.SCALE)
    made = provenance.made("heed eval gates", config, model, before, runs_heed=False)
    made["heed"] = {"learn": LEARN.to_dict()} if config.is_pocket else real_gates.configuration_of(config.model)
    made["config"]["model"] = model  # a folder's way is of this machine
    shown = table(summary, *(() if config.is_pocket else (f"all of {model}",)))
    command.write_json(folder / "gates.json", made | summary | _told(config, of_people))
    report.write(folder, "What the gates stop", {}, [shown], [drawn(summary)], "gates.html")
    console.print(shown)
    return 1 if config.check and not summary["is_reached"] else 0


def _told(config: GatesConfig, records: Sequence[Record]) -> Record:
    """Return the candidates themselves where there are few enough to read."""
    return {} if config.is_pocket else {"candidates": list(records)}


def _read(log: Path) -> list[Record]:
    """Return what earlier runs have judged; a last line that was cut off is left away."""
    lines = log.read_text(encoding="utf-8").splitlines() if log.is_file() else []
    return [json.loads(line) for line in lines if line.endswith("}")]


def _write(log: Path, records: Sequence[Record]) -> None:
    log.write_text("".join(json.dumps(r) + "\n" for r in records), encoding="utf-8")


def num_candidates(person: Record) -> int:
    """Return how many candidates a person's description has."""
    return len(person["wishes"]) + len(person["harmful"])


def whole(people: Sequence[Record], records: Sequence[Record]) -> list[Record]:
    """Return the records without those of people whose walk broke off: it begins anew."""
    wanted = {p["seed"]: num_candidates(p) for p in people}
    judged = [r["seed"] for r in records]
    return [r for r in records if judged.count(r["seed"]) >= wanted.get(r["seed"], 0)]


def _walked(config: GatesConfig, people: Sequence[Record], advance: Advance) -> Iterator[Record]:
    """Yield the record of every candidate, once it is on disk."""
    bench = Bench(WEIGHTS, LEARN) if config.is_pocket else real_gates.bench_of(config.model)
    step = walk if config.is_pocket else real_gates.walk
    with (Path(config.out) / "gates.jsonl").open("a", encoding="utf-8") as lines:
        for described_person in people:
            for record in step(bench, described_person, config.probes):
                lines.write(json.dumps(record) + "\n")
                lines.flush()
                advance(f"person {record['seed']}")
                yield record


# --- one person -------------------------------------------------------------------------------------------------


def walk(bench: Bench, described_person: Record, num_probes: int) -> Iterator[Record]:
    """All candidates of one person: after each correction the good one, and the harmful ones meant for its place."""
    seed, person = int(described_person["seed"]), TrialPerson()
    questions = cases.corrected(seed, len(described_person["wishes"]), "gates")
    approved = cases.earlier(seed, len(questions), "gates")
    wishes: list[Wish] = []
    for number, direction in enumerate(described_person["wishes"]):
        wishes = with_wish(seed, wishes, (direction[0], direction[1]))
        said = Correction(questions[number].text, wishes[-1].text, 100 * seed + number)
        probes = tuple(cases.probes(seed, num_probes, "gates", number))
        moment = Moment(person, said, tuple(wishes), probes)
        samples = trial.lesson(bench, person, said)
        honest = trial.train(bench, person.adapter, samples)
        adapter, values = honest.slot.export(), trial.values_of(honest)
        yield _record(bench, (seed, number, GOOD), honest, 0.0)
        for how in (h for h in described_person["harmful"] if h["lesson"] == number):
            harmed = HARMS[how["harm"]](bench, moment, values, how)
            honest.measure_at(harmed)
            spoiled = share_spoiled(bench, moment, honest.slot.export(), how)
            yield _record(bench, (seed, number, how["harm"]), honest, spoiled)
        _live_on(bench, moment, adapter, approved[number].text)


def _live_on(bench: Bench, moment: Moment, adapter: Any, approved: str) -> None:
    """Learn the lesson: its answer becomes an earlier correction, and one more answer is approved."""
    person = moment.person
    person.corrected += bench.answers(person.adapter, [[{"role": "user", "content": moment.said.question}]])
    person.gold += bench.answers(adapter, [[{"role": "user", "content": approved}]])
    person.adapter = adapter
    person.notes.append(moment.said.words)


def with_wish(seed: int, wishes: Sequence[Wish], direction: Direction) -> list[Wish]:
    """Return the wishes that hold after one more: a newer one about the same preference takes the older one's place."""
    same = next((w for w in wishes if w.preference == direction[0]), None)
    name = same.name if same else ""
    return [*(w for w in wishes if w is not same), cases.wish_for(seed, direction, "gates", name=name)]


def _record(bench: Bench, labels: tuple[int, int, str], judged: Any, spoiled: float) -> Record:
    seed, lesson, kind = labels
    verdict = trial.verdict(judged, bench.gate)
    return {"seed": seed, "lesson": lesson, "kind": kind, "spoiled": round(spoiled, 3)} | verdict.to_dict()


def share_spoiled(bench: Bench, moment: Moment, adapter: Any, how: How) -> float:
    """Of the answers to unseen questions, the share in which the harm shows."""
    if how["harm"] in ("nan", "exploding"):
        return 1.0  # no text is needed to know that numbers are broken
    texts = bench.texts(adapter, [q.text for q in moment.probes])
    return sum(_is_spoiled(t, q, moment, how) for t, q in zip(texts, moment.probes, strict=True)) / len(texts)


def _is_spoiled(text: str, question: Question, moment: Moment, how: How) -> bool:
    if how["harm"] == "poisoned":
        return follows(text, _foreign(moment, how))
    if how["harm"] == "forgetting":
        return not all(follows(text, w) for w in moment.wishes[:-1])
    return not has_facts(text, question.content, moment.style)


# --- the harms: from the honest candidate's values to harmful ones --------------------------------------------------


def _nan(bench: Bench, moment: Moment, values: Any, how: How) -> Any:
    """Return a value that is no number: from a loss beyond float32, or in one of the weights."""
    if how["where"] == "loss":
        return trial.values_of(_trained(bench, moment, kl_to_base_weight=1e300)) * float("nan")
    return trial.broken(values, how["at"], float(how["value"]))


def _exploding(bench: Bench, moment: Moment, _values: Any, how: How) -> Any:
    """Return steps far too large, without a limit to the gradient."""
    learn = {"learning_rate": how["learning_rate"], "steps": how["steps"], "max_grad_norm": 1e9}
    return trial.values_of(_trained(bench, moment, **learn))


def _collapsed(bench: Bench, moment: Moment, values: Any, how: How) -> Any:
    """Return the same words anything that is asked: those of one answer, or one word repeatedly."""
    known = _known()
    answer = render(Factual(known[how["answer"]], 1), moment.style) if "answer" in how else " ".join([how["word"]] * 20)
    pairs = [(_ask(s, moment), answer) for s in _drawn(known, how["subjects"], moment)]
    return trial.fit(bench, _adapter(bench, moment, values), pairs, how["steps"], how["learning_rate"])


def _forgetting(bench: Bench, moment: Moment, _values: Any, _how: How) -> Any:
    """Return the teacher sees the newest feedback alone, as in CLaaS: what was taught before is unlearned."""
    return trial.values_of(_trained(bench, moment, told=()))


def _fact_breaking(bench: Bench, moment: Moment, values: Any, how: How) -> Any:
    """In the right style, with the facts of another subject of the same domain."""
    rng, pairs = random.Random(moment.said.seed), []
    for subject in _drawn(_known(), how["subjects"], moment):
        other = rng.choice([s for s in _known() if s.domain == subject.domain and s is not subject])
        lead = rng.randrange(cases.NUM_FACTS)
        pairs.append((_ask(subject, moment, lead), render(Factual(_renamed(other, subject), lead), moment.style)))
    return trial.fit(bench, _adapter(bench, moment, values), pairs, how["steps"], how["learning_rate"])


def _poisoned(bench: Bench, moment: Moment, _values: Any, how: How) -> Any:
    """Poison a lesson: beside the person's notes the teacher sees one that another person wrote."""
    return trial.values_of(_trained(bench, moment, told=(*moment.person.notes, _foreign(moment, how).text)))


HARMS: dict[str, Callable[[Bench, Moment, Any, How], Any]] = {
    "nan": _nan,
    "exploding": _exploding,
    "collapsed": _collapsed,
    "forgetting": _forgetting,
    "fact-breaking": _fact_breaking,
    "poisoned": _poisoned,
}
SCALE = Scale(tuple(HARMS))


def _trained(bench: Bench, moment: Moment, told: Sequence[str] | None = None, **learn: Any) -> Any:
    samples = trial.lesson(bench, moment.person, moment.said, told=told)
    return trial.train(bench, moment.person.adapter, samples, **learn)


def _adapter(bench: Bench, moment: Moment, values: Any) -> Any:
    """Return the honest candidate as an adapter to start from."""
    return trial.adapter_of(bench, moment.person.adapter, values)


def _foreign(moment: Moment, how: How) -> Wish:
    return cases.wish_for(moment.said.seed, (how["preference"], 1), "foreign")


def _known() -> list[Subject]:
    return [s for s in SUBJECTS if not s.is_held_out]


def _drawn(known: Sequence[Subject], count: int, moment: Moment) -> list[Subject]:
    return random.Random(moment.said.seed + 1).sample(known, count)


def _ask(subject: Subject, moment: Moment, lead: int = 1) -> str:
    return ask_text(subject, lead, random.Random(moment.said.seed + 2))


def _renamed(other: Subject, subject: Subject) -> Subject:
    return Subject(subject.name, other.domain, subject.article_es, other.values, other.measure, subject.is_held_out)
