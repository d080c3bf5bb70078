"""`make map`: writes docs/MAP.md, one line per module, from the first sentence of each module's docstring."""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MAP = Path("docs/MAP.md")
PACKAGES = ("bot", "engine", "storage", "evals", "bench", "tools")
SUFFIXES = (".py", ".js")
LEFT_OUT = ("storage/migrations/versions",)
HEAD = """\
# Where everything is

One line per module, made from the module heads by `make map` (and `make format`); change the head, not this page. A
module's tests stand at its own path below `tests/`.
"""


def first_sentence(module: Path) -> str:
    """Return the first sentence of a module's docstring, or of a script's opening comment, on one line."""
    text = module.read_text(encoding="utf-8")
    head = _opening_comment(text) if module.suffix == ".js" else ast.get_docstring(ast.parse(text)) or ""
    paragraph = " ".join(head.split("\n\n", 1)[0].split())
    return re.split(r"(?<=[\w`)\]])\.(?:\s+(?=[A-Z`])|$)", paragraph, maxsplit=1)[0].rstrip(".")


def folders(root: Path) -> Iterator[Path]:
    """Yield every folder with modules, relative to the root, in reading order."""
    for package in PACKAGES:
        found = {module.parent.relative_to(root) for module in (root / package).rglob("*") if _is_module(module)}
        yield from sorted(folder for folder in found if not str(folder).startswith(LEFT_OUT))


def lines(root: Path) -> Iterator[str]:
    """Yield the lines of the map."""
    yield from HEAD.splitlines()
    for folder in folders(root):
        modules = sorted(module for module in (root / folder).iterdir() if _is_module(module))
        package = next((module for module in modules if module.name == "__init__.py"), None)
        purpose = first_sentence(package) if package else ""
        yield from ("", f"## {folder}", "")
        if purpose:
            yield from (f"{purpose}.", "")
        yield from (f"- `{m.name}`: {first_sentence(m)}" for m in modules if m.name != "__init__.py")


def render(root: Path = ROOT) -> str:
    """Return the whole page."""
    return "\n".join(lines(root)) + "\n"


def main() -> int:
    """Write the page if it is not current."""
    page = ROOT / MAP
    is_current = page.is_file() and page.read_text(encoding="utf-8") == render()
    if not is_current:
        page.write_text(render(), encoding="utf-8")
        print(f"{MAP} is written anew")
    return 0


def _is_module(path: Path) -> bool:
    return path.suffix in SUFFIXES


def _opening_comment(script: str) -> str:
    found = re.match(r"(?://.*\n)*", script)
    return "\n".join(line.removeprefix("//") for line in found[0].splitlines()) if found else ""


if __name__ == "__main__":
    sys.exit(main())
