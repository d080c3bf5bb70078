"""The progress shown while packages are installed."""

from pathlib import Path

import pytest

from tools.progress import PipOutput, Progress


def read_all(output: PipOutput, *lines: str) -> str:
    """Return the text shown after these lines of pip."""
    for line in lines:
        output.read(line)
    return output.describe()


def test_packages_are_counted_while_they_are_found(tmp_path: Path) -> None:
    """Each package that pip collects or already has counts one."""
    output = PipOutput(156, tmp_path)
    shown = read_all(
        output,
        "Requirement already satisfied: filelock==4.2.11 in /x (from -r cpu.txt (line 3)) (4.2.11)\n",
        "Collecting numpy==2.3.5 (from -r cpu.txt (line 80))\n",
    )
    assert shown == "found 2 of 156: numpy==2.3.5"


def test_a_download_shows_file_and_size(tmp_path: Path) -> None:
    """The file being downloaded is shown with its size, without the address it comes from; metadata is not worth it."""
    output = PipOutput(2, tmp_path)
    shown = read_all(
        output,
        "Collecting numpy==2.3.5\n",
        "  Downloading https://host/path/numpy-2.3.5-cp311.whl (16.9 MB)\n",
        "  Downloading numpy-2.3.5.metadata (62 kB)\n",
    )
    assert shown == "found 1 of 2, downloading numpy-2.3.5-cp311.whl (16.9 MB)"


def test_unpacking_counts_what_is_on_the_disk(tmp_path: Path) -> None:
    """While pip unpacks without a word, the packages on the disk are counted, less those from before."""
    (tmp_path / "pip-23.dist-info").mkdir()
    output = PipOutput(2, tmp_path)
    assert read_all(output, "Installing collected packages: a, b\n") == "unpacking 0 of 2"
    (tmp_path / "a-1.dist-info").mkdir()
    assert output.describe() == "unpacking 1 of 2"


def test_a_file_gets_a_line_only_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    """If the output is no terminal, final lines are printed at once and progress at most every few seconds."""
    progress = Progress()
    progress.say("installing")
    for number in range(1000):
        progress.show(f"found {number}")
    assert capsys.readouterr().out == "heed: installing\n"
    progress.last_line -= 60
    progress.show("found 1000")
    assert capsys.readouterr().out == "heed:   found 1000\n"
