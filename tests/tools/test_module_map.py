"""tools.module_map: the page that says where everything is."""

from pathlib import Path

from tools import module_map


def test_the_map_is_current() -> None:
    """docs/MAP.md is what the module heads say today; `make map` writes it anew."""
    page = module_map.ROOT / module_map.MAP
    assert page.read_text(encoding="utf-8") == module_map.render()


def test_a_line_is_the_first_sentence_of_the_head(tmp_path: Path) -> None:
    """Line breaks inside the sentence go, the rest of the docstring is left out."""
    module = tmp_path / "gate.py"
    module.write_text('"""Checks on a candidate: what may\nanswer. It loads nothing.\n\nMore.\n"""\n', encoding="utf-8")
    assert module_map.first_sentence(module) == "Checks on a candidate: what may answer"


def test_a_script_has_its_line() -> None:
    """The page's scripts are in the map, each with the first sentence of its opening comment."""
    assert "- `panel.js`: The side panel: the notes, the versions" in module_map.render()


def test_a_sentence_may_end_with_a_capital(tmp_path: Path) -> None:
    """A full stop after an abbreviation such as SVG ends the sentence."""
    module = tmp_path / "plots.py"
    module.write_text('"""Points as SVG. Pure."""\n', encoding="utf-8")
    assert module_map.first_sentence(module) == "Points as SVG"
