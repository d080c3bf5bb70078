"""Tests of approved answers: which ones a candidate writes again, and how their verdict is added."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from engine.config import GateConfig
from engine.consolidation.approved_answers import REASONS, approved, with_texts
from engine.gates.candidate import Verdict
from engine.gates.texts import TextVerdict, Written, judge_texts
from storage.conversations import completions
from storage.database import Session
from tests.engine.rows import completion, opened, person


def verdict_of(text: str) -> TextVerdict:
    """Return the texts' verdict on one rewritten answer."""
    return judge_texts([Written("The koala lives in Australia.", text)], GateConfig())


@pytest.mark.parametrize(
    ("text", "failed"),
    [
        ("It lives in Australia.", None),
        ("It lives in a tree.", "entities kept"),
        ("It lives in Australia, near Paris.", "nothing invented"),
        ("- Australia", "form kept"),
    ],
)
def test_the_texts_have_a_say_of_their_own(text: str, failed: str | None) -> None:
    """A candidate that every other gate let through is refused by them, with words for the person."""
    found = with_texts(Verdict(True, "", {"finite": True}, {"update_norm": 1.0}), verdict_of(text))
    assert (found.is_accepted, found.reason) == (failed is None, REASONS[failed] if failed else "")
    assert [name for name, is_passed in found.checks.items() if not is_passed] == ([failed] if failed else [])
    assert {"update_norm", "preserved", "fabricated", "compliant"} <= found.figures.keys()


def test_good_texts_do_not_save_a_candidate() -> None:
    """A candidate that the other gates refused stays refused, with their reason."""
    found = with_texts(Verdict(False, "too far"), verdict_of("It lives in Australia."))
    assert (found.is_accepted, found.reason) == (False, "too far")


def test_every_text_gate_has_words() -> None:
    """Each text gate has a reason to tell the person."""
    assert REASONS.keys() == verdict_of("x").checks.keys()


def test_gold_is_whole_approved_and_the_persons_own(tmp_path: Path) -> None:
    """The newest approved answers come first; a cut, empty, too long or unapproved answer is left out."""

    def work(s: Session) -> tuple[list[str], str]:
        ana, ben = person(s), person(s, "ben")
        wanted: list[tuple[str, dict[str, Any]]] = [
            (ana, {}),
            (ana, {"finish_reason": "length"}),
            (ana, {"text": " "}),
            (ana, {"prompt_token_ids": [1] * 600}),
            (ana, {"is_gold": False}),
            (ben, {}),
        ]
        ids = [completions.add(s, completion(u, **({"is_gold": True} | fields))).id for u, fields in wanted]
        return [c.id for c in approved(s, ana, 8, GateConfig())], ids[0]

    async def run() -> tuple[list[str], str]:
        async with opened(tmp_path) as database:
            return await database.write(work)

    found, good = asyncio.run(run())
    assert found == [good]
