"""The house's figures and its language, read off the source with ast.

A rule that has an exception names it here, with the reason.
"""

import ast
import re
import statistics
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.test_architecture import ROOT, sources, tree_of

Function = ast.FunctionDef | ast.AsyncFunctionDef
Documented = Function | ast.ClassDef | ast.Module

MAX_MODULE_LINES = 400
MAX_FUNCTION_LINES = 40
MAX_P95_FUNCTION_LINES = 35
MAX_MEDIAN_FUNCTION_LINES = 8
MAX_PARAMETERS = 6

# A docstring says what the thing does or is; it asks no riddle, and the people in it have names.
RIDDLE = re.compile(r"(What|Who|Whose|Whether|Where|Which)\b")
NAMELESS = re.compile(r"\b([Ss]omebody|[Nn]obody|[Ww]hoever|[Ww]hatever|again and again)\b")


def functions(source: Path) -> Iterator[Function]:
    """Yield every function of a module, methods and inner functions included."""
    yield from (node for node in ast.walk(tree_of(source)) if isinstance(node, Function))


def place(source: Path, node: Function | ast.ClassDef) -> str:
    """Return where a definition stands, for a failing test's message."""
    return f"{source}:{node.lineno} {node.name}"


def body_lines(node: Function) -> int:
    """Return the lines of a function's body without its docstring."""
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def num_parameters(node: Function) -> int:
    """Return how many parameters a function has besides self and cls."""
    arguments = node.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return len([argument for argument in named if argument.arg not in ("self", "cls")])


def docstrings(source: Path) -> Iterator[tuple[str, str]]:
    """Yield each docstring of a module with its place."""
    tree = tree_of(source)
    for node in ast.walk(tree):
        if isinstance(node, Documented):
            text = ast.get_docstring(node)
            if text:
                yield (str(source) if isinstance(node, ast.Module) else place(source, node)), text


def test_no_module_is_long() -> None:
    """No module has more than 400 lines."""
    lengths = {str(source): len((ROOT / source).read_text(encoding="utf-8").splitlines()) for source in sources()}
    assert {source: length for source, length in lengths.items() if length > MAX_MODULE_LINES} == {}


def test_no_function_is_long() -> None:
    """No function body is longer than 40 lines, 95 % are at most 35, half are at most 8 (docstrings not counted)."""
    found = sorted((body_lines(node), place(source, node)) for source in sources() for node in functions(source))
    lengths = [length for length, _ in found]
    assert [where for length, where in found if length > MAX_FUNCTION_LINES] == []
    assert lengths[int(len(lengths) * 0.95)] <= MAX_P95_FUNCTION_LINES
    assert statistics.median(lengths) <= MAX_MEDIAN_FUNCTION_LINES


def test_no_function_takes_many_things() -> None:
    """No function has more than six parameters: what belongs together comes as one record."""
    many = [
        place(source, node)
        for source in sources()
        for node in functions(source)
        if num_parameters(node) > MAX_PARAMETERS
    ]
    assert many == []


def test_a_class_name_is_given_once() -> None:
    """No two classes of the packages share a name."""
    classes = defaultdict(list)
    for source in sources():
        for node in ast.walk(tree_of(source)):
            if isinstance(node, ast.ClassDef):
                classes[node.name].append(str(source))
    assert {name: where for name, where in classes.items() if len(where) > 1} == {}


def test_docstrings_are_no_riddles() -> None:
    """No docstring opens with a question word, and the people in docstrings are called what they are."""
    riddles = [
        f"{where}: {text.splitlines()[0]}"
        for source in sources()
        for where, text in docstrings(source)
        if RIDDLE.match(text) or NAMELESS.search(text)
    ]
    assert riddles == []


@pytest.mark.parametrize("text", ["Whether it is on.", "What nobody sees.", "Where it stands.", "Keep whoever asked."])
def test_the_language_rule_sees_riddles(text: str) -> None:
    """The rule above recognises a question word at the beginning and people without a name anywhere."""
    assert RIDDLE.match(text) or NAMELESS.search(text)
