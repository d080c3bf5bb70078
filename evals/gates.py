"""`python -m evals gates [key=value ...]`: do the gates stop harmful candidates and let good ones through?

Owns the walk through the committed set (gates.json): twenty people with five corrections each, every one a good
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
from rich.table import Table

from engine.config import GateConfig
from engine.pocket import WEIGHTS, trial
from engine.pocket.exchanges import ask_text
from engine.pocket.style import DEFAULT, Direction, Factual, Style, has_facts, render
from engine.pocket.subjects import SUBJECTS, Subject
from engine.pocket.trial import Bench, Correction, TrialPerson
from engine.pocket.wishes import apply
from evals import cases, command, picture, provenance, report
from evals.arguments import described
from evals.cases import Question, Wish
from evals.errors import ArgumentError
from evals.report import Picture
from evals.study import Advance
from evals.verdict import follows

SET = Path(__file__).with_name("gates.json")
GOOD = "good"
TARGET_STOPPED, TARGET_LET_THROUGH = 1.0, 0.98
SIGNAL_S = 0.01  # between two people, so that a signal can end the run
Record = dict[str, Any]
How = dict[str, Any]


@dataclass(frozen=True)
class GatesConfig:
    """The arguments of the study."""

    people: int = described(20, "how many people of the set to walk through")
    probes: int = described(6, "questions on which a harm must show")
    out: str = described("evals/results", "folder for gates.jsonl, gates.json, gates.html and gates.png")
    check: bool = described(False, "exit with 1 where a target is missed")

    def __post_init__(self) -> None:
        """Raise ArgumentError on a value nothing can be measured with."""
        if not 1 <= self.people <= len(read_set()):
            raise ArgumentError(f"people wants a number from 1 to {len(read_set())}, not {self.people}")
        if not 1 <= self.probes <= 60:
            raise ArgumentError(f"probes wants a number from 1 to 60, not {self.probes}")


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
    return command.execute("python -m evals gates", GatesConfig, words, run)


async def run(config: GatesConfig, console: Console) -> int:
    """Make and judges every candidate, prints the table; returns the exit code. Blocking between two people."""
    log, before = Path(config.out) / "gates.jsonl", provenance.machine()
    done = [json.loads(line) for line in log.read_text().splitlines()] if log.is_file() else []
    people = read_set()[: config.people]
    missing = [p for p in people if p["seed"] not in {r["seed"] for r in done}]
    if missing:
        with command.progress_bar() as progress:
            advance = command.Bar(progress, len(missing))
            for records in _walked(missing, log, config.probes, advance):
                done += records
                await asyncio.sleep(SIGNAL_S)
    summary = in_halves([r for r in done if r["seed"] in {p["seed"] for p in people}])
    made = provenance.made("heed eval gates", config, provenance.POCKET, before)
    command.write_json(Path(config.out) / "gates.json", made | summary)
    report.write(Path(config.out), "What the gates stop", {}, [table(summary)], [drawn(summary)], "gates.html")
    console.print(table(summary))
    return 1 if config.check and not summary["is_reached"] else 0


def _walked(people: Sequence[Record], log: Path, num_probes: int, advance: Advance) -> Iterator[list[Record]]:
    bench = Bench(WEIGHTS)
    for described_person in people:
        records = list(walk(bench, described_person, num_probes))
        with log.open("a", encoding="utf-8") as lines:
            lines.writelines(json.dumps(r) + "\n" for r in records)
        advance(f"person {described_person['seed']}")
        yield records


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
        yield _record(seed, number, GOOD, honest, 0.0)
        for how in (h for h in described_person["harmful"] if h["lesson"] == number):
            harmed = HARMS[how["harm"]](bench, moment, values, how)
            judged = trial.measure(bench, person.adapter, samples, harmed)
            spoiled = share_spoiled(bench, moment, judged.slot.export(), how)
            yield _record(seed, number, how["harm"], judged, spoiled)
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


def _record(seed: int, lesson: int, kind: str, judged: Any, spoiled: float) -> Record:
    verdict = trial.verdict(judged, GateConfig())
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


# --- what comes of it -------------------------------------------------------------------------------------------


def in_halves(records: Sequence[Record]) -> Record:
    """Return the summary of the half that is reported and, below `set_on`, of the half that bounds are set on."""
    halves = [[r for r in records if is_reported(r) is wanted] for wanted in (True, False)]
    reported, set_on = (summarise(half) for half in halves)
    return reported | {"set_on": set_on | {"figures": figures_of(halves[1])}}


def is_reported(record: Record) -> bool:
    """Return True for a candidate of the half that is reported: every other lesson, with the harms in its place."""
    return (int(record["seed"]) + int(record["lesson"])) % 2 == 1


def figures_of(records: Sequence[Record]) -> Record:
    """Return the lowest and highest of the good candidates for each figure of the gates: a bound stands beyond both."""
    found: dict[str, list[float]] = {}
    for record in (r for r in records if r["kind"] == GOOD):
        for name, value in record.get("figures", {}).items():
            if isinstance(value, int | float):
                found.setdefault(name, []).append(float(value))
    return {name: [min(values), max(values)] for name, values in found.items()}


def summarise(records: Sequence[Record]) -> Record:
    """Per kind: how many there are, how many were refused, by which gates; and whether both targets are reached."""
    kinds = {kind: _of_kind([r for r in records if r["kind"] == kind]) for kind in (GOOD, *HARMS)}
    harmful = [k for name, k in kinds.items() if name != GOOD]
    stopped = _share(sum(k["refused"] for k in harmful), sum(k["number"] for k in harmful))
    let_through = _share(kinds[GOOD]["number"] - kinds[GOOD]["refused"], kinds[GOOD]["number"])
    return {
        "kinds": kinds,
        "stopped": stopped,
        "let_through": let_through,
        "is_reached": stopped >= TARGET_STOPPED and let_through >= TARGET_LET_THROUGH,
    }


def _of_kind(records: Sequence[Record]) -> Record:
    refused = [r for r in records if not r["accepted"]]
    by_gate = [name for r in refused for name, is_passed in r["checks"].items() if not is_passed]
    wrong = [r for r in records if r["accepted"] == (r["kind"] != GOOD)]
    return {
        "number": len(records),
        "refused": len(refused),
        "without_effect": sum(r["spoiled"] == 0 for r in records if r["kind"] != GOOD),
        "by_gate": {name: by_gate.count(name) for name in dict.fromkeys(by_gate)},
        "wrong": [[r["seed"], r["lesson"]] for r in wrong],
    }


def drawn(summary: Record) -> Picture:
    """Of each kind the share that was refused."""
    refused = [_share(found["refused"], found["number"]) for found in summary["kinds"].values()]
    png = picture.bars(list(summary["kinds"]), {"refused": refused})
    return Picture("gates.png", "Refused", "Of the candidates of each kind, the share that the gates refused.", png)


def _share(count: int, total: int) -> float:
    return count / total if total else 0.0


def table(summary: Record) -> Table:
    """Return the table a person reads."""
    shown = Table(title="What the gates stop and let through (the half that set no bound)", title_justify="left")
    for title in ("candidates", "made", "refused", "harm did not show", "refused by", "judged wrongly"):
        shown.add_column(title)
    for kind, found in summary["kinds"].items():
        gates = ", ".join(f"{name} {count}" for name, count in found["by_gate"].items())
        numbers = (str(found[key]) for key in ("number", "refused", "without_effect"))
        shown.add_row(kind, *numbers, gates, " ".join(f"{p},{n}" for p, n in found["wrong"]))
    shown.caption = (
        f"harmful stopped {100 * summary['stopped']:.1f} % (100 wanted), "
        f"good let through {100 * summary['let_through']:.1f} % (98 wanted)"
    )
    return shown
