"""The modules of engine/ and storage/ that a piece of work enters, and its transactions, counted while it runs.

Two figures: every module of which a function is called, and the way that a reader follows. The way leaves out records,
configuration and errors, and what lies behind an interface: vLLM and the trainer behind `engine.host.vllm_host` and
`engine.host.trainer_client`, connections and the writer thread behind `storage.database`.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

from storage.database import Database, Session

ROOT = Path(__file__).parents[2]
RECORDS = {
    "engine/adapter_ref.py", "engine/errors.py", "engine/requests.py", "engine/sample.py",
    "storage/errors.py", "storage/kinds.py", "storage/tables.py",
}  # fmt: skip
INTERFACES = {"engine/host/vllm_host.py", "engine/host/trainer_client.py"}
BEHIND = ("engine/config/", "engine/host/", "engine/training/", "engine/worker/", "storage/sql/")

_is_ours: ContextVar[bool] = ContextVar("is_ours", default=False)  # set in the work's task and in those it starts


@dataclass
class Footprint:
    """Real calls, counted by the interpreter's profile hook in the event loop's thread and inside transactions."""

    modules: set[str] = field(default_factory=set)  # paths relative to the repository
    transactions: list[str] = field(default_factory=list)  # "read" or "write", in their order

    @property
    def way(self) -> set[str]:
        """The modules that a reader follows; see the head."""
        return {m for m in self.modules - RECORDS if m in INTERFACES or not m.startswith(BEHIND)}

    @property
    def rooms(self) -> set[str]:
        """The packages that the modules belong to; a module of the top level is one of its own."""
        return {str(path if len(path.parts) == 2 else path.parent) for path in map(Path, self.modules)}

    def __str__(self) -> str:
        engine = sum(module.startswith("engine/") for module in self.modules)
        counted = (
            f"{len(self.modules)} modules ({engine} in engine/), {len(self.way)} on the way, {len(self.rooms)} rooms"
        )
        return f"{counted}, {len(self.transactions)} transactions: {', '.join(self.transactions)}"

    def enter(self, frame: FrameType, event: str, _argument: Any) -> None:
        """Count a call, as `sys.setprofile` reports it, unless it is of a task that ran before."""
        if _is_ours.get():
            self.enter_thread(frame, event, None)

    def enter_thread(self, frame: FrameType, event: str, _argument: Any) -> None:
        """Count a call in a thread that works for this piece of work alone."""
        if event == "call" and (module := _module(frame.f_code)):
            self.modules.add(module)


@contextmanager
def footprint(database: Database) -> Iterator[Footprint]:
    """Count what the block enters, and the tasks it starts; not what runs beside it, nor the threads of vLLM."""
    counted = Footprint()
    with pytest.MonkeyPatch.context() as patch:
        for kind in ("read", "write"):
            patch.setattr(database, kind, _counting(counted, kind, getattr(database, kind)))
        before = _is_ours.set(True)
        sys.setprofile(counted.enter)
        try:
            yield counted
        finally:
            sys.setprofile(None)
            _is_ours.reset(before)


def _counting(counted: Footprint, kind: str, real: Callable[..., Any]) -> Callable[..., Any]:
    def run(work: Callable[[Session], Any]) -> Any:
        if not _is_ours.get():
            return real(work)

        def profiled(s: Session) -> Any:
            sys.setprofile(counted.enter_thread)
            try:
                return work(s)
            finally:
                sys.setprofile(None)

        counted.transactions.append(kind)
        return real(profiled)

    return run


def _module(code: CodeType) -> str | None:
    path = Path(code.co_filename)
    inside = path.is_relative_to(ROOT) and path.relative_to(ROOT)
    return str(inside) if inside and inside.parts[0] in ("engine", "storage") else None
