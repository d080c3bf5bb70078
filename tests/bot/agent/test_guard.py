"""bot.agent.guard: what of a workspace is held, as bubblewrap is told, and that the sandbox looks again."""

from pathlib import Path

import pytest

from bot.agent.guard import Guard, HeldPlace, guard_of
from bot.agent.sandbox import Sandbox
from tests.bot.agent.workspaces import names, put


def shown(guard: Guard) -> list[tuple[str, bool, str]]:
    """The places, without their inodes."""
    return [(place.name, place.is_frozen, place.absent) for place in guard.places]


def test_a_place_is_held_with_the_folders_above_it(folder: Path) -> None:
    """What is not there is stood for; what lies in a frozen folder is frozen with it."""
    put(folder, "a/b/c.txt", "x")
    assert shown(guard_of(folder, {"a/b/c.txt": "file"})) == [
        ("a", False, ""),
        ("a/b", False, ""),
        ("a/b/c.txt", True, ""),
    ]
    assert shown(guard_of(folder, {"a/b/c.txt": "file", "a/b": ""})) == [("a", False, ""), ("a/b", True, "")]
    assert shown(guard_of(folder, {"a/x": "file", "y/z": "file", "a/w": ""})) == [
        ("a", False, ""),
        ("a/x", False, "file"),
        ("y", False, "folder"),
    ]


def test_a_link_is_held_by_its_folder(folder: Path, tmp_path: Path) -> None:
    """One at the top is not."""
    put(folder, "a/b.txt", "x")
    (folder / "a" / "link").symlink_to(tmp_path)
    (folder / "top").symlink_to(tmp_path)
    assert shown(guard_of(folder, {"a/link": "folder"})) == [("a", True, "")]
    assert shown(guard_of(folder, {"top/x": "file"})) == []


async def test_what_is_frozen_cannot_be_changed_or_moved(sandbox: Sandbox, folder: Path) -> None:
    """Neither itself nor a folder above it; all else can."""
    put(folder, "a/b/c.txt", "x\n")
    put(folder, "a/b/d.txt", "x\n")
    guard = guard_of(folder, {"a/b/c.txt": "file", "a/b/none": "file", "a/no": "folder"})
    tries = "echo y > a/b/c.txt; mv a/b z; mv a z; rm a/b/c.txt; echo y > a/b/none; touch a/no/x; echo y > a/b/d.txt"
    await sandbox.run(["bash", "-c", tries], guard=guard)
    assert (folder / "a/b/c.txt").read_text() == "x\n"
    assert (folder / "a/b/none").read_text() == ""
    assert names(folder / "a/no") == set()
    assert (folder / "a/b/d.txt").read_text() == "y\n"
    await sandbox.run(["touch", "new"], guard=Guard(is_frozen=True))
    assert not (folder / "new").exists()


@pytest.mark.parametrize("target", ["secret", "../secret", "other", ""])
async def test_what_took_a_places_place_shows_nothing(sandbox: Sandbox, folder: Path, target: str) -> None:
    """A link, or another folder: the command does not begin, however bubblewrap took it."""
    put(folder, "hooks/x", "mine\n")
    put(folder, "other/x", "a secret\n")
    guard = guard_of(folder, {"hooks": "folder"})
    secret = folder.parent / "secret"
    secret.mkdir()
    (secret / "x").write_text("a secret\n")
    (folder / "hooks").rename(folder / "old")
    if target:
        (folder / "hooks").symlink_to(secret if target == "secret" else target)
    else:
        (folder / "other").rename(folder / "hooks")
    found = await sandbox.run(["bash", "-c", "cat hooks/x; touch ran"], guard=guard)
    assert (found.status == 0, "a secret" in found.output) == (False, False)
    assert target not in ("other", "") or found.output == "The folder has changed meanwhile.\n"
    assert not (folder / "ran").exists()


async def test_a_command_keeps_its_words_and_its_input(sandbox: Sandbox, folder: Path) -> None:
    """Through the look before it."""
    put(folder, "it's a/b", "x")
    guard = guard_of(folder, {"it's a/b": "file"})
    found = await sandbox.run(["bash", "-c", 'cat; echo "$1"', "bash", "two  words"], b"given ", guard=guard)
    assert (found.output, found.status) == ("given two  words\n", 0)
    assert Guard((HeldPlace("x", absent="file"),)).checked(["true"]) == ["true"]
