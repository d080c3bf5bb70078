"""The settings of `heed bench gpu`."""

from dataclasses import dataclass

from evals.arguments import described
from evals.errors import ArgumentError

PARTS = ("lesson", "serving")
MOST_ADAPTERS = 256


@dataclass(frozen=True)
class GpuBenchConfig:
    """The arguments of `heed bench gpu`."""

    model: str = described("", "a model's folder (empty: Qwen3-8B's shape with random weights)")
    only: tuple[str, ...] = described(PARTS, "lesson (needs no vLLM), serving (start, decoding, gaps, memory)")
    lessons: int = described(5, "lessons timed, behind one that is not counted")
    adapters: tuple[int, ...] = described((0, 1, 16, 64), "people answered side by side, each by another adapter")
    streams: int = described(64, "answers written side by side")
    rounds: int = described(3, "how often each number of adapters is timed, in turns")
    tokens: int = described(128, "of each answer at most")
    device: str = described("cuda", "where a lesson is computed; cpu tries the command out")
    seed: int = described(0, "which rows, questions and corrections")
    out: str = described("bench/results", "folder for gpu.json")

    def __post_init__(self) -> None:
        """Raise ArgumentError on a value nothing can be measured with."""
        unknown = [part for part in self.only if part not in PARTS]
        if unknown or not self.only:
            raise ArgumentError(f"only wants some of {', '.join(PARTS)}, not {', '.join(unknown) or 'nothing'}")
        for key, high in (("lessons", 100), ("streams", 256), ("rounds", 100), ("tokens", 4096)):
            if not 1 <= getattr(self, key) <= high:
                raise ArgumentError(f"{key} wants a number from 1 to {high}, not {getattr(self, key)}")
        if not self.adapters or not all(0 <= count <= MOST_ADAPTERS for count in self.adapters):
            raise ArgumentError(f"adapters wants numbers from 0 to {MOST_ADAPTERS}")
        if self.device not in ("cuda", "cpu"):
            raise ArgumentError(f"device wants cuda or cpu, not {self.device}")
