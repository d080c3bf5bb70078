"""engine.samples.regression: which of a person's answers an update is held against."""

from pathlib import Path
from typing import Any

from engine.config import GateConfig
from engine.prompts.builder import PromptBuilder
from engine.prompts.hindsight import Hindsight
from engine.samples.regression import find, regression_samples, wished
from storage.conversations import completions
from storage.database import Session
from storage.kinds import FeedbackStatus
from storage.learning import feedback, notes
from storage.tables import Completion, Note
from tests.engine.rows import completion, opened, person, said, taught

CONFIG = GateConfig(num_watched=4, max_watched_tokens=16)


def gold(s: Session, user_id: str, **fields: Any) -> Completion:
    """An approved answer."""
    return completions.add(s, completion(user_id, is_gold=True, **fields))


def corrected(s: Session, user_id: str, text: str = "too long") -> str:
    """The id of an answer whose correction was learned."""
    version = taught(s, user_id, text)
    return feedback.get(s, version.feedback_id or "").completion_id or ""


async def test_corrections_that_hold_and_approved_answers_are_found(tmp_path: Path) -> None:
    """Plain answers and corrections that wait, were undone or taught nothing are not among them."""
    async with opened(tmp_path) as database:

        def fill(s: Session) -> tuple[str, set[str]]:
            user_id = person(s)
            wanted = {corrected(s, user_id), gold(s, user_id).id}
            completions.add(s, completion(user_id))
            for status in (FeedbackStatus.PENDING, FeedbackStatus.UNDONE, FeedbackStatus.KEPT, FeedbackStatus.REJECTED):
                feedback.set_status(s, said(s, user_id, status).id, status)
            return user_id, wanted

        user_id, wanted = await database.write(fill)
        found = await database.read(lambda s: find(s, user_id, CONFIG))
    assert {c.id for _, c in found} == wanted
    assert [kind for kind, _ in found] == ["earlier", "gold"]


async def test_what_live_notes_were_said_about_is_found(tmp_path: Path) -> None:
    """The newest six first; not a note of the person's own, nor the one that is being learned, nor a lesson without."""
    async with opened(tmp_path) as database:

        def fill(s: Session) -> tuple[str, list[str], str]:
            user_id, about = person(s), []
            for number in range(8):
                version = taught(s, user_id, str(number))
                about.insert(0, feedback.get(s, version.feedback_id or "").completion_id or "")
            newest = version.feedback_id or ""
            notes.add(s, Note(user_id=user_id, text="my own"))
            taught(s, user_id, "wrong file", is_local=True)
            return user_id, about, newest

        user_id, about, newest = await database.write(fill)
        found = await database.read(lambda s: wished(s, user_id, without=newest))
    assert [row.id for row in found] == about[1:7]


async def test_other_peoples_answers_are_not_found(tmp_path: Path) -> None:
    """Another person's lessons and approvals do not exist here."""
    async with opened(tmp_path) as database:

        def fill(s: Session) -> str:
            ben = person(s, "ben")
            corrected(s, ben)
            gold(s, ben)
            return person(s, "ana")

        ana = await database.write(fill)
        assert await database.read(lambda s: find(s, ana, CONFIG)) == []


async def test_never_more_nor_longer_than_allowed(tmp_path: Path) -> None:
    """Approved answers take at most half of the places; what the update is about, and what is too long, is left out."""
    async with opened(tmp_path) as database:

        def fill(s: Session) -> tuple[str, str]:
            user_id = person(s)
            about = [corrected(s, user_id, f"wish {i}") for i in range(9)][-1]
            for _ in range(5):
                gold(s, user_id)
            gold(s, user_id, prompt_token_ids=list(range(16)))
            return user_id, about

        user_id, about = await database.write(fill)
        found = await database.read(lambda s: find(s, user_id, CONFIG, without=about))
        assert await database.read(lambda s: find(s, user_id, GateConfig(num_watched=0))) == []
    assert [kind for kind, _ in found] == ["earlier", "earlier", "gold", "gold"]
    assert about not in {c.id for _, c in found}
    assert all(len(c.prompt_token_ids) <= 14 for _, c in found)


def test_the_teacher_sees_notes_and_feedback_and_the_student_does_not(pocket_tokenizer: Any) -> None:
    """One sample per answer, of its kind, with its very tokens."""
    answer, prompts = completion("ana"), PromptBuilder(pocket_tokenizer, 2048)
    (made,) = regression_samples([("earlier", answer)], ["be brief"], Hindsight(feedback="no"), prompts)
    assert made.kind == "earlier"
    assert made.response_ids == answer.completion_token_ids
    assert made.student_ids == prompts.prompt_token_ids(answer.messages)
    seen = pocket_tokenizer.decode(made.teacher_ids)
    assert "be brief" in seen
    assert "Feedback of this person" in seen
