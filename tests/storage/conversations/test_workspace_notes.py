"""storage.conversations.workspace_notes: a person's notes about a workspace, and no one else's."""

from storage.conversations import workspace_notes
from tests.storage.conftest import Store


def texts(store: Store, user_id: str, workspace: str) -> list[str]:
    """The notes as the agent is told them."""
    return [note.text for note in store.read(lambda s: workspace_notes.of(s, user_id, workspace))]


def test_notes_are_one_persons_and_of_one_workspace(store: Store, ana: str, ben: str) -> None:
    """In the order they were written, also after a restart."""
    for text in ("uses Poetry", "two spaces"):
        store.write(lambda s, text=text: workspace_notes.add(s, ana, "site", text))
    store.write(lambda s: workspace_notes.add(s, ana, "", "mine"))
    store.reopen()
    assert texts(store, ana, "site") == ["uses Poetry", "two spaces"]
    assert (texts(store, ana, ""), texts(store, ben, "site")) == (["mine"], [])


def test_a_note_can_be_removed(store: Store, ana: str) -> None:
    """Twice is no harm, and the others stay."""
    for text in ("one", "two"):
        store.write(lambda s, text=text: workspace_notes.add(s, ana, "site", text))
    first = store.read(lambda s: workspace_notes.of(s, ana, "site"))[0]
    for _ in range(2):
        store.write(lambda s: workspace_notes.remove(s, first.seq or 0))
    assert texts(store, ana, "site") == ["two"]
