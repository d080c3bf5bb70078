"""storage.conversations.agent_work: a person's sessions, and no one else's."""

import pytest

from storage.conversations import agent_work
from storage.errors import AgentWorkNotFound
from tests.storage import rows
from tests.storage.conftest import Store


def test_a_session_survives_a_restart_with_its_newest_state(store: Store, ana: str) -> None:
    """The state that was kept last counts."""
    row = store.write(lambda s: agent_work.add(s, rows.agent_work(ana, workspace="site")))
    state = {"messages": [{"role": "user", "content": "ü"}], "waiting": None}
    store.write(lambda s: agent_work.keep(s, row.id, state))
    store.reopen()
    found = store.read(lambda s: agent_work.get(s, ana, row.id))
    assert (found.workspace, found.state, found.id[:6]) == ("site", state, "agent-")


def test_sessions_are_one_persons(store: Store, ana: str, ben: str) -> None:
    """Another person neither sees nor removes them; the newest comes first."""
    first, second = (store.write(lambda s: agent_work.add(s, rows.agent_work(ana))) for _ in range(2))
    with pytest.raises(AgentWorkNotFound):
        store.read(lambda s: agent_work.get(s, ben, first.id))
    store.write(lambda s: agent_work.remove(s, ben, first.id))
    assert [row.id for row in store.read(lambda s: agent_work.of_person(s, ana))] == [second.id, first.id]
    assert store.read(lambda s: agent_work.of_person(s, ben)) == []


def test_a_chat_has_one_session_at_a_time(store: Store, ana: str, ben: str) -> None:
    """The newest that was begun there, until the person leaves it; in another chat, or another person's, none."""
    store.write(lambda s: agent_work.add(s, rows.agent_work(ana)))
    work = [store.write(lambda s: agent_work.add(s, rows.agent_work(ana, place="telegram/1"))) for _ in range(2)]
    bens = store.write(lambda s: agent_work.add(s, rows.agent_work(ben, place="telegram/2")))

    def found(user_id: str, place: str) -> str | None:
        row = store.read(lambda s: agent_work.in_chat(s, user_id, place))
        return None if row is None else row.id

    assert (found(ana, "telegram/1"), found(ben, "telegram/2")) == (work[1].id, bens.id)
    assert (found(ana, "telegram/2"), found(ben, "telegram/1")) == (None, None)
    store.write(lambda s: agent_work.leave(s, ana, "telegram/1"))
    assert (found(ana, "telegram/1"), found(ben, "telegram/2")) == (None, bens.id)
    assert len(store.read(lambda s: agent_work.of_person(s, ana))) == 3


def test_a_session_that_was_removed_stays_removed(store: Store, ana: str) -> None:
    """A process that still works on it brings nothing back."""
    row = store.write(lambda s: agent_work.add(s, rows.agent_work(ana)))
    for _ in range(2):
        store.write(lambda s: agent_work.remove(s, ana, row.id))
    store.write(lambda s: agent_work.keep(s, row.id, {"messages": []}))
    assert store.read(lambda s: agent_work.of_person(s, ana)) == []


def test_the_oldest_sessions_of_a_person_make_room(store: Store, ana: str, ben: str) -> None:
    """Not those of chats, and not another person's."""
    bens = store.write(lambda s: agent_work.add(s, rows.agent_work(ben)))
    chats = store.write(lambda s: agent_work.add(s, rows.agent_work(ana, place="telegram/1")))
    old = store.write(lambda s: agent_work.add(s, rows.agent_work(ana)))
    kept, gone = store.write(lambda s: agent_work.add_newest(s, rows.agent_work(ana), 3))
    assert gone == []
    newest, gone = store.write(lambda s: agent_work.add_newest(s, rows.agent_work(ana), 2))
    assert gone == [old.id]
    found = store.read(lambda s: agent_work.of_person(s, ana))
    assert [row.id for row in found] == [newest.id, kept.id, chats.id]
    assert [row.id for row in store.read(lambda s: agent_work.of_person(s, ben))] == [bens.id]
