"""bot.access.outside: what leaves the machine is named, and only that."""

from typing import Any

import pytest

from bot.access.outside import outside
from bot.config import Settings


@pytest.mark.parametrize(
    ("settings", "sentences"),
    [
        ({}, []),
        (
            {
                "curriculum": {"url": "http://localhost:9000/v1", "model": "m"},
                "database_url": "postgresql://u:p@127.0.0.1/heed",
            },
            [],
        ),
        (
            {"curriculum": {"url": "https://teacher.example/v1", "model": "m"}},
            ["Poor answers, with their conversations and notes, go to teacher.example, which writes better ones."],
        ),
        (
            {"telegram": {"token": "123456:" + "a" * 35}, "database_url": "postgresql://u:p@db.example/heed"},
            ["The database is on db.example.", "What is said on Telegram goes through Telegram's servers."],
        ),
        (
            {"database_url": "postgresql://u:p@localhost/heed", "object_store": "s3://adapters/heed"},
            ["Copies of what was learned are in s3://adapters."],
        ),
        ({"database_url": "postgresql://u:p@localhost/heed", "object_store": "file:///mnt/heed"}, []),
    ],
)
def test_each_place_outside_is_named(settings: dict[str, Any], sentences: list[str]) -> None:
    """An address on this machine is no place outside."""
    assert outside(Settings(**settings)) == sentences
