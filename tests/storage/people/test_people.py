"""People and their accounts."""

import pytest
from sqlalchemy import inspect
from sqlmodel import Session

from storage import leases
from storage.conversations import agent_work, chats, completions, inbox, outbox, workspace_notes
from storage.errors import PersonNotFound
from storage.kinds import AccessState, ConsentChoice, FeedbackKind, NoteState
from storage.learning import better_answers, feedback, notes, updates, versions
from storage.people import access, consent, people
from storage.reports import admin_views
from storage.tables import Completion, Consent, Identity, Pairing, PlatformMessage, UpdateRun
from tests.storage import rows
from tests.storage.conftest import Store
from tests.storage.stored import all_ids


def fill(s: Session, user_id: str, account: str, word: str) -> None:
    """Give a person a row with `word` in every table that can hold one."""
    chat = chats.resolve(s, user_id, "telegram", f"chat {word}")
    message = {"role": "user", "content": word}
    answer = completions.add(s, rows.completion(user_id, word, chat_id=chat.id, messages=[message], notes=[word]))
    platform_message = PlatformMessage(
        platform="telegram", chat_external_id=word, message_id="1", completion_id=answer.id
    )
    completions.link(s, platform_message)
    lesson, _ = feedback.add(s, rows.feedback(user_id, completion_id=answer.id, text=word))
    notes.add(s, rows.note(user_id, word, feedback_id=lesson.id))
    update = updates.start(s, UpdateRun(user_id=user_id, feedback_id=lesson.id, heat=[[word, 0.5]]))
    versions.allocate(s, user_id, 0, "pocket", lesson.id, update.id)
    better_answers.add(s, rows.better_answer(user_id, answer.id, word))
    received = {"platform": "http", "account": account, "payload": {"text": word}, "chat_key": word}
    inbox.add(s, rows.inbox(f"{user_id} waiting", **received))
    done, _ = inbox.add(s, rows.inbox(f"{user_id} done", **received))
    inbox.mark_done(s, done.seq or 0)
    outbox.add(s, rows.outbox(f"{user_id} out", user_id=user_id, payload={"text": word}))
    agent_work.add(s, rows.agent_work(user_id, word))
    workspace_notes.add(s, user_id, "", word)
    leases.take(s, word, "an engine", 60.0, user_id)
    people.set_persona(s, user_id, word)
    admin_views.note(s, user_id, "conversations", word)
    step = Consent(user_id=user_id, choice=ConsentChoice.YES, wording="1", platform="http", place=word)
    consent.record(s, step, is_permitted=True)
    access.decide(s, "http", account, AccessState.ALLOWED, word)


def test_an_account_is_the_same_person_every_time(store: Store, ana: str, ben: str) -> None:
    """The same platform and account lead to the same person, another account or platform to another."""
    assert store.person("ana") == ana
    on_telegram = store.write(lambda s: people.resolve(s, "telegram", "ana"))
    assert len({ana, ben, on_telegram.id}) == 3


def test_learning_is_set_at_the_first_meeting_only(store: Store) -> None:
    """The default for a new person does not overrule what a known one has chosen."""
    user = store.write(lambda s: people.resolve(s, "http", "cai", display_name="Cai", is_learning=True))
    assert (user.is_learning, user.display_name) == (True, "Cai")
    store.write(lambda s: people.set_learning(s, user.id, False))
    again = store.write(lambda s: people.resolve(s, "http", "cai", display_name="Cai C.", is_learning=True))
    assert (again.is_learning, again.display_name) == (False, "Cai C.")


def test_meeting_again_without_a_name_keeps_the_name(store: Store) -> None:
    """A platform that gives no name does not erase it."""
    store.write(lambda s: people.resolve(s, "http", "cai", display_name="Cai"))
    assert store.write(lambda s: people.resolve(s, "http", "cai")).display_name == "Cai"


def test_looking_for_an_account_makes_nobody(store: Store, ana: str) -> None:
    """find() brings back who is known and None otherwise."""
    assert store.read(lambda s: people.find(s, "http", "ana").id) == ana
    assert store.read(lambda s: people.find(s, "http", "cai")) is None


def test_choices_are_kept(store: Store, ana: str) -> None:
    """Persona and learning survive a restart, and a persona can be taken back."""
    store.write(lambda s: (people.set_persona(s, ana, "a pirate"), people.set_learning(s, ana, True)))
    store.reopen()
    user = store.read(lambda s: people.get(s, ana))
    assert (user.persona, user.is_learning) == ("a pirate", True)
    assert store.write(lambda s: people.set_persona(s, ana, None)).persona is None


@pytest.mark.parametrize("call", [people.get, lambda s, u: people.set_learning(s, u, True)])
def test_nobody_is_named(store: Store, call: object) -> None:
    """Asking for a person who does not exist is PersonNotFound."""
    with pytest.raises(PersonNotFound):
        store.write(lambda s: call(s, "nobody"))  # type: ignore[operator]


def test_all_ids_lists_everybody(store: Store, ana: str, ben: str) -> None:
    """The sweep at start knows every person."""
    assert set(store.read(all_ids)) == {ana, ben}


def test_identities_are_the_persons_own(store: Store, ana: str, ben: str) -> None:
    """A person's accounts are listed without anybody else's."""
    store.write(lambda s: s.add(Identity(platform="telegram", account="42", user_id=ana)))
    accounts = store.read(lambda s: [(i.platform, i.account) for i in people.identities(s, ana)])
    assert accounts == [("http", "ana"), ("telegram", "42")]


def _dump(s: Session, word: str) -> dict[str, int]:
    """How often a word stands in each table."""
    connection = s.connection()
    names = inspect(connection).get_table_names()
    tables = {name: connection.exec_driver_sql(f'SELECT * FROM "{name}"').fetchall() for name in names}  # noqa: S608
    return {name: str(content).count(word) for name, content in tables.items() if word in str(content)}


def test_forgetting_a_person_removes_every_row_of_theirs_and_no_other(store: Store, ana: str, ben: str) -> None:
    """After forget no table holds the person's id or words; the other person's rows are untouched."""
    store.write(lambda s: fill(s, ana, "ana", "word of ana"))
    store.write(lambda s: fill(s, ben, "ben", "word of ben"))
    before = store.read(lambda s: _dump(s, "word of ben"))
    holding = set(store.read(lambda s: _dump(s, "word of ana")))
    assert {"user", "chat", "completion", "feedback", "note", "update_run", "outbox", "inbox"} <= holding
    assert store.write(lambda s: people.forget(s, ana)) is True
    assert store.read(lambda s: _dump(s, "word of ana")) == {}
    assert store.read(lambda s: _dump(s, ana)) == {"inbox": 2}, "the keys of platform updates, which carry the id here"
    assert store.read(lambda s: _dump(s, "word of ben")) == before


def test_forgetting_twice_says_that_nobody_was_there(store: Store, ana: str) -> None:
    """A repeated erasure is harmless."""
    store.write(lambda s: people.forget(s, ana))
    assert store.write(lambda s: people.forget(s, ana)) is False


def test_a_late_redelivery_does_not_bring_a_forgotten_person_back(store: Store, ana: str) -> None:
    """A platform update of a forgotten person keeps its key and counts as done."""
    store.write(lambda s: inbox.add(s, rows.inbox("1", account="ana", platform="http")))
    store.write(lambda s: people.forget(s, ana))
    row, is_new = store.write(lambda s: inbox.add(s, rows.inbox("1", account="ana", platform="http")))
    assert not is_new
    assert (row.is_done, row.payload, row.account, row.chat_key) == (True, {}, "", "")


def test_who_comes_back_after_being_forgotten_is_somebody_new(store: Store, ana: str) -> None:
    """The same account gets a new id: nothing of before can be found by it, not even a file."""
    store.write(lambda s: people.forget(s, ana))
    assert store.person("ana") != ana


def test_forgetting_takes_the_permission_and_the_code_but_not_a_block(store: Store, ana: str, ben: str) -> None:
    """A forgotten person is a stranger again, but a block stays: it is the operator's decision."""
    store.write(lambda s: access.decide(s, "http", "ana", AccessState.ALLOWED, "operator"))
    store.write(lambda s: access.decide(s, "http", "ben", AccessState.BLOCKED, "operator"))
    waiting = Pairing(code="ABCD2345", platform="http", account="ben", place="1", expires_at=2.0)
    store.write(lambda s: access.wait(s, waiting, now_s=1.0, limit=3))
    for user_id in (ana, ben):
        store.write(lambda s, user_id=user_id: people.forget(s, user_id))
    assert store.read(lambda s: access.state(s, "http", "ana")) is None
    assert store.read(lambda s: access.state(s, "http", "ben")) == AccessState.BLOCKED
    assert store.read(lambda s: access.waiting(s, 1.0)) == []


def test_unlearning_removes_what_was_taught_and_leaves_the_rest(store: Store, ana: str, ben: str) -> None:
    """Feedback, its notes, versions and updates go; conversations and notes the person wrote stay, in the prompt."""
    store.write(lambda s: fill(s, ana, "ana", "word of ana"))
    store.write(lambda s: fill(s, ben, "ben", "word of ben"))
    before = store.read(lambda s: _dump(s, "word of ben"))
    own, _ = store.write(lambda s: feedback.add(s, rows.feedback(ana, kind=FeedbackKind.NOTE, text="call me Ana")))
    fields = {"feedback_id": own.id, "state": NoteState.IN_WEIGHTS, "learned_version": 1}
    store.write(lambda s: notes.add(s, rows.note(ana, "call me Ana", **fields)))
    store.write(lambda s: people.unlearn(s, ana))
    assert not {"feedback", "note", "update_run"} & set(store.read(lambda s: _dump(s, "word of ana")))
    (kept,) = store.read(lambda s: notes.live(s, ana))
    assert (kept.text, kept.state, kept.learned_version) == ("call me Ana", NoteState.IN_PROMPT, None)
    assert store.read(lambda s: (versions.history(s, ana), updates.recent(s, ana, 9))) == ([], [])
    assert len(store.read(lambda s: completions.recent(s, ana, 9))) == 1
    assert store.read(lambda s: _dump(s, "word of ben")) == before


def test_unlearning_never_gives_a_version_number_again(store: Store, ana: str) -> None:
    """The zero adapter answers, no answer is gold, and the next version has a new number."""
    answer = store.write(lambda s: completions.add(s, rows.completion(ana)))
    store.write(lambda s: completions.mark_gold(s, ana, answer.id))
    first = store.write(lambda s: versions.allocate(s, ana, 0, "pocket", None, None))
    store.write(lambda s: versions.accept(s, ana, first.number, "0" * 64, 1))
    store.write(lambda s: people.unlearn(s, ana))
    user = store.read(lambda s: people.get(s, ana))
    assert (user.active_version, user.last_version) == (0, first.number)
    assert not store.read(lambda s: s.get(Completion, answer.seq).is_gold)


def test_accounts_are_those_of_one_platform(store: Store) -> None:
    """By name."""
    for platform, account in (("http", "b"), ("http", "a"), ("telegram", "1")):
        store.write(lambda s, p=platform, a=account: people.resolve(s, p, a))
    assert store.read(lambda s: people.accounts(s, "http")) == ["a", "b"]


def test_a_shape_can_be_set_and_taken_back(store: Store, ana: str) -> None:
    """None is the setting's."""
    for shape in ({"lora_rank": 8}, None):
        store.write(lambda s, shape=shape: people.set_lora_shape(s, ana, shape))
        assert store.read(lambda s: people.get(s, ana)).lora_shape == shape
