"""The dashboards read pages by key and stories, and nothing of people who do not let heed learn."""

import pytest
from sqlalchemy.orm.exc import DetachedInstanceError
from sqlmodel import Session

from storage.conversations import chats, completions
from storage.errors import PersonNotFound, UpdateNotFound
from storage.learning import feedback, updates
from storage.people import people
from storage.reports import dashboards
from storage.reports.dashboards import Counts
from storage.tables import Completion, UpdateRun
from tests.storage import rows
from tests.storage.conftest import Store


@pytest.fixture
def learning(store: Store, ana: str) -> str:
    """A person who lets heed learn from them."""
    store.write(lambda s: people.set_learning(s, ana, True))
    return ana


def taught(s: Session, user_id: str, text: str = "too long") -> UpdateRun:
    """An answer, the correction of it, the update, and the answer given again by version 1."""
    before = completions.add(s, rows.completion(user_id, f"before {text}"))
    given, _ = feedback.add(s, rows.feedback(user_id, completion_id=before.id, text=text))
    run = updates.start(s, UpdateRun(user_id=user_id, feedback_id=given.id, started_at=5.0))
    updates.finish(s, run.id, status="accepted", version=1, duration_ms=2000.0)
    completions.add(s, rows.completion(user_id, f"after {text}", retry_of=before.id, adapter_version=1))
    return run


def test_updates_come_in_pages_without_gaps(store: Store, ana: str, ben: str) -> None:
    """From page to page each update once, also while new ones come; of one person, or with one status."""
    store.write(lambda s: [updates.start(s, UpdateRun(user_id=(ana, ben)[n % 2], kind=str(n))) for n in range(7)])
    first = store.read(lambda s: dashboards.updates(s, 3))
    store.write(lambda s: updates.start(s, UpdateRun(user_id=ana, kind="new")))
    second = store.read(lambda s: dashboards.updates(s, 3, first.older))
    third = store.read(lambda s: dashboards.updates(s, 3, second.older))
    assert [[row.kind for row in page.rows] for page in (first, second, third)] == [
        ["6", "5", "4"], ["3", "2", "1"], ["0"],
    ]  # fmt: skip
    assert third.older is None
    of_ben = store.read(lambda s: dashboards.updates(s, 9, user_id=ben))
    assert [row.kind for row in of_ben.rows] == ["5", "3", "1"]
    assert store.read(lambda s: dashboards.updates(s, 9, status="failed")).rows == []


def test_an_update_tells_its_story(store: Store, learning: str) -> None:
    """An update's story has the feedback and the answers before and after, without token ids."""
    run = store.write(lambda s: taught(s, learning))
    story = store.read(lambda s: dashboards.update(s, run.id))
    assert story.before is not None
    assert story.after is not None
    assert story.feedback is not None
    said = (story.before.text, story.feedback.text, story.after.text)
    assert said == ("before too long", "too long", "after too long")
    with pytest.raises(DetachedInstanceError):
        assert story.before.prompt_token_ids
    with pytest.raises(UpdateNotFound):
        store.read(lambda s: dashboards.update(s, "upd-none"))


def test_nothing_is_told_of_who_does_not_let_heed_learn(store: Store, learning: str) -> None:
    """Neither an update's story nor a conversation nor two answers."""
    run = store.write(lambda s: taught(s, learning))
    store.write(lambda s: people.set_learning(s, learning, False))
    story = store.read(lambda s: dashboards.update(s, run.id))
    assert (story.feedback, story.before, story.after, story.is_shown) == (None, None, None, False)
    assert store.read(lambda s: dashboards.conversations(s, 9)).rows == []
    assert store.read(lambda s: dashboards.answers(s, learning, None, 9)).rows == []
    assert store.read(lambda s: dashboards.pairs(s, learning, 0, 1, 9)) == []


def test_conversations_come_by_their_newest_answer(store: Store, learning: str) -> None:
    """Calls that belong to no conversation are one of each person; a page begins below a key."""

    def talk(s: Session) -> None:
        for place in ("a", "b", "a", None):
            chat_id = chats.resolve(s, learning, "http", place).id if place else None
            completions.add(s, rows.completion(learning, f"in {place}", chat_id=chat_id))

    store.write(talk)
    found = store.read(lambda s: dashboards.conversations(s, 2))
    assert [(row.platform, row.num_answers) for row in found.rows] == [("", 1), ("http", 2)]
    older = store.read(lambda s: dashboards.conversations(s, 2, found.older))
    assert [row.num_answers for row in older.rows] == [1]
    assert older.older is None
    chat = found.rows[1]
    answers = store.read(lambda s: dashboards.answers(s, learning, chat.chat_id, 1))
    assert ([row.text for row in answers.rows], answers.older) == (["in a"], 3)
    assert [row.text for row in store.read(lambda s: dashboards.answers(s, learning, None, 9)).rows] == ["in None"]


def test_another_persons_conversation_is_empty(store: Store, learning: str, ben: str) -> None:
    """Every page of another person's conversation is empty."""
    store.write(lambda s: people.set_learning(s, ben, True))
    chat = store.write(lambda s: chats.resolve(s, ben, "http", "c"))
    store.write(lambda s: completions.add(s, rows.completion(ben, chat_id=chat.id)))
    assert store.read(lambda s: dashboards.answers(s, learning, chat.id, 9)).rows == []


def test_counts_are_of_a_span(store: Store, ana: str) -> None:
    """From a moment on, and by day."""
    store.write(lambda s: [completions.add(s, rows.completion(ana, created_at=at)) for at in (1.0, 2.0, 3.0)])
    store.write(lambda s: updates.start(s, UpdateRun(user_id=ana, started_at=2.5)))
    assert store.read(lambda s: dashboards.counts(s, 2.0)) == Counts(2, 0, 1)
    assert store.read(lambda s: dashboards.per_day(s, [1.0, 2.0, 3.0])) == [Counts(1, 0, 0), Counts(1, 0, 1)]


def test_what_is_new_shows(store: Store, ana: str) -> None:
    """After an answer, feedback, or an update something differs."""
    seen = [store.read(dashboards.newest)]
    store.write(lambda s: completions.add(s, rows.completion(ana)))
    seen.append(store.read(dashboards.newest))
    given = store.write(lambda s: feedback.add(s, rows.feedback(ana))[0])
    seen.append(store.read(dashboards.newest))
    store.write(lambda s: feedback.set_status(s, given.id, "learned"))  # type: ignore[arg-type]
    seen.append(store.read(dashboards.newest))
    store.write(lambda s: updates.start(s, UpdateRun(user_id=ana)))
    seen.append(store.read(dashboards.newest))
    assert len(set(seen)) == len(seen)


def test_people_come_in_pages(store: Store, ana: str, ben: str) -> None:
    """With their accounts and figures, each once."""
    store.write(lambda s: completions.add(s, rows.completion(ana)))
    first, next_id = store.read(lambda s: dashboards.people(s, 1))
    second, last = store.read(lambda s: dashboards.people(s, 1, next_id or ""))
    lines = {line.user.id: line for line in (*first, *second)}
    assert set(lines) == {ana, ben}
    assert (lines[ana].accounts, lines[ana].num_answers, lines[ben].num_answers) == (("http:ana",), 1, 0)
    assert last is None


def test_two_versions_meet_in_answers_given_again(store: Store, learning: str) -> None:
    """In the order that was asked for; other versions are no part of it."""
    store.write(lambda s: taught(s, learning, "x"))
    found = store.read(lambda s: dashboards.pairs(s, learning, 0, 1, 9))
    assert [(a.text, b.text) for a, b in found] == [("before x", "after x")]
    back = store.read(lambda s: dashboards.pairs(s, learning, 1, 0, 9))
    assert [(a.text, b.text) for a, b in back] == [("after x", "before x")]
    assert store.read(lambda s: dashboards.pairs(s, learning, 1, 2, 9)) == []
    with pytest.raises(PersonNotFound):
        store.read(lambda s: dashboards.pairs(s, "nobody", 0, 1, 9))


def test_spans_are_begins_and_ends(store: Store, ana: str) -> None:
    """Of answers and of updates, in seconds."""
    store.write(lambda s: completions.add(s, rows.completion(ana, created_at=10.0, duration_s=2.0)))
    store.write(lambda s: updates.start(s, UpdateRun(user_id=ana, started_at=11.0, duration_ms=500.0)))
    assert store.read(lambda s: dashboards.spans(s, 9.0, 5)) == ([(8.0, 10.0)], [(11.0, 11.5)])
    assert store.read(lambda s: dashboards.spans(s, 12.0, 5)) == ([], [])


def test_a_row_of_a_list_knows_no_text() -> None:
    """A row of a list has no field with a person's words."""
    fields = set(dashboards.UpdateLine.__annotations__) | set(dashboards.Conversation.__annotations__)
    assert not fields & {"text", "messages", "notes", "heat", "error"}
    assert {"text", "messages"} <= set(Completion.model_fields)


def test_people_are_found_and_the_last_seen_is_first(store: Store, ana: str, ben: str) -> None:
    """In pages, by name or account; a person who never asked is last, and one who was seen has the time of it."""
    for user_id in (ana, ben, ana):
        store.write(lambda s, user_id=user_id: completions.add(s, rows.completion(user_id)))
    quiet = store.write(lambda s: people.resolve(s, "http", "Zoe_100%", display_name="Zoe")).id
    order, place = [], None
    while True:
        found, place = store.read(lambda s, place=place: dashboards.people_by_last_seen(s, 1, below=place))
        order += [(line.user.id, line.last_at_s is not None) for line in found]
        if place is None:
            break
    assert order == [(ana, True), (ben, True), (quiet, False)]
    for words, ids in (("zoe_100%", [quiet]), ("ZO", [quiet]), ("_", [quiet]), (ana, [ana]), ("nothing", [])):
        found, _ = store.read(lambda s, words=words: dashboards.people_by_last_seen(s, 9, words))
        assert [line.user.id for line in found] == ids
