"""steps.jsonl: what an evaluation has seen, line by line, so that one that breaks off goes on where it was.

Owns the file. Its first line says what is measured, then comes a line for every record, one for every unit of work that
is done, and one at the end. Invariants: a line is on disk before the work goes on; of a unit that broke off nothing is
kept when the run goes on; what other arguments have begun and not finished is not overwritten unasked.
"""

import json
import secrets
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO

from evals.errors import ArgumentError

Record = dict[str, Any]
_HEAD, _DONE, _END = "run", "done", "end"
_OF_THIS_RUN = ("parallel", "settle_s", "out", "fresh", "check")  # settings that no figure depends on


class Journal:
    """The record of a run; without a file it is kept in memory alone."""

    def __init__(self, run_id: str = "", records: Sequence[Record] = (), done: Mapping[str, int] | None = None) -> None:
        """`run_id` keeps this run's users apart from an earlier run's; `done`: units with their steps of the bar."""
        self.run_id = run_id or secrets.token_hex(3)
        self.records = list(records)
        self.done = dict(done or {})
        self.is_resumed = bool(run_id)
        self._lines: TextIO | None = None

    def write_to(self, path: Path, measures: Mapping[str, Any]) -> None:
        """From now on, keeps everything in a file that begins with what is known already."""
        whole = path.with_suffix(".new")
        self._lines = whole.open("w", encoding="utf-8")
        self._write({_HEAD: {"id": self.run_id, "measures": measures}})
        for record in self.records:
            self._write(record)
        for unit, steps in self.done.items():
            self._write({_DONE: unit, "steps": steps})
        whole.replace(path)

    def record(self, record: Record) -> None:
        """Keep one observation."""
        self.records.append(record)
        self._write(record)

    def finish(self, unit: str, steps: int) -> None:
        """Note that a unit is done; it is not done again."""
        self.done[unit] = steps
        self._write({_DONE: unit, "steps": steps})

    def end(self) -> None:
        """Note that all of it is done: the next run begins anew."""
        self._write({_END: True})

    def close(self) -> None:
        """Close the file."""
        if self._lines is not None:
            self._lines.close()

    def _write(self, line: Mapping[str, Any]) -> None:
        if self._lines is not None:
            self._lines.write(json.dumps(line, ensure_ascii=False) + "\n")
            self._lines.flush()


def measured(config: Any) -> dict[str, Any]:
    """Return the settings that the figures depend on: a run that breaks off goes on if these are the same."""
    return {key: value for key, value in asdict(config).items() if key not in _OF_THIS_RUN}


def begun(config: Any, steps: Path, data: Path) -> Journal:
    """Return a new journal, or what an interrupted run with the same settings has left.

    `data` is the folder of the measured heed: if it is gone, and no heed runs elsewhere (`url`), the run begins anew.
    Raises ArgumentError if what is left belongs to other settings.
    """
    found = None if config.fresh else unfinished(steps, measured(config))
    if found is None or not (config.url or data.is_dir()):
        shutil.rmtree(data, ignore_errors=True)
        found = Journal()
    found.write_to(steps, measured(config))
    return found


def resumed(config: Any, steps: Path) -> Journal:
    """Return the same of a run whose units have each a heed of their own: nothing but the file is gone on with."""
    found = (None if config.fresh else unfinished(steps, measured(config))) or Journal()
    found.write_to(steps, measured(config))
    return found


def unfinished(path: Path, measures: Mapping[str, Any]) -> Journal | None:
    """Return what a run with the same arguments has left in the file, or None if it finished, or where there is none.

    Raises ArgumentError for what a run with other arguments has left, and for a file that is no such file.
    """
    lines = _read(path) if path.is_file() else []
    if not lines or _END in lines[-1]:
        return None
    head = lines[0].get(_HEAD)
    if head is None:
        raise ArgumentError(f"{path} is not of this heed: move it away, or give fresh=true")
    if head["measures"] != json.loads(json.dumps(measures)):
        others = _difference(head["measures"], json.loads(json.dumps(measures)))
        raise ArgumentError(
            f"{path} is of a run with other arguments ({others}) that was not finished: "
            "give those to go on with it, another out=, or fresh=true to begin anew"
        )
    last_done = max((place for place, line in enumerate(lines) if _DONE in line), default=0)
    kept = lines[1 : last_done + 1]
    done = {line[_DONE]: int(line["steps"]) for line in kept if _DONE in line}
    return Journal(head["id"], [line for line in kept if _DONE not in line], done)


def _read(path: Path) -> list[Record]:
    """Return the lines; a last one that was cut off is left away. Raises ArgumentError for any other that is broken."""
    texts = path.read_text(encoding="utf-8", errors="replace").splitlines()
    lines = []
    for number, text in enumerate(texts, 1):
        try:
            line = json.loads(text)
        except ValueError:
            line = None
        if isinstance(line, dict):
            lines.append(line)
        elif number < len(texts):
            raise ArgumentError(f"{path} cannot be read at line {number}: move it away, or give fresh=true")
    return lines


def _difference(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> str:
    keys = [key for key in {**theirs, **ours} if theirs.get(key) != ours.get(key)]
    return ", ".join(f"{key}={theirs.get(key)}" for key in keys)
