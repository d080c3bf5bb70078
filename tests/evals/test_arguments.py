"""key=value arguments."""

from dataclasses import dataclass

import pytest

from evals import arguments
from evals.arguments import described
from evals.errors import ArgumentError


@dataclass(frozen=True)
class Wanted:
    """One field of every type that can be read."""

    count: int = described(3, "how many")
    share: float = described(0.5, "what part")
    is_loud: bool = described(False, "whether it is loud")
    name: str = described("", "its name")
    parts: tuple[str, ...] = described(("a", "b"), "which")
    sizes: tuple[int, ...] = described((1, 2), "how large")


def test_nothing_given_is_the_defaults() -> None:
    """No words, no change."""
    assert arguments.parse(Wanted, []) == Wanted()


def test_every_type_is_read() -> None:
    """Numbers, yes and no, texts and lists come out as their fields' types."""
    words = ["count=7", "share=0.25", "is_loud=Yes", "name=a=b", "parts=x, y,", "sizes=4,5"]
    assert arguments.parse(Wanted, words) == Wanted(7, 0.25, True, "a=b", ("x", "y"), (4, 5))


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("count", "'count' is not key=value"),
        ("count=many", "count wants a whole number, not 'many'"),
        ("share=half", "share wants a number, not 'half'"),
        ("is_loud=maybe", "is_loud wants true or false, not 'maybe'"),
        ("sizes=1,x", "sizes wants whole numbers with commas between, not '1,x'"),
        ("counts=3", "there is no 'counts' (did you mean count?)"),
        ("zzz=3", "there is no 'zzz'; the keys are count, share, is_loud, name, parts, sizes"),
    ],
)
def test_a_wrong_argument_is_named_with_what_it_wants(word: str, message: str) -> None:
    """The sentence names the key, what it wants and what it got."""
    with pytest.raises(ArgumentError) as error:
        arguments.parse(Wanted, [word])
    assert str(error.value) == message


def test_a_key_given_twice_is_refused() -> None:
    """Neither of two contradicting words wins silently."""
    with pytest.raises(ArgumentError, match="count is given twice"):
        arguments.parse(Wanted, ["count=1", "count=2"])


def test_usage_lists_every_key_with_its_default() -> None:
    """The help shows what can be given, as it would be written."""
    usage = arguments.usage(Wanted, "heed try")
    assert usage.startswith("usage: heed try [key=value ...]")
    for line in ("count=3", "is_loud=false", "parts=a,b", "how large"):
        assert line in usage
