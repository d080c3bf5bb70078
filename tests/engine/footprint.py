"""The modules of engine/ and storage/ that a piece of work enters, and its transactions, counted while it runs."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

from storage.database import Database, Session

ROOT = Path(__file__).parents[2]


@dataclass
class Footprint:
    """Real calls, counted by the interpreter's profile hook in the event loop's thread and inside transactions."""

    modules: set[str] = field(default_factory=set)  # paths relative to the repository
    transactions: list[str] = field(default_factory=list)  # "read" or "write", in their order

    @property
    def rooms(self) -> set[str]:
        """The packages that the modules belong to; a module of the top level is one of its own."""
        return {str(path if len(path.parts) == 2 else path.parent) for path in map(Path, self.modules)}

    def __str__(self) -> str:
        engine = sum(module.startswith("engine/") for module in self.modules)
        counted = f"{len(self.modules)} modules ({engine} in engine/), {len(self.rooms)} rooms"
        return f"{counted}, {len(self.transactions)} transactions: {', '.join(self.transactions)}"

    def enter(self, frame: FrameType, event: str, _argument: Any) -> None:
        """Count a call, as `sys.setprofile` reports it."""
        if event == "call" and (module := _module(frame.f_code)):
            self.modules.add(module)


@contextmanager
def footprint(database: Database) -> Iterator[Footprint]:
    """Count what the block enters. Threads of vLLM and the worker's processes are not counted."""
    counted = Footprint()
    with pytest.MonkeyPatch.context() as patch:
        for kind in ("read", "write"):
            patch.setattr(database, kind, _counting(counted, kind, getattr(database, kind)))
        sys.setprofile(counted.enter)
        try:
            yield counted
        finally:
            sys.setprofile(None)


def _counting(counted: Footprint, kind: str, real: Callable[..., Any]) -> Callable[..., Any]:
    def run(work: Callable[[Session], Any]) -> Any:
        def profiled(s: Session) -> Any:
            sys.setprofile(counted.enter)
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
