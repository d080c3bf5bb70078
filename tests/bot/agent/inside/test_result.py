"""bot.agent.inside.result: what a tool answers."""

from bot.agent.inside.result import ToolFailed, ToolResult, cut


def test_a_failure_has_its_remedy() -> None:
    """Both reach the model."""
    assert ToolFailed("It is not there.", "Look elsewhere.").result == ToolResult(
        "It is not there.", False, "Look elsewhere."
    )


def test_the_middle_of_a_long_text_is_cut() -> None:
    """A short one is left."""
    assert cut("0123456789", 10) == "0123456789"
    assert cut("0123456789ab", 4) == "01\n... 8 characters ...\nab"
