"""storage.learning.signals: what is new about whom, and what was taken in."""

from typing import Any

import pytest
from sqlmodel import Session

from storage.conversations import chats, completions
from storage.kinds import FeedbackStatus
from storage.learning import feedback, signals, updates
from storage.people import people
from storage.tables import Completion, Feedback, UpdateRun
from tests.storage import rows
from tests.storage.conftest import Store


def given(s: Session, user_id: str, status: FeedbackStatus = FeedbackStatus.LEARNED, **fields: str) -> Feedback:
    """Feedback that has come that far."""
    row, _ = feedback.add(s, rows.feedback(user_id, **fields))
    return feedback.set_status(s, row.id, status)


def ran(s: Session, user_id: str, status: str, kind: str = signals.CONSOLIDATION) -> UpdateRun:
    """An update of that status."""
    return updates.start(s, UpdateRun(user_id=user_id, kind=kind, status=status))


@pytest.mark.parametrize(
    ("status", "fields", "is_new"),
    [
        (FeedbackStatus.LEARNED, {}, True),
        (FeedbackStatus.KEPT, {}, False),
        (FeedbackStatus.PENDING, {}, False),
        (FeedbackStatus.UNDONE, {}, False),
        (FeedbackStatus.KEPT, {"kind": "approval", "value": "+1"}, True),
        (FeedbackStatus.KEPT, {"kind": "note"}, True),
        (FeedbackStatus.KEPT, {"kind": "reaction", "value": "-1"}, True),
        (FeedbackStatus.KEPT, {"kind": "reaction", "value": "👎"}, True),
        (FeedbackStatus.KEPT, {"kind": "reaction", "value": "🐨"}, False),
        (FeedbackStatus.UNDONE, {"kind": "note"}, False),
    ],
)
def test_what_holds_and_says_something_is_new(
    store: Store, status: FeedbackStatus, fields: dict[str, str], is_new: bool
) -> None:
    """A lesson that was learned, an approval, a note, a thumb down; until a consolidation took it in."""
    ana = store.person("ana")
    row = store.write(lambda s: given(s, ana, status, **fields))
    assert [found.id for found in store.read(lambda s: signals.fresh(s, ana))] == [row.id] * is_new
    store.write(lambda s: signals.take_in(s, ana, "upd-1", [row.id], []))
    assert store.read(lambda s: signals.fresh(s, ana)) == []


def test_what_was_taken_in_stays_so(store: Store) -> None:
    """A second consolidation does not put its own name on it, nor does anybody else's."""
    ana, ben = store.person("ana"), store.person("ben")
    row = store.write(lambda s: given(s, ana))
    for user_id, update_id in ((ben, "upd-0"), (ana, "upd-1"), (ana, "upd-2")):
        store.write(lambda s, u=user_id, i=update_id: signals.take_in(s, u, i, [row.id], []))  # type: ignore[misc]
    assert store.read(lambda s: feedback.get(s, row.id)).consolidated_by == "upd-1"


def test_what_was_learned_and_taken_in_can_be_rehearsed(store: Store) -> None:
    """Not what was taken back since, and nothing but lessons."""
    ana = store.person("ana")

    def work(s: Session) -> list[str]:
        held, undone = given(s, ana), given(s, ana)
        note = given(s, ana, FeedbackStatus.KEPT, kind="note")
        signals.take_in(s, ana, "upd-1", [held.id, undone.id, note.id], [])
        s.expire_all()
        feedback.set_status(s, undone.id, FeedbackStatus.UNDONE)
        return [held.id]

    expected = store.write(work)
    assert [row.id for row in store.read(lambda s: signals.rehearsed(s, ana))] == expected


def test_a_thumb_down_says_that_an_answer_was_disliked(store: Store) -> None:
    """Its like, too; not a koala, not words, not another person's thumb."""

    def work(s: Session) -> tuple[set[str], list[str]]:
        ana, ben = (people.resolve(s, "http", name).id for name in ("ana", "ben"))
        ids = [completions.add(s, rows.completion(ana)).id for _ in range(4)]
        for place, fields in enumerate(({"value": "-1"}, {"value": "👎"}, {"value": "🐨"})):
            given(s, ana, FeedbackStatus.KEPT, kind="reaction", completion_id=ids[place], **fields)
        given(s, ana, completion_id=ids[3])
        given(s, ben, FeedbackStatus.KEPT, kind="reaction", completion_id=completions.add(s, rows.completion(ben)).id)
        return signals.disliked(s, ana, ids), ids[:2]

    found, wanted = store.write(work)
    assert found == set(wanted)


def talk(s: Session, user_id: str, texts: list[str], **fields: Any) -> list[Completion]:
    """A conversation: each text answered with itself in capitals."""
    chat = chats.resolve(s, user_id, "http", "web")
    messages: list[dict[str, str]] = []
    answers = []
    for text in texts:
        messages = [*messages, {"role": "user", "content": text}]
        row = rows.completion(user_id, text.upper(), chat_id=chat.id, messages=messages, **fields)
        answers.append(completions.add(s, row))
        messages = [*messages, {"role": "assistant", "content": text.upper()}]
    return answers


def test_what_was_written_next_follows_an_answer(store: Store, ana: str, ben: str) -> None:
    """In that conversation and by that person; the last answer has nothing after it yet."""

    def work(s: Session) -> tuple[list[tuple[str, str]], list[str]]:
        answers = talk(s, ana, ["bees", "shorter", "thanks"])
        talk(s, ben, ["wasps", "longer"])
        return [(a.id, text) for a, text in signals.followed(s, ana)], [a.id for a in answers]

    found, (first, second, _) = store.write(work)
    assert found == [(first, "shorter"), (second, "thanks")]


@pytest.mark.parametrize("why", ["feedback", "gold", "taken in", "given again", "reset"])
def test_only_what_nobody_said_anything_about_is_followed(store: Store, ana: str, why: str) -> None:
    """And what the next turn really goes on from."""

    def work(s: Session) -> list[tuple[Completion, str]]:
        first, second = talk(s, ana, ["bees", "shorter"], is_gold=why == "gold")
        if why == "feedback":
            given(s, ana, FeedbackStatus.KEPT, kind="reaction", value="🐨", completion_id=first.id)
        elif why == "taken in":
            signals.take_in(s, ana, "upd-1", [], [first.id])
        elif why == "given again":
            completions.add(s, rows.completion(ana, chat_id=first.chat_id, retry_of=first.id))
        elif why == "reset":
            stored = completions.get(s, ana, second.id)
            stored.messages = stored.messages[-1:]
        return signals.followed(s, ana)

    assert store.write(work) == []


def test_who_has_enough_waits_in_order(store: Store) -> None:
    """Only who lets heed learn; those never consolidated first, then by their last one that ended."""
    names = ("late", "early", "few", "off", "never")
    ids = {name: store.person(name) for name in names}

    def work(s: Session) -> None:
        for name, user_id in ids.items():
            people.set_learning(s, user_id, name != "off")
            for _ in range(1 if name == "few" else 2):
                given(s, user_id)
        for name, status in (("early", "accepted"), ("late", "rejected"), ("early", "postponed")):
            ran(s, ids[name], status)

    store.write(work)
    found = store.read(lambda s: signals.waiting(s, 2))
    assert [waiting.user_id for waiting in found] == [ids["never"], ids["early"], ids["late"]]
    assert {waiting.num_new for waiting in found} == {2}


def test_runs_are_this_persons_consolidations(store: Store) -> None:
    """The newest first; lessons and other people's are not among them."""
    ana, ben = store.person("ana"), store.person("ben")
    first = store.write(lambda s: ran(s, ana, "failed"))
    store.write(lambda s: ran(s, ben, "accepted"))
    store.write(lambda s: ran(s, ana, "accepted", "correction"))
    second = store.write(lambda s: ran(s, ana, "accepted"))
    assert [run.id for run in store.read(lambda s: signals.runs(s, ana))] == [second.id, first.id]


def test_unfinished_are_those_whose_newest_one_did_not_end(store: Store) -> None:
    """Failed and postponed ones of people for whom nothing has ended since."""
    ana, ben, eva = (store.person(name) for name in ("ana", "ben", "eva"))
    for user_id, status in ((ana, "failed"), (ana, "accepted"), (ben, "failed"), (ben, "postponed"), (eva, "parked")):
        store.write(lambda s, u=user_id, status=status: ran(s, u, status))  # type: ignore[misc]
    assert [(run.user_id, run.status) for run in store.read(signals.unfinished)] == [(ben, "postponed")]


def test_unlearning_leaves_no_mark(store: Store) -> None:
    """Unlearning clears the marks of a consolidation; a dropped answer that stays may count again."""
    ana = store.person("ana")
    answer = store.write(lambda s: rows_added(s, ana))
    store.write(lambda s: signals.take_in(s, ana, "upd-1", [], [answer]))
    store.write(lambda s: people.unlearn(s, ana))
    assert store.read(lambda s: completions.get(s, ana, answer)).consolidated_by is None


def rows_added(s: Session, user_id: str) -> str:
    """A stored answer's id."""
    return completions.add(s, rows.completion(user_id)).id
