"""A message's role is found by the person it concerns and by no one else."""

from storage.conversations import completions, message_roles
from storage.conversations.message_roles import Role
from storage.tables import MessageRole, PlatformMessage
from tests.storage import rows
from tests.storage.conftest import Store


def _put(store: Store, user_id: str, role: Role, about: str) -> None:
    row = MessageRole(
        platform="telegram", chat_external_id="1", message_id="7", user_id=user_id, role=role, about=about
    )
    store.write(lambda s: message_roles.put(s, row))


def _about(store: Store, user_id: str, chat: str = "1") -> str | None:
    found = store.read(lambda s: message_roles.find(s, user_id, "telegram", chat, "7"))
    return found.about if found else None


def test_a_role_survives_a_restart(store: Store, ana: str) -> None:
    """It is found by platform, chat and message."""
    _put(store, ana, Role.REASON, "cmpl-1")
    store.reopen()
    assert _about(store, ana) == "cmpl-1"
    assert _about(store, ana, chat="2") is None


def test_the_newest_role_counts(store: Store, ana: str) -> None:
    """The same message can become something else."""
    _put(store, ana, Role.REASON, "cmpl-1")
    _put(store, ana, Role.FEEDBACK, "cmpl-2")
    assert _about(store, ana) == "cmpl-2"


def test_another_persons_message_has_no_role(store: Store, ana: str, ben: str) -> None:
    """Only whom it concerns can answer it."""
    _put(store, ana, Role.REASON, "cmpl-1")
    assert _about(store, ben) is None


def test_what_means_something_is_known(store: Store, ana: str) -> None:
    """A message with a role, or one that shows an answer; in its own chat only."""
    _put(store, ana, Role.REASON, "cmpl-1")
    answer = store.write(lambda s: completions.add(s, rows.completion(ana)))
    shown = PlatformMessage(platform="telegram", chat_external_id="1", message_id="9", completion_id=answer.id)
    store.write(lambda s: completions.link(s, shown))
    ids = ["7", "8", "9"]
    assert store.read(lambda s: message_roles.known(s, "telegram", "1", ids)) == {"7", "9"}
    assert store.read(lambda s: message_roles.known(s, "telegram", "2", ids)) == set()
