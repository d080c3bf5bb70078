"""Does the Python code in an answer compute Fibonacci numbers? The code is run, apart from everything else.

Owns the run of code that a model wrote. Invariants: of an answer only its function definitions are run, without
imports, in a process of their own with bounded time and memory, no files and a handful of built-in functions; code that
does not fit into this, or that fails in any way, computes nothing.
"""

import ast
import json
import re
import subprocess
import sys

NUMBERS = {0: 0, 1: 1, 10: 55}
NAMES = ("fib", "fibonacci")  # looked for first; otherwise the first function counts
TIMEOUT_S = 5.0
_FENCED = re.compile(r"```(?:python|py)?\s*\n(.*?)(?:```|\Z)", re.DOTALL)
_ATTRIBUTES = {"append", "extend", "get", "insert", "items", "keys", "pop", "values"}  # none leads out of the sandbox
_BUILTINS = (
    "abs", "bool", "dict", "enumerate", "float", "int", "isinstance", "len", "list", "max", "min", "range", "reversed",
    "round", "set", "str", "sum", "tuple", "zip", "ValueError", "TypeError", "Exception",
)  # fmt: skip
_RUNNER = f"""
import builtins, json, resource, sys
resource.setrlimit(resource.RLIMIT_CPU, (1, 1))
resource.setrlimit(resource.RLIMIT_AS, (1 << 28, 1 << 28))
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
name, source = json.load(sys.stdin)
scope = {{"__builtins__": {{n: getattr(builtins, n) for n in {_BUILTINS!r}}} | {{"print": lambda *a, **k: None}}}}
exec(compile(source, "answer", "exec"), scope)
sys.stdout.write(json.dumps([scope[name](n) for n in {tuple(NUMBERS)!r}]))
"""


def computes_fibonacci(answer: str) -> bool:
    """Return True if the answer's function gives f(0) = 0, f(1) = 1 and f(10) = 55. Blocking."""
    functions = _functions(answer)
    if not functions:
        return False
    source = "\n".join(ast.unparse(function) for function in functions)
    return _values(_name(functions), source) == list(NUMBERS.values())


def _functions(answer: str) -> list[ast.FunctionDef]:
    """Return the functions that an answer defines; none if any of its code is not to be run."""
    found = _FENCED.search(answer)
    try:
        tree = ast.parse(found[1] if found else answer)
    except (SyntaxError, ValueError, RecursionError):
        return []
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    return functions if all(_is_harmless(node) for f in functions for node in ast.walk(f)) else []


def _is_harmless(node: ast.AST) -> bool:
    match node:
        case ast.Import() | ast.ImportFrom():
            return False
        case ast.Attribute(attr=name):
            return name in _ATTRIBUTES
        case ast.Name(id=name):
            return not name.startswith("__")
    return True


def _name(functions: list[ast.FunctionDef]) -> str:
    defined = [function.name for function in functions]
    return next((name for name in NAMES if name in defined), defined[0])


def _values(name: str, source: str) -> list[object] | None:
    """Return what the function gives, run in a process of its own; None if it fails."""
    try:
        done = subprocess.run(
            (sys.executable, "-I", "-S", "-c", _RUNNER),
            input=json.dumps([name, source]), capture_output=True, text=True, timeout=TIMEOUT_S, check=True, env={},
        )  # fmt: skip
        values: list[object] = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    return values
