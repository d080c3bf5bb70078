"""evals.reading: the figures that are made of readings."""

import signal
import subprocess
import sys
from pathlib import Path

from engine.reading.probe import Choice, MeaningProbe, ReactionReading
from engine.reading.reactions import LabelledReaction
from evals.reading import summarise
from storage.kinds import Meaning


def read(label: Meaning, *, is_sure: bool) -> ReactionReading:
    """Return a reading."""
    return ReactionReading(label, 0.5, dict.fromkeys(Meaning, 0.2), is_sure)


def test_figures_are_shares_by_language_with_their_targets() -> None:
    """Right ones, those read surely, and of these the right ones; wrong ones are listed."""
    reactions = [
        LabelledReaction("en", Meaning.WISH, "too long"),
        LabelledReaction("en", Meaning.REMARK, "no, Bern"),
        LabelledReaction("de", Meaning.THANKS, "danke"),
    ]
    readings = [read(Meaning.WISH, is_sure=True), read(Meaning.WISH, is_sure=False), read(Meaning.THANKS, is_sure=True)]
    probe = MeaningProbe(Choice((0,), 1e-3, 1.0, 0.5, 0.9), *[None] * 3)  # type: ignore[arg-type]
    summary = summarise(reactions, readings, probe)
    assert list(summary["languages"]) == ["en", "de"]
    english = summary["languages"]["en"]
    assert (english["texts"], english["right"], english["target"]) == (2, 0.5, 0.93)
    assert (english["sure"], english["right_if_sure"]) == (0.5, 1.0)
    assert summary["confusion"]["remark"]["wish"] == 1
    assert [row[4] for row in summary["wrong"]] == ["no, Bern"]


LOADS_FOR_EVER = """
import time
from evals import reading
reading.LoadedModel = lambda folder: (print("loads", flush=True), time.sleep(120))
reading.main([{out!r}])
"""


def test_sigterm_ends_it_at_once(tmp_path: Path) -> None:
    """Also while a thread computes, which no one can interrupt."""
    program = (sys.executable, "-c", LOADS_FOR_EVER.format(out=f"out={tmp_path}"))
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "loads\n"
        process.terminate()
        try:
            assert process.wait(timeout=20) == -signal.SIGTERM
        finally:
            process.kill()
