"""bot.agent.workspaces: the folders that the operator allows, and a scratch folder for each person."""

import os
import pwd
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bot.account_settings import AgentSettings
from bot.agent.sandbox import Bounds
from bot.agent.tools import Call
from bot.agent.workspaces import BRING_BACK, DELETE_SOME, FULL, Workspaces, erase, shows_data, size_of
from bot.errors import AgentNotAllowed, SandboxUnavailable
from tests.bot.agent.workspaces import USER, put


def made(folder: Path, **settings: object) -> Workspaces:
    """The workspaces of an operator who allows a folder."""
    chosen = {"folders": (folder,), "account": USER} | settings
    return Workspaces(AgentSettings(**chosen), folder.parent / "scratch", folder.parent / "data")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["other", "../work", "/etc", "work/", ".", "w" * 300])
async def test_only_a_folder_that_is_allowed_can_be_named(folder: Path, name: str) -> None:
    """A name is no path."""
    workspaces = made(folder)
    assert workspaces.names == ["", "work"]
    assert workspaces.toolbox("work", "ana").folder == folder
    with pytest.raises(
        AgentNotAllowed, match=r"There is no workspace .* You can work in: work, or your own scratch folder\."
    ):
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
    assert size_of(toolbox.folder, 0) > 2_000_000
    refused = await toolbox.run(Call("write", {"path": "b", "content": "x"}))
    assert (refused.success, refused.feedback) == (False, DELETE_SOME)
    assert (await toolbox.run(Call("bash", {"command": "rm big"}))).success
    assert (await toolbox.run(Call("write", {"path": "b", "content": "x"}))).success
    assert toolbox.sandbox.bounds.seconds == Bounds.seconds


async def test_a_quota_holds_while_others_make_room_on_the_disk(
    folder: Path, can_run: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The watch sees the free room of the whole disk; the folder itself is measured once the tool has ended."""
    monkeypatch.setattr("bot.agent.sandbox.free_bytes", lambda _: 1e15)
    toolbox = made(folder, scratch_mb=2).toolbox("", "ana")
    over = await toolbox.run(Call("bash", {"command": "head -c 3000000 /dev/zero > big; echo written"}))
    assert (over.success, over.output.strip()) == (False, "written")
    assert over.feedback.endswith(DELETE_SOME)
    assert (await toolbox.run(Call("bash", {"command": "rm big"}))).success


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
    assert size_of(folder, 0) == 3 * 4096, "the folder, its file and the link"
    put(folder, "large", "x" * 5000)
    assert size_of(folder, 0) == 3 * 4096 + 5000
    assert size_of(folder / "none", 7) == 0


def test_what_cannot_be_looked_into_is_counted_as_hidden(folder: Path) -> None:
    """A folder that cannot be listed, and one whose files cannot be seen; both are erased none the less."""
    put(folder, "closed/deep/large", "x" * 100_000).parent.chmod(0)
    put(folder, "named/large", "x" * 100_000)
    (folder / "named").chmod(0o400)
    other = put(folder.parent, "other/a", "x").parent
    (folder / "link").symlink_to(other)
    folder.parent.chmod(0o777)
    mode = other.stat().st_mode

    def as_account() -> None:
        assert size_of(folder, 1_000_000) > 2_000_000
        erase(folder)

    assert ends_well(as_account)
    assert not folder.exists()
    assert (other.stat().st_mode, (other / "a").exists()) == (mode, True)


async def test_a_scratch_folder_that_hides_something_is_full(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it can hold is counted for what cannot be seen."""
    toolbox = made(folder, scratch_mb=2).toolbox("", "ana")
    (toolbox.folder / "closed").mkdir()

    def walk(top: Path, onerror: Callable[[OSError], None]) -> Iterator[tuple[str, list[str], list[str]]]:
        yield str(top), ["closed"], []
        onerror(PermissionError())

    monkeypatch.setattr("os.walk", walk)
    refused = await toolbox.run(Call("write", {"path": "b", "content": "x"}))
    assert (refused.success, refused.output) == (False, FULL.format(2, 2))


def test_a_folder_with_heeds_data_is_refused(folder: Path) -> None:
    """Also one within it; the scratch folders are not, wherever they lie."""
    data = folder / "data"
    settings = AgentSettings(folders=(folder, data / "in"), account=USER)
    workspaces = Workspaces(settings, data / "scratch", data)
    assert workspaces.toolbox("work", "ana").folder == folder, "no data is there yet"
    data.mkdir()
    for name in ("work", "in"):
        with pytest.raises(AgentNotAllowed, match="HEED_DATA_DIR"):
            workspaces.toolbox(name, "ana")
    assert workspaces.toolbox("", "ana").folder == data / "scratch" / "ana"
    assert not shows_data(folder.parent / "other", data)


async def test_without_folders_the_scratch_folder_is_named(folder: Path) -> None:
    """In a sentence that reads well."""
    with pytest.raises(AgentNotAllowed, match=r"There is no workspace a\. You can work in your own scratch folder\."):
        made(folder, folders=()).toolbox("a", "ana")


def ends_well(work: Callable[[], None]) -> bool:
    """Do something in a process of the account that tools run as: for root no mode hides anything."""
    child = os.fork()
    if child == 0:
        try:
            if USER:
                os.setuid(pwd.getpwnam(USER).pw_uid)
            work()
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitpid(child, 0)[1] == 0
