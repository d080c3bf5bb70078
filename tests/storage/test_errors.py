"""The error tree is what its drawing says."""

import builtins
import inspect
import re

import pytest

from storage import errors
from storage.errors import DatabaseCorrupt, StorageError, StorageFull, without_folders

LEAVES = [
    leaf
    for _, leaf in inspect.getmembers(errors, inspect.isclass)
    if issubclass(leaf, StorageError) and not leaf.__subclasses__()
]


@pytest.mark.parametrize("leaf", LEAVES)
def test_every_leaf_is_a_standard_error_too(leaf: type[StorageError]) -> None:
    """Callers that know only Python's errors still tell one leaf from another."""
    standard = [base for base in leaf.__mro__ if base.__module__ == "builtins"]
    assert standard[0] not in {Exception, builtins.BaseException}


@pytest.mark.parametrize("leaf", LEAVES)
def test_every_leaf_is_in_the_drawing_with_its_base(leaf: type[StorageError]) -> None:
    """The text on top of the module names each leaf."""
    assert re.search(rf"── {leaf.__name__}\b", errors.__doc__ or "")


def test_the_drawing_names_only_what_exists() -> None:
    """No leaf was removed without its line."""
    drawn = re.findall(r"── (\w+)", errors.__doc__ or "")
    assert {name for name in drawn if not hasattr(errors, name)} == set()


def test_only_what_passes_by_itself_is_retryable() -> None:
    """A full disk, a busy database, a server that is away, another's lease, a backup that an erasure ended: no more."""
    assert {leaf for leaf in LEAVES if leaf.retryable} == {*errors.PASSING, errors.SnapshotErased}
    assert set(errors.AWAY) < set(errors.PASSING)


def test_the_message_ends_with_the_remedy() -> None:
    """A message says first what happened, then what to do about it, in sentences; a file's name stays as it is."""
    assert str(StorageFull("no space at /x")) == f"No space at /x. {StorageFull.remedy}."
    assert str(DatabaseCorrupt("heed.db is damaged")).startswith("heed.db is damaged. Nothing was changed: ")
    assert "restore the file from a backup" in str(DatabaseCorrupt("/x is damaged"))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "no space to write /srv/heed/data/heed.db-wal (No space left).",
            "no space to write heed.db-wal (No space left).",
        ),
        ("See /srv/heed/data/logs/vllm.log and restart", "See vllm.log and restart"),
        ("cannot lock ../data/x/ now", "cannot lock  now"),
        ("The model ~/models/qwen is gone", "The model qwen is gone"),
        ("'/srv/data/a', '/srv/data/b'", "'a', 'b'"),
        ("no answer from https://host/v1/chat", "no answer from https://host/v1/chat"),
        ("/versions lists them, owner/name is a model, and/or", "/versions lists them, owner/name is a model, and/or"),
    ],
)
def test_a_text_without_folders(text: str, told: str) -> None:
    """Paths end up as their last part; addresses, commands and names of models stay."""
    assert without_folders(text) == told
