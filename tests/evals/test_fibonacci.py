"""Code that a model wrote: what counts as right, and what is never run."""

from pathlib import Path

import pytest

from evals.fibonacci import computes_fibonacci

LOOP = "def fib(n):\n    a, b = 0, 1\n    for _ in range(n):\n        a, b = b, a + b\n    return a\n"
RECURSIVE = "def fibonacci(n: int) -> int:\n    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)\n"


@pytest.mark.parametrize(
    "answer",
    [
        LOOP,
        RECURSIVE,
        f"Sure! Here it is:\n\n```python\n{LOOP}\nprint(fib(10))\n```\nIt adds the last two numbers.",
        f"```\n{LOOP}",
        "def helper(a, b):\n    return a + b\n\n" + LOOP.replace("a + b", "helper(a, b)"),
    ],
    ids=["loop", "recursive", "fenced", "cut off", "helper"],
)
def test_code_that_gives_the_numbers_counts(answer: str) -> None:
    """With words around it, with a call behind it, and with functions beside it."""
    assert computes_fibonacci(answer)


@pytest.mark.parametrize(
    "answer",
    ["", "I cannot write code.", LOOP.replace("0, 1", "1, 1"), "def fib(n):\n    return", "def fib(n)\n    return n",
     "def fib(n):\n    while True:\n        pass\n", "def fib(n):\n    return fib(n)\n",
     "def fib(n):\n    return [0] * 10 ** 12\n"],
    ids=["empty", "words", "shifted", "nothing", "broken", "endless", "recursion", "memory"],
)  # fmt: skip
def test_anything_else_does_not(answer: str) -> None:
    """Wrong numbers, code that does not parse, code that never ends."""
    assert not computes_fibonacci(answer)


@pytest.mark.parametrize(
    "line",
    ["import os; os.mkdir({path!r})", "__import__('os').mkdir({path!r})", "open({path!r}, 'w')",
     "(lambda: 0).__globals__", "(n for n in ()).gi_frame"],
)  # fmt: skip
def test_code_that_reaches_out_is_not_run(line: str, tmp_path: Path) -> None:
    """Even if it would give the right numbers; nothing appears on the disk."""
    answer = LOOP.replace("    a, b = 0, 1\n", f"    {line.format(path=str(tmp_path / 'made'))}\n    a, b = 0, 1\n")
    assert "a, b = 0, 1" in answer
    assert not computes_fibonacci(answer)
    assert list(tmp_path.iterdir()) == []
