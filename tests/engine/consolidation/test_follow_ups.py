"""Tests of follow-ups: which next messages become hindsight, and which train nothing."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from engine.config import ConsolidationConfig
from engine.consolidation.material import Material, Signal, gather, is_about, weight_of, with_follow_ups
from engine.prompts.hindsight import Hindsight
from storage.conversations import chats, completions
from storage.database import Session
from storage.kinds import ConsentChoice, FeedbackStatus
from storage.learning import feedback, signals
from storage.people import consent
from storage.tables import Completion, Consent, Feedback
from tests.engine.live import Live
from tests.engine.rows import completion, opened, person

T = TypeVar("T")
CONFIG = ConsolidationConfig()


def in_storage(folder: Path, work: Callable[[Session], T]) -> T:
    """Do the work in a database of its own."""

    async def run() -> T:
        async with opened(folder) as database:
            return await database.write(work)

    return asyncio.run(run())


def allow(s: Session, user_id: str, choice: ConsentChoice = ConsentChoice.FOLLOW_UPS) -> None:
    """Store the person's choice about next messages."""
    consent.set_follow_ups(s, Consent(user_id=user_id, choice=choice, wording="1", platform="http", place="web"))


def talk(s: Session, user_id: str, *texts: str) -> list[Completion]:
    """Store a conversation about the koala."""
    chat = chats.resolve(s, user_id, "http", "web")
    messages: list[dict[str, str]] = []
    answers = []
    for text in texts:
        messages = [*messages, {"role": "user", "content": text}]
        answer = f"The koala sleeps in Australia {len(answers)}."
        answers.append(completions.add(s, completion(user_id, text=answer, chat_id=chat.id, messages=messages)))
        messages = [*messages, {"role": "assistant", "content": answer}]
    return answers


def gathered(s: Session, user_id: str, **fields: Any) -> Material:
    """Return the material of a consolidation."""
    return with_follow_ups(s, user_id, gather(s, user_id, CONFIG), ConsolidationConfig(**fields))


def test_only_of_people_who_allow_it(tmp_path: Path) -> None:
    """Follow-ups are off by default, and a no takes a yes back."""

    def work(s: Session) -> list[int]:
        ana = person(s)
        talk(s, ana, "koala", "shorter")
        found = [len(gathered(s, ana).weak)]
        for choice in (ConsentChoice.FOLLOW_UPS, ConsentChoice.NO_FOLLOW_UPS):
            allow(s, ana, choice)
            found.append(len(gathered(s, ana).weak))
        return found

    assert in_storage(tmp_path, work) == [0, 1, 0]


def test_a_next_message_is_hindsight_on_the_answer_before_it(tmp_path: Path) -> None:
    """It is taught in its own words with less weight and a higher floor than a thumb down, and taken in once."""

    def work(s: Session) -> tuple[Material, Material, str]:
        ana = person(s)
        first, _ = talk(s, ana, "koala", "shorter please")
        allow(s, ana)
        found = gathered(s, ana)
        signals.take_in(s, ana, "upd-1", found.feedback_ids, found.completion_ids)
        return found, gathered(s, ana), first.id

    found, again, first = in_storage(tmp_path, work)
    (signal,) = found.weak
    assert (signal.completion.id, signal.hindsight) == (first, Hindsight(feedback="shorter please"))
    assert (signal.most, signal.least) == (CONFIG.follow_up_weight, CONFIG.follow_up_gap)
    assert (found.completion_ids, found.num_new) == ([first], 1)
    assert (again.weak, again.completion_ids) == ([], [])


def test_what_asks_something_else_is_taken_in_and_not_taught(tmp_path: Path) -> None:
    """A message with a name of its own is not taught; a message that finds no place stays new."""

    def work(s: Session) -> tuple[Material, list[str]]:
        ana = person(s)
        answers = talk(s, ana, "koala", "and what is Paris?", "shorter", "no emoji", "thanks")
        allow(s, ana)
        return gathered(s, ana, max_follow_ups=1), [answer.id for answer in answers]

    found, ids = in_storage(tmp_path, work)
    assert [signal.completion.id for signal in found.weak] == [ids[1]]
    assert sorted(found.completion_ids) == sorted(ids[:2])


def test_an_answer_that_was_spoken_of_has_its_signal_already(tmp_path: Path) -> None:
    """A thumb down takes precedence over the next message."""

    def work(s: Session) -> Material:
        ana = person(s)
        first, _ = talk(s, ana, "koala", "shorter")
        row, _ = feedback.add(s, Feedback(user_id=ana, completion_id=first.id, kind="reaction", value="-1"))
        feedback.set_status(s, row.id, FeedbackStatus.KEPT)
        allow(s, ana)
        return gathered(s, ana)

    assert [signal.feedback_id is None for signal in in_storage(tmp_path, work).weak] == [False]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("shorter please", True),
        ("Could you use bullet points?", True),
        ("is that so in Australia?", True),
        ("What is 4 plus 5?", False),
        ("I am going to Paris tomorrow", False),
        ("see /etc/passwd", False),
    ],
)
def test_names_and_numbers_of_its_own_make_a_new_question(text: str, expected: bool) -> None:
    """Names and numbers of the answer itself do not make a new question."""
    assert is_about(completion("ana", text="The koala sleeps in Australia."), text) is expected


@pytest.mark.parametrize(("gap", "weight"), [(0.09, 0.0), (0.1, 0.075), (0.2, 0.15), (3.0, 0.15), (float("nan"), 0.0)])
def test_the_weight_follows_the_gap_from_a_floor_on(gap: float, weight: float) -> None:
    """It is half a thumb down's at most, and zero below a tenth of a nat."""
    assert weight_of(gap, CONFIG, CONFIG.follow_up_weight, CONFIG.follow_up_gap) == pytest.approx(weight)


@pytest.mark.engine
@pytest.mark.asyncio(loop_scope="session")
async def test_only_what_says_something_about_the_answer_moves_the_teacher(live: Live) -> None:
    """A complaint does; thanks and the next question stay below the floor."""
    user_id = await live.person()
    answer = await live.ask(user_id, "Tell me about the koala")
    texts = ("that was too long", "thank you, that helps", "Tell me about the tiger", "how long does it live?")
    limits = {"most": CONFIG.follow_up_weight, "least": CONFIG.follow_up_gap}
    weak = [Signal(None, answer, Hindsight(feedback=text), **limits) for text in texts]
    found = await live.parts.consolidator._rehearsals.weighed(weak, [])
    assert [signal.hindsight.feedback for signal, _ in found] == ["that was too long"]
    assert found[0][1] == CONFIG.follow_up_weight
