"""`make map` also writes docs/TEXTS.md: every text that people see, one table per surface, gathered from the code.

A text is a string with at least two words, or a page's label, that is no docstring, no log line, no pattern and no
statement in SQL; what is filled in later stands in braces.
"""

import ast
import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = Path("docs/TEXTS.md")
SURFACES: dict[str, tuple[str, ...]] = {  # files or folders
    "Chats": (
        "bot/commands", "bot/messaging", "bot/platforms", "bot/access/accounts.py", "bot/access/consent.py",
        "bot/access/export.py", "bot/access/outside.py", "bot/core",
    ),
    "What becomes of a lesson": ("engine/learning", "engine/consolidation", "engine/gates", "engine/adapters"),
    "Page": ("bot/http/web/static/texts.js", "bot/http/web/templates"),
    "Dashboards": ("bot/http/admin",),
    "Terminal": ("bot/cli/terminal.py", "bot/cli/waiting.py", "bot/cli/client.py"),
    "Command line": (
        "bot/cli/main.py", "bot/cli/doctor.py", "bot/cli/backups.py", "bot/cli/local_admin.py", "bot/cli/models.py",
        "bot/cli/calibrate.py", "bot/cli/cluster.py", "bot/cli/serving.py", "bot/cli/console.py",
        "bot/app.py", "bot/config.py",
    ),
    "HTTP": ("bot/http/protocol/messages.py", "bot/http/claas", "bot/http/openai", "bot/access/api_keys.py"),
}  # fmt: skip
HEAD = """\
# Every text that people see

One table per surface, gathered from the code by `make map`; change the code, not this page. What stands in braces is
filled in when it is shown.
"""
_LOGS = {"debug", "info", "warning", "error", "exception", "log"}
_NAMES = {"name", "style"}  # of tasks, of letters
_NO_TEXT = re.compile(
    r"(?:SELECT|UPDATE|DELETE|INSERT|CREATE|PRAGMA|BEGIN|bold|dim)\b|.*(?:\(\?|\\[sdwb.]|<[a-z]+[ >])", re.DOTALL
)
_WORDS = re.compile(r"[A-Za-z{/][^\n]*[ \n][\w{/`<\"']|[A-Z][a-z]+\.$", re.DOTALL)
_SCRIPT = re.compile(r"//[^\n]*|\"((?:[^\"\\\n]|\\.)*)\"|`((?:[^`\\]|\\.)*)`")
_ATTRIBUTES = ("title", "aria-label", "placeholder", "alt")


def python_texts(source: str) -> Iterator[str]:
    """Yield the texts of a module, in order."""
    tree = ast.parse(source)
    left_out: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            left_out.add(id(node.value))  # a docstring
        elif _is_for_no_one(node):
            left_out |= {id(part) for part in ast.walk(node)}
        elif isinstance(node, ast.JoinedStr):
            left_out |= {id(part) for part in ast.walk(node) if part is not node}
    found = [node for node in ast.walk(tree) if id(node) not in left_out]
    for node in sorted((n for n in found if isinstance(n, ast.JoinedStr | ast.Constant)), key=_place):
        text = _text(node)
        if _WORDS.match(text) and not _NO_TEXT.match(text):
            yield text


def _is_for_no_one(node: ast.AST) -> bool:
    """Return True for a log line, and for the name of a task or a style."""
    if isinstance(node, ast.keyword):
        return node.arg in _NAMES
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _LOGS


def _place(node: ast.expr) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _text(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(map(_text, node.values))
    return f"{{{_name(node.value)}}}" if isinstance(node, ast.FormattedValue) else ""


def _name(value: ast.expr) -> str:
    """Return a short name for what is filled in."""
    source = ast.unparse(value)
    return source if re.fullmatch(r"[\w.]+", source) else "…"


def script_texts(source: str) -> Iterator[str]:
    """Yield the strings of a script, without what it imports."""
    for found in _SCRIPT.finditer(re.sub(r"^import .*$", "", source, flags=re.MULTILINE)):
        text = re.sub(r"\$\{([^}]*)\}", r"{\1}", found[1] or found[2] or "")
        if re.search("[A-Za-z]{2}", text):
            yield text


class _Words(HTMLParser):
    """The words of a template, and of the attributes that are read aloud."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def handle_starttag(self, _: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep the attributes that people see or hear."""
        self.texts += [value for name, value in attrs if name in _ATTRIBUTES and value]

    def handle_data(self, data: str) -> None:
        """Keep the words between tags."""
        self.texts.append(data)


def template_texts(source: str) -> Iterator[str]:
    """Yield the words of a template."""
    words = _Words()
    words.feed(re.sub(r"\{\{-?\s*(.*?)\s*-?\}\}", r"{\1}", re.sub(r"\{[%#].*?[%#]\}", "\n", source, flags=re.DOTALL)))
    for text in words.texts:
        for line in text.splitlines():
            if re.search("[A-Za-z]{2}", re.sub(r"\{[^}]*\}", "", line)):
                yield line


READERS = {".py": python_texts, ".js": script_texts, ".html": template_texts}


def lines(root: Path) -> Iterator[str]:
    """Yield the lines of the page."""
    yield from HEAD.splitlines()
    for surface, places in SURFACES.items():
        yield from ("", f"## {surface}", "", "| text | where |", "|---|---|")
        for file in _files(root, places):
            seen: set[str] = set()
            for text in READERS[file.suffix](file.read_text(encoding="utf-8")):
                shown = " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
                if shown not in seen:
                    yield f"| {shown} | `{file.relative_to(root)}` |"
                seen.add(shown)


def _files(root: Path, places: tuple[str, ...]) -> Iterator[Path]:
    for place in places:
        path = root / place
        yield from sorted(p for p in path.rglob("*") if p.suffix in READERS) if path.is_dir() else [path]


def render(root: Path = ROOT) -> str:
    """Return the whole page."""
    return "\n".join(lines(root)) + "\n"


def main() -> int:
    """Write the page if it is not current."""
    page = ROOT / PAGE
    if not page.is_file() or page.read_text(encoding="utf-8") != render():
        page.write_text(render(), encoding="utf-8")
        print(f"{PAGE} is written anew")
    return 0


if __name__ == "__main__":
    sys.exit(main())
