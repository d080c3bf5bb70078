"""`heed eval reading [key=value ...]`: does heed read what a person meant by a reaction to an answer?

Fits a model's probe to the shipped reactions, or takes the one that is there, and reads texts with it that nothing was
fitted or chosen on (`reactions_held_out.tsv`: other wordings, other subjects; one author wrote both sets). The
model is loaded by itself; no heed is started. Results go to reading.json.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from engine.host.model_files import fingerprint, local_model_folder
from engine.host.trainer_client import States
from engine.pocket import WEIGHTS
from engine.prompts.builder import PromptBuilder
from engine.reading import store
from engine.reading.probe import MEANINGS, MeaningProbe, ReactionReading
from engine.reading.reactions import LabelledReaction, read_reactions
from engine.reading.reader import ReactionReader
from engine.sample import Passage
from evals import command, provenance
from evals.arguments import described

HELD_OUT = Path(__file__).with_name("reactions_held_out.tsv")
TARGETS = {"en": 0.93}
TARGET_ELSEWHERE = 0.85
MAX_TOKENS = 2048
Record = dict[str, Any]


@dataclass(frozen=True)
class ReadingConfig:
    """The arguments of the study."""

    model: str = described(str(WEIGHTS), "folder or hub name of the model that reads")
    fit: bool = described(True, "fit a probe now, instead of taking the one that is there")
    keep: str = described("", "data directory that a fitted probe is written into; empty: nowhere")
    out: str = described("evals/results", "folder for reading.json")
    check: bool = described(False, "exit with 1 where a target is missed")


class LoadedModel:
    """A model in this process, asked as the trainer in vLLM's worker is."""

    def __init__(self, folder: Path) -> None:
        """Blocking: loads the weights."""
        from engine.training.model import load_tokenizer, load_training_model

        self._model = load_training_model(folder, folder.name)
        self.prompts = PromptBuilder(load_tokenizer(folder), MAX_TOKENS)

    async def states(self, passages: Sequence[Passage], depths: Sequence[float]) -> States:
        """Return the pooled states of the passages."""
        from engine.training.pooling import pooled_states

        found: States = (await asyncio.to_thread(pooled_states, self._model, passages, depths)).numpy()
        return found


def main(words: Sequence[str]) -> int:
    """Run the command line. Return the exit code."""
    return command.execute("heed eval reading", ReadingConfig, words, measure, is_killed=True)


async def measure(config: ReadingConfig, console: Console) -> int:
    """Read the held-out texts. Return 1 where a target is to be checked and missed."""
    before = provenance.machine()
    folder = await asyncio.to_thread(local_model_folder, config.model, Path(config.keep or config.out))
    mark = await asyncio.to_thread(fingerprint, folder)
    loaded = await asyncio.to_thread(LoadedModel, folder)
    known = None if config.fit else await asyncio.to_thread(store.find, mark, Path(config.keep or "."))
    reader = ReactionReader(loaded, loaded.prompts, known)
    probe = known or await reader.fit(read_reactions())
    if config.keep and known is None:
        store.keep(probe, mark, Path(config.keep))
    held_out = read_reactions(HELD_OUT)
    summary = summarise(held_out, await reader.read_all([reaction.text for reaction in held_out]), probe)
    made = await asyncio.to_thread(provenance.made, "heed eval reading", config, str(folder), before, runs_heed=False)
    written = made | {"model": folder.name, "fingerprint": mark} | summary
    command.write_json(Path(config.out) / "reading.json", written)
    console.print(languages_table(summary), confusion_table(summary))
    return int(config.check and any(row["right"] < row["target"] for row in summary["languages"].values()))


def summarise(
    reactions: Sequence[LabelledReaction], readings: Sequence[ReactionReading], probe: MeaningProbe
) -> Record:
    """Return the figures: by language, of what was read surely, and what was taken for what."""
    pairs = list(zip(reactions, readings, strict=True))
    languages = sorted({reaction.language for reaction in reactions}, key=lambda name: (name != "en", name))
    confusion = Counter((reaction.meaning, reading.label) for reaction, reading in pairs)
    return {
        "probe": asdict(probe.choice),
        "num_fitted": len(read_reactions()),
        "languages": {name: _row(name, [pair for pair in pairs if pair[0].language == name]) for name in languages},
        "confusion": {a.value: {b.value: confusion[a, b] for b in MEANINGS} for a in MEANINGS},
        "wrong": [
            [r.language, r.meaning, reading.label, round(reading.margin, 2), r.text]
            for r, reading in pairs
            if r.meaning != reading.label
        ],
    }


def _row(language: str, pairs: Sequence[tuple[LabelledReaction, ReactionReading]]) -> Record:
    is_right = [reaction.meaning == reading.label for reaction, reading in pairs]
    sure = [right for right, (_, reading) in zip(is_right, pairs, strict=True) if reading.is_sure]
    return {
        "texts": len(pairs),
        "right": sum(is_right) / len(pairs),
        "target": TARGETS.get(language, TARGET_ELSEWHERE),
        "sure": len(sure) / len(pairs),
        "right_if_sure": sum(sure) / len(sure) if sure else None,
    }


def languages_table(summary: Record) -> Table:
    """Return the figures by language."""
    table = Table("language", "texts", "right", "target", "read surely", "right of those", title="Held-out reactions")
    for name, row in summary["languages"].items():
        of_sure = "-" if row["right_if_sure"] is None else f"{row['right_if_sure']:.1%}"
        cells = (f"{row['right']:.1%}", f"{row['target']:.0%}", f"{row['sure']:.1%}", of_sure)
        table.add_row(name, str(row["texts"]), *cells)
    return table


def confusion_table(summary: Record) -> Table:
    """Return what was taken for what, all languages together."""
    table = Table("meant", *MEANINGS, title="Taken for")
    for meaning, row in summary["confusion"].items():
        table.add_row(meaning, *(str(row[other]) for other in MEANINGS))
    return table
