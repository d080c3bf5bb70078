"""bot.agent.repository: a workspace that is a work tree, read in the sandbox, and what a tool cannot do to it."""

import json
from pathlib import Path

import pytest

from bot.agent import repository
from bot.agent.inside import git as inside_git
from bot.agent.repository import GitState, Repository, placed, summary, told
from bot.agent.sandbox import Sandbox
from bot.agent.toolbox import Toolbox
from bot.agent.tools import read_call
from tests.bot.agent.repositories import LEAVES_A_MARK, git, give_all, make_conflict, make_repository, outside
from tests.bot.agent.workspaces import USER, names, put
from tests.patience import PATIENCE_S

ON_MAIN = GitState("main", 3, ["a.txt", 'say "yes".txt'])


@pytest.fixture
def tree(folder: Path) -> Path:
    """A work tree with one commit."""
    return make_repository(folder)


@pytest.fixture
def tools(sandbox: Sandbox, tree: Path) -> Toolbox:
    """The toolbox of the work tree."""
    return Toolbox(sandbox)


async def bash(tools: Toolbox, command: str) -> str:
    """What a command has answered, and what to do."""
    result = await tools.run(read_call("bash", json.dumps({"command": command})))
    return f"{result.output}{result.feedback}"


def is_started_outside(folder: Path) -> bool:
    """True if git, run as the person would, starts a program that leaves a mark beside the workspace."""
    put(folder, "a.txt", "changed\n")
    for words in (["status"], ["commit", "--quiet", "--all", "--message", "changed"]):
        git(folder, *words, may_fail=True)
    return (folder.parent / "mark").exists()


async def test_a_work_tree_is_read(tools: Toolbox, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Again after each run of a tool."""
    monkeypatch.setattr(repository, "SLOW_S", PATIENCE_S)
    assert await tools.repository.state() == GitState("main", 0)
    await bash(tools, "echo two > a.txt; touch b.txt")
    assert await tools.repository.state() == GitState("main", 2)
    make_conflict(tree)
    assert await Repository(tools.sandbox).state() == GitState("main", 2, ["a.txt"])
    git(tree, "checkout", "--quiet", "--force", "--detach")
    found = await Repository(tools.sandbox).state()
    assert found is not None
    assert found.is_detached
    assert len(found.branch) == 7


async def test_a_linked_work_tree_that_is_seen_is_read(tools: Toolbox, sandbox: Sandbox, tree: Path) -> None:
    """From the top that holds its repository; alone, or as a part of a work tree, a folder is no work tree."""
    git(tree, "worktree", "add", "--quiet", "linked")
    put(tree, "part/b.txt", "x\n")
    assert (await tools.repository.state()) is not None
    for name in ("linked", "part"):
        inner = Toolbox(Sandbox(tree / name, USER))
        assert await inner.repository.state() is None
        assert (await inner.run(read_call("bash", '{"command": "echo still working"}'))).output == "still working\n"
    assert "Read-only" in await bash(Toolbox(Sandbox(tree / "linked", USER)), "echo gitdir: evil > .git")


async def test_what_cannot_be_read_is_none(
    tools: Toolbox, sandbox: Sandbox, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that is no repository, a broken one, a look that takes too long, a sandbox that is not there."""
    (tree / ".git" / "HEAD").rename(tree / ".git" / "gone")
    assert await tools.repository.state() is None
    (tree / ".git" / "gone").rename(tree / ".git" / "HEAD")
    git(tree, "config", "filter.x.clean", "sleep 4731")
    put(tree, ".gitattributes", "*.txt filter=x\n")
    put(tree, "a.txt", "two\n")
    monkeypatch.setattr(repository, "BOUNDS", repository.Bounds(seconds=1.0))
    assert await Repository(sandbox).state() is None
    monkeypatch.setattr("bot.agent.sandbox.BUBBLEWRAP", "no-such-program")
    assert await Repository(sandbox).state() is None
    assert await Repository(Sandbox(tree / "none", USER)).state() is None


async def test_a_slow_look_is_not_repeated_for_a_while(tools: Toolbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even after a run: a page that is drawn does not wait for it each time."""
    monkeypatch.setattr(repository, "SLOW_S", 0.0)
    assert await tools.repository.state() == GitState("main", 0)
    await bash(tools, "touch b.txt")
    assert await tools.repository.state() == GitState("main", 0)


async def test_programs_that_a_repository_names_run_in_the_sandbox_alone(tools: Toolbox, tree: Path) -> None:
    """Its filters cannot write in the workspace; git asked outside would run them."""
    mark = LEAVES_A_MARK.format(tree.parent / "mark")
    git(tree, "config", "filter.x.clean", f"{mark}; touch here; cat")
    put(tree, ".gitattributes", "*.txt filter=x\n")
    put(tree, "a.txt", "changed\n")
    assert (await tools.repository.state()) is not None
    assert names(tree) == {".git", ".gitattributes", "a.txt"}
    assert not (tree.parent / "mark").exists()


ATTACKS = {
    "config": "git config core.fsmonitor {}",
    "config by hand": "printf '[core]\\nfsmonitor = \"%s\"\\n' {} >> .git/config",
    "a new .git": "mv .git old; cp -r old .git; git config core.fsmonitor {}",
    "a copy in its place": "cp -r .git new; git -C new config core.fsmonitor {}; rm -rf .git; mv new .git",
    "a hook": "printf '#!/bin/sh\\n%s\\n' {} > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit",
    "new hooks": "mv .git/hooks .git/old; mkdir .git/hooks; printf '#!/bin/sh\\n%s\\n' {} > .git/hooks/pre-commit; "
    "chmod +x .git/hooks/pre-commit",
    "settings of a work tree": "git config -f .git/config.worktree core.fsmonitor {}",
    "an included file": "git config -f more.gitconfig core.fsmonitor {}",
    "its place": "mkdir x; git config -f x/y core.fsmonitor {}; mv x/y more.gitconfig",
    "a common folder": "cp -r .git evil; git config -f evil/config core.fsmonitor {}; echo ../evil > .git/commondir",
    "husky's hooks": "mv .husky x; mkdir .husky; printf '#!/bin/sh\\n%s\\n' {} > .husky/pre-commit; chmod +x .husky/*",
    "a hook of husky's": "printf '#!/bin/sh\\n%s\\n' {} > .husky/pre-commit; chmod +x .husky/pre-commit",
}


@pytest.mark.parametrize("name", ATTACKS)
async def test_bash_puts_nothing_where_git_would_run_it(tools: Toolbox, tree: Path, name: str) -> None:
    """Into its settings, those they include, its hooks, or another folder in its place."""
    settle(tree, name)
    await bash(tools, ATTACKS[name].format(f"'{LEAVES_A_MARK.format(tree.parent / 'mark')}'"))
    give_all(tree)
    assert not is_started_outside(tree)


@pytest.mark.parametrize("name", ATTACKS)
def test_the_attacks_would_succeed_without_a_sandbox(tree: Path, name: str) -> None:
    """So that they prove something."""
    settle(tree, name)
    command = ATTACKS[name].format(f"'{LEAVES_A_MARK.format(tree.parent / 'mark')}'")
    outside(tree, "bash", "-c", command)
    assert is_started_outside(tree)


def settle(tree: Path, name: str) -> None:
    """In place: let settings name what an attack changes."""
    git(tree, "config", "include.path", "../more.gitconfig")
    git(tree, "config", "extensions.worktreeConfig", "true")
    if "husky" in name:
        put(tree, ".husky/commit-msg", "#!/bin/sh\n")
        git(tree, "config", "core.hooksPath", ".husky")


async def test_bash_can_still_commit(tools: Toolbox, tree: Path) -> None:
    """And branch, and merge; what cannot be changed is said with its reason."""
    done = await bash(tools, "echo two > a.txt && git commit -qam two && git switch -qc new && git log --format=%s")
    assert done == "two\none\n"
    assert git(tree, "log", "--format=%s").split() == ["two", "one"]
    refused = await bash(tools, "git config core.pager less")
    assert refused.endswith(
        "Hooks and settings of git are read-only here: they name programs that run outside of the sandbox later."
    )
    assert "settings of git" not in await bash(tools, "false")


@pytest.mark.parametrize(
    "path", [".git/hooks/pre-commit", ".git/config", ".GIT/x", "sub/.git", "sub/.git/config", "link/x"]
)
async def test_no_tool_writes_gits_own_files(tools: Toolbox, tree: Path, path: str) -> None:
    """The person and the model read why, before the call and after it; also through a link."""
    (tree / "link").symlink_to(".git")
    before = names(tree / ".git")
    for call in (
        read_call("write", json.dumps({"path": path, "content": "x"})),
        read_call("edit", json.dumps({"path": path, "old": "[core]", "new": "x"})),
        read_call("edit_lines", json.dumps({"path": path, "start": 1, "end": 1, "content": "x"})),
    ):
        for result in (await tools.preview(call), await tools.run(call)):
            assert not result.success
            assert f"{path} belongs to git itself, and its hooks and settings name programs" in result.output
    assert names(tree / ".git") - before <= {"config.worktree"}


async def test_a_tool_does_not_write_hooks_that_lie_elsewhere(tools: Toolbox, tree: Path) -> None:
    """Where settings name their folder."""
    settle(tree, "husky")
    for path in (".husky/pre-commit", ".husky/commit-msg", "more.gitconfig"):
        result = await tools.run(read_call("write", json.dumps({"path": path, "content": "x"})))
        assert (result.success, "cannot be written" in result.output) == (False, True)


async def test_where_settings_cannot_be_read_nothing_of_git_can_be_changed(tools: Toolbox, tree: Path) -> None:
    """So neither can they."""
    put(tree, ".git/config", "[core\n")
    await bash(tools, "echo x > .git/x; echo x > .git/config; echo x > b.txt")
    assert "x" not in names(tree / ".git")
    assert (tree / ".git/config").read_text() == "[core\n"
    assert (tree / "b.txt").exists()


async def test_a_conflict_is_said(tools: Toolbox, tree: Path) -> None:
    """In what the person sees of a change, and to the model; a file that is read says so, too."""
    make_conflict(tree)
    change = read_call("write", '{"path": "a.txt", "content": "both\\n"}')
    said = "a.txt has 1 unresolved conflict of git (line 1); after this change there are none left."
    assert (await tools.preview(change)).output.splitlines()[0] == said
    seen = await tools.run(read_call("read", '{"path": "a.txt"}'))
    assert (seen.success, seen.feedback[:44]) == (True, "a.txt has 1 unresolved conflict of git (line")
    result = await tools.run(change)
    assert (result.success, result.feedback) == (True, said)
    assert (await tools.run(read_call("read", '{"path": "a.txt"}'))).feedback == ""


def test_a_state_in_words() -> None:
    """For a person, and for the model."""
    assert summary(ON_MAIN) == "main, 3 changed files, 2 conflicts"
    assert summary(GitState("main", 1, ["a"])) == "main, 1 changed file, 1 conflict"
    assert placed("notes", GitState("main", 0)) == "notes (main, nothing changed)"
    assert placed("notes", None) == "notes"
    assert told(None) == ""
    assert told(GitState("main", 3)) == "The folder is a git repository on branch main; 3 files are changed."
    assert told(GitState("1234567", 0, [], True)) == (
        "The folder is a git repository at commit 1234567; no file is changed."
    )
    assert told(ON_MAIN).endswith(' There are unresolved conflicts in "a.txt", "say \\"yes\\".txt".')


async def test_names_are_shown_as_they_are(tools: Toolbox, tree: Path) -> None:
    """None of them ends its line or runs the other way, and there is a bound to them."""
    put(tree, "a\nb\u202ec.txt", "one\n")
    git(tree, "add", ".")
    git(tree, "commit", "--quiet", "--message", "two")
    make_conflict_in(tree, "a\nb\u202ec.txt")
    found = await tools.repository.state()
    assert found is not None
    assert found.conflicts == ["a b<U+202E>c.txt"]
    assert inside_git.MOST_CONFLICTS * inside_git.MOST_NAME_CHARS < 7000


def make_conflict_in(tree: Path, name: str) -> None:
    """Merge two changes of a file that meet."""
    for branch, text in (("theirs", "theirs\n"), ("ours", "ours\n")):
        git(tree, "switch", "--quiet", "--create", branch, "main")
        put(tree, name, text)
        git(tree, "commit", "--quiet", "--all", "--message", branch)
    git(tree, "merge", "--quiet", "theirs", may_fail=True)
