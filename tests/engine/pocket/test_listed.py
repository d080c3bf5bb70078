"""engine.pocket.listed: lists of words beside the code."""

from pathlib import Path

from engine.pocket.listed import lines, lines_by_name


def test_lines_are_read_in_their_order(tmp_path: Path) -> None:
    """All of them, or by the name before their tab."""
    (tmp_path / "list").write_text("say\twhat is it?\nset\tmake it so\nsay\ttell me\n")
    assert lines(tmp_path / "list") == ("say\twhat is it?", "set\tmake it so", "say\ttell me")
    assert lines_by_name(tmp_path / "list") == {"say": ("what is it?", "tell me"), "set": ("make it so",)}
