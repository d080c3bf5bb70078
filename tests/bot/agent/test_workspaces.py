"""bot.agent.workspaces: the folders that the operator allows, and a scratch folder for each person."""

import shutil
from pathlib import Path

import pytest

from bot.account_settings import AgentSettings
from bot.agent.sandbox import Bounds
from bot.agent.tools import Call
from bot.agent.workspaces import BRING_BACK, DELETE_SOME, Workspaces, size_of
from bot.errors import AgentNotAllowed, SandboxUnavailable
from tests.bot.agent.workspaces import USER, put


def made(folder: Path, **settings: object) -> Workspaces:
    """The workspaces of an operator who allows a folder."""
    chosen = {"folders": (folder,), "account": USER} | settings
    return Workspaces(AgentSettings(**chosen), folder.parent / "scratch")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["other", "../work", "/etc", "work/", ".", "w" * 300])
async def test_only_a_folder_that_is_allowed_can_be_named(folder: Path, name: str) -> None:
    """A name is no path."""
    workspaces = made(folder)
    assert workspaces.names == ["", "work"]
    assert workspaces.toolbox("work", "ana").folder == folder
    with pytest.raises(AgentNotAllowed, match="There are: work"):
        workspaces.toolbox(name, "ana")


async def test_each_person_has_a_scratch_folder(folder: Path, can_run: None) -> None:
    """Another person's is not seen from it."""
    workspaces = made(folder)
    ana, ben = (workspaces.toolbox("", user) for user in ("ana", "ben"))
    assert (await ana.run(Call("write", {"path": "a", "content": "hers\n"}))).success
    seen = await ben.run(Call("bash", {"command": "ls -a; ls .. | wc -l"}))
    assert "a\n" not in seen.output.replace("..", "").replace(".\n", "")
    assert (ana.folder / "a").read_text() == "hers\n"


async def test_a_scratch_folder_has_a_quota(folder: Path, can_run: None) -> None:
    """What is written beyond it ends the tool; from then on nothing is written; deleting helps."""
    toolbox = made(folder, scratch_mb=2).toolbox("", "ana")
    over = await toolbox.run(Call("bash", {"command": "head -c 9000000 /dev/zero > big; sleep 2"}))
    assert not over.success
    assert size_of(toolbox.folder) > 2_000_000
    refused = await toolbox.run(Call("write", {"path": "b", "content": "x"}))
    assert (refused.success, refused.feedback) == (False, DELETE_SOME)
    assert (await toolbox.run(Call("bash", {"command": "rm big"}))).success
    assert (await toolbox.run(Call("write", {"path": "b", "content": "x"}))).success
    assert toolbox.sandbox.bounds.seconds == Bounds.seconds


async def test_a_workspace_that_is_gone_says_so(folder: Path, can_run: None) -> None:
    """Both before a call and in it."""
    toolbox = made(folder).toolbox("work", "ana")
    shutil.rmtree(folder)
    call = Call("write", {"path": "a", "content": "x"})
    for result in (await toolbox.preview(call), await toolbox.run(call)):
        assert (result.success, result.feedback) == (False, BRING_BACK)


def test_an_account_that_is_none_is_said_at_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in the sandbox itself."""
    monkeypatch.setattr("os.geteuid", lambda: 0)
    with pytest.raises(SandboxUnavailable, match="no account"):
        made(folder, account="no-such-account").toolbox("", "ana")


def test_links_are_not_followed_where_bytes_are_counted(folder: Path) -> None:
    """A link to a large folder is as large as a link."""
    put(folder, "deep/a", "12345")
    (folder / "link").symlink_to("/usr")
    assert 5 <= size_of(folder) < 100
    assert size_of(folder / "none") == 0
