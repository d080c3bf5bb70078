"""bot.agent.inside.result: what a tool answers."""

from bot.agent.inside.result import MOST_PREVIEW_CHARS, TOO_LARGE, ToolFailed, ToolResult, cut, whole


def test_a_failure_has_its_remedy() -> None:
    """Both reach the model."""
    assert ToolFailed("It is not there.", "Look elsewhere.").result == ToolResult(
        "It is not there.", False, "Look elsewhere."
    )


def test_the_model_reads_lines_as_they_are() -> None:
    """What stands before a line may be what it has to copy; only the last line end goes."""
    assert ToolResult('     1\t"a"\n     2\tb\n').told == '     1\t"a"\n     2\tb'
    assert ToolResult("a", feedback="Mind the rest.").told == "a\nMind the rest."
    assert ToolResult("There is no a.", False, "Use glob.").told == "That failed. There is no a.\nUse glob."


def test_the_middle_of_a_long_text_is_cut() -> None:
    """A short one is left."""
    assert cut("0123456789", 10) == "0123456789"
    assert cut("0123456789ab", 4) == "01\n... 8 characters ...\nab"


def test_a_preview_is_shown_whole_or_not_at_all() -> None:
    """Nothing is cut out of what a person agrees to."""
    largest = ToolResult("x" * MOST_PREVIEW_CHARS)
    assert whole(largest) is largest
    assert whole(ToolResult(largest.output + "x")) == TOO_LARGE
