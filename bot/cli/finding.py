"""One thing that `heed doctor` looked at."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """One thing looked at. `remedy` is empty where it is well; a hint's may be left undone."""

    name: str
    state: str
    remedy: str = ""
    is_hint: bool = False

    @property
    def is_ok(self) -> bool:
        """True where nothing needs doing."""
        return self.is_hint or not self.remedy

    @property
    def mark(self) -> tuple[str, str]:
        """The two letters that stand before it in a terminal, and their style: well, may be left undone, in the way."""
        if not self.remedy:
            return "ok", "green"
        return ("--", "yellow") if self.is_hint else ("!!", "bold red")
