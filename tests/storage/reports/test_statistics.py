"""Figures over everybody's rows."""

import pytest
from sqlmodel import Session

from storage.conversations import chats, completions
from storage.kinds import FeedbackKind, FeedbackStatus
from storage.learning import feedback, updates, versions
from storage.people import people
from storage.reports import statistics
from storage.tables import UpdateRun
from tests.storage import rows
from tests.storage.conftest import Store

DAY_S = 86_400.0
NOW_S = 1_800_000_000.0


def answer(s: Session, platform: str, account: str, at_s: float, **fields: object) -> str:
    """A person's message and heed's answer; the answer's id."""
    user = people.resolve(s, platform, account)
    chat = chats.resolve(s, user.id, platform, account)
    return completions.add(s, rows.completion(user.id, chat_id=chat.id, created_at=at_s, **fields)).id


def teach(s: Session, platform: str, account: str, at_s: float, **fields: object) -> str:
    """A person's feedback; its id."""
    user = people.resolve(s, platform, account)
    return feedback.add(s, rows.feedback(user.id, created_at=at_s, **fields))[0].id


def run(s: Session, account: str, at_s: float, status: str, duration_ms: float = 0.0) -> None:
    """An update."""
    user_id = people.resolve(s, "telegram", account).id
    steps = 10 if duration_ms else 0
    row = UpdateRun(user_id=user_id, started_at=at_s, status=status, duration_ms=duration_ms, steps=steps)
    updates.start(s, row)


@pytest.fixture
def busy(store: Store) -> Store:
    """Two people on Telegram and one on Discord, today and eight days ago."""

    def fill(s: Session) -> None:
        first = answer(s, "telegram", "1", NOW_S)
        answer(s, "telegram", "1", NOW_S, retry_of=first)
        answer(s, "telegram", "1", NOW_S)
        answer(s, "telegram", "2", NOW_S - 8 * DAY_S)
        answer(s, "discord", "3", NOW_S)
        teach(s, "telegram", "1", NOW_S, completion_id=first)
        teach(s, "telegram", "1", NOW_S - 8 * DAY_S, kind=FeedbackKind.NOTE)
        teach(s, "discord", "3", NOW_S, kind=FeedbackKind.APPROVAL)

    store.write(fill)
    return store


@pytest.mark.parametrize(
    ("since_s", "asked", "wrote"),
    [
        (NOW_S - DAY_S, {"telegram": 2, "discord": 1}, {"telegram": 1, "discord": 1}),
        (0.0, {"telegram": 3, "discord": 1}, {"telegram": 2, "discord": 1}),
        (NOW_S + 1, {}, {}),
    ],
)
def test_messages_and_users_by_platform(
    busy: Store, since_s: float, asked: dict[str, int], wrote: dict[str, int]
) -> None:
    """An answer given again is no message; a person counts once."""
    assert busy.read(lambda s: statistics.messages(s, since_s)) == asked
    assert busy.read(lambda s: statistics.users(s, since_s)) == wrote


def test_an_answer_outside_a_conversation_counts_for_the_persons_platform(store: Store, ana: str) -> None:
    """HTTP calls without a kept conversation are messages on HTTP."""
    store.write(lambda s: completions.add(s, rows.completion(ana)))
    assert store.read(lambda s: statistics.messages(s, 0.0)) == {"http": 1}


def test_everybody_known_is_counted(busy: Store) -> None:
    """Also who never wrote."""
    busy.person("ana")
    assert busy.read(statistics.known_users) == {"telegram": 2, "discord": 1, "http": 1}


def test_feedback_by_kind_and_platform(busy: Store) -> None:
    """A note without an answer belongs to the person's platform."""
    today = {("correction", "telegram"): 1, ("approval", "discord"): 1}
    assert busy.read(lambda s: statistics.feedback(s, NOW_S - DAY_S)) == today
    assert busy.read(lambda s: statistics.feedback(s, 0.0)) == today | {("note", "telegram"): 1}


def test_tokens_are_counted_by_their_ids(busy: Store) -> None:
    """Five answers of three tokens in and two out; of none, none."""
    assert busy.read(lambda s: statistics.tokens(s, 0.0)) == (15, 10)
    assert busy.read(lambda s: statistics.tokens(s, NOW_S + 1)) == (0, 0)


def test_answer_times_are_the_newest(store: Store) -> None:
    """At most so many, the newest first."""
    for number in range(3):
        times = {"time_to_first_token_s": float(number), "duration_s": 10.0 + number}
        store.write(lambda s, n=number, times=times: answer(s, "telegram", "1", NOW_S + n, **times))
    assert store.read(lambda s: statistics.answer_times(s, 0.0, 2)) == [(2.0, 12.0), (1.0, 11.0)]


def test_updates_by_outcome_and_time(store: Store) -> None:
    """Those that trained nothing have no time."""
    store.write(lambda s: run(s, "1", NOW_S, "accepted", 1200.0))
    store.write(lambda s: run(s, "2", NOW_S, "rejected", 800.0))
    store.write(lambda s: run(s, "2", NOW_S, "skipped"))
    store.write(lambda s: run(s, "2", NOW_S - 8 * DAY_S, "accepted", 5000.0))
    since_s = NOW_S - DAY_S
    assert store.read(lambda s: statistics.updates(s, since_s)) == {"accepted": 1, "rejected": 1, "skipped": 1}
    assert sorted(store.read(lambda s: statistics.update_times_ms(s, since_s, 9))) == [800.0, 1200.0]
    newest = store.read(lambda s: [(row.status, user.id) for row, user in statistics.recent_updates(s, 2)])
    assert [status for status, _ in newest] == ["accepted", "skipped"]


def test_the_queue_is_what_waits_to_be_learned(store: Store) -> None:
    """Corrections that are pending or training, with the oldest; approvals never wait."""
    assert store.read(statistics.queue) == statistics.Queue(0, None)
    store.write(lambda s: teach(s, "telegram", "1", NOW_S))
    started = store.write(lambda s: teach(s, "telegram", "1", NOW_S - 60))
    store.write(lambda s: feedback.begin_training(s, started))
    learned = store.write(lambda s: teach(s, "telegram", "1", NOW_S - 90))
    store.write(lambda s: feedback.set_status(s, learned, FeedbackStatus.LEARNED))
    store.write(lambda s: teach(s, "telegram", "1", NOW_S - 90, kind=FeedbackKind.APPROVAL))
    assert store.read(statistics.queue) == statistics.Queue(2, NOW_S - 60)


def test_adapters_are_counted_with_their_bytes(store: Store, ana: str, ben: str) -> None:
    """Accepted versions of everybody; lessons taken back."""
    assert store.read(statistics.adapters) == statistics.Adapters(0, 0, 0, 0)
    for user_id in (ana, ana, ben):
        version = store.write(lambda s, u=user_id: versions.allocate(s, u, 0, "pocket", None, None))
        store.write(lambda s, u=user_id, n=version.number: versions.accept(s, u, n, "0" * 64, 100))
    store.write(lambda s: versions.allocate(s, ben, 0, "pocket", None, None))
    gone = store.write(lambda s: teach(s, "http", "ana", NOW_S))
    store.write(lambda s: feedback.set_status(s, gone, FeedbackStatus.UNDONE))
    assert store.read(statistics.adapters) == statistics.Adapters(2, 3, 300, 1)


def test_messages_and_updates_of_each_day(busy: Store) -> None:
    """A day begins at its first moment and ends before the next one's."""
    busy.write(lambda s: run(s, "1", NOW_S + DAY_S, "accepted", 1.0))
    days = busy.read(lambda s: statistics.per_day(s, [NOW_S - DAY_S, NOW_S, NOW_S + DAY_S, NOW_S + 2 * DAY_S]))
    assert days == [(0, 0), (3, 0), (0, 1)]


def test_people_are_listed_by_when_they_wrote(busy: Store) -> None:
    """People come with their accounts, answers and adapters, the latest writer first, up to the limit."""
    listed = busy.read(lambda s: statistics.everybody(s, 9))
    assert [person.accounts for person in listed[2:]] == [("telegram:2",)]
    first = next(person for person in listed if person.accounts == ("telegram:1",))
    assert (first.num_answers, first.last_at_s, first.num_versions, first.size_bytes) == (3, NOW_S, 0, 0)
    assert len(busy.read(lambda s: statistics.everybody(s, 1))) == 1


def test_what_an_account_has_spent(busy: Store) -> None:
    """Answers and lessons after a moment; approvals and strangers cost nothing."""
    assert busy.read(lambda s: statistics.spent_since(s, "telegram", "1", NOW_S - 1)) == ([NOW_S] * 3, [NOW_S])
    assert busy.read(lambda s: statistics.spent_since(s, "discord", "3", 0.0)) == ([NOW_S], [])
    assert busy.read(lambda s: statistics.spent_since(s, "discord", "1", 0.0)) == ([], [])
