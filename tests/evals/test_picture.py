"""Pictures of an evaluation."""

import io

from PIL import Image

from evals import picture


def _colours(png: bytes) -> set[tuple[int, int, int]]:
    pixels = Image.open(io.BytesIO(png)).convert("RGB")
    found = pixels.getcolors(1 << 24) or []
    return {colour for _, colour in found}  # type: ignore[misc]


def test_every_series_has_its_colour() -> None:
    """A series of zeros draws none."""
    blue, orange = (0x2F, 0x6F, 0xDB), (0xE0, 0x8A, 0x1E)
    both = _colours(picture.bars(["adopted", "held"], {"heed": [1.0, 0.9], "other": [0.5, 0.2]}))
    assert {blue, orange} <= both


def test_more_rows_make_a_taller_picture() -> None:
    """Room for each."""
    sizes = [
        Image.open(io.BytesIO(picture.bars([f"row {i}" for i in range(n)], {"heed": [0.5] * n}))).size for n in (2, 8)
    ]
    assert sizes[1][1] > 2 * sizes[0][1]


def test_a_bound_and_a_refused_lesson_are_red() -> None:
    """The one as a line, the other as a dot."""
    red = (0xC8, 0x37, 0x2D)
    panel = picture.Panel("entropy", "ratio", {"heed": [1.0, None, 0.5]}, 0.6, is_at_least=True)
    assert red in _colours(picture.curves([panel]))
    accepted, refused = picture.Change(-1.0, 2.0, True), picture.Change(-1.0, 2.0, False)
    assert red in _colours(picture.changes({"retention": [refused] * 9}, "margin", "nats"))
    without = picture.curves([picture.Panel("entropy", "ratio", {"heed": [1.0, 0.5]})])
    assert red not in _colours(without)
    assert len(_colours(picture.changes({"retention": [accepted]}, "margin", "nats"))) > 3


def test_a_cell_without_a_value_stays_empty() -> None:
    """The others have the colours of their shares."""
    full, half = (_colours(picture.heat(["a"], ["x", "y"], [[1.0, value]], "held")) for value in (0.0, None))
    held, lost = (0xBF, 0xE3, 0xC6), (0xB3, 0x26, 0x1E)
    assert held in full & half
    assert lost in full - half


def test_a_curve_of_zeros_can_be_drawn_logarithmically() -> None:
    """Nothing was left to learn."""
    panel = picture.Panel("left", "nats", {"after": [0.0, 0.0]}, is_logarithmic=True)
    assert picture.curves([panel]).startswith(b"\x89PNG")
