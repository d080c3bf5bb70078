"""bot.agent.workspace_notes: the few words by which notes about a workspace are kept."""

import pytest

from bot.agent.workspace_notes import DELETED, MOST_NOTES, NONE, NOTED, WorkspaceNotes
from bot.errors import InvalidField
from tests.bot.agent.rig import AgentRig


async def test_a_note_is_kept_listed_and_deleted(rigged: AgentRig) -> None:
    """Of one workspace and one person."""
    notes, ana = WorkspaceNotes(rigged.core.database), await rigged.person()
    assert (await notes.hear(ana, "work", " ")).text == NONE
    told = await notes.hear(ana, "work", " uses\n Poetry ")
    assert (told.text, told.notes) == (NOTED, ["uses Poetry"])
    await notes.hear(ana, "work", "two spaces")
    assert (await notes.hear(ana, "work", "")).text == "1. uses Poetry\n2. two spaces"
    gone = await notes.hear(ana, "work", "delete 1")
    assert (gone.text, gone.notes) == (DELETED.format("uses Poetry"), ["two spaces"])
    assert await notes.of(ana, "") == []


async def test_notes_have_bounds(rigged: AgentRig) -> None:
    """A refusal changes nothing."""
    notes, ana = WorkspaceNotes(rigged.core.database), await rigged.person()
    for said in ("delete 1", "delete 0", "a" * 501):
        with pytest.raises(InvalidField):
            await notes.hear(ana, "work", said)
    for number in range(MOST_NOTES):
        await notes.hear(ana, "work", f"note {number}")
    with pytest.raises(InvalidField):
        await notes.hear(ana, "work", "one more")
    assert len(await notes.of(ana, "work")) == MOST_NOTES
