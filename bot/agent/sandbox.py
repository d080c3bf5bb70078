"""Programs of an agent in bubblewrap: one folder to write in, a read-only system, no network, no environment.

Owns bubblewrap's command line and the bounds of what runs behind it. Invariants: nothing runs as root, outside of the
namespaces neither (a fork bomb would have no bound); of this machine a program sees its system's programs and one
folder, and of heed nothing: no data directory, no process, no variable; when a run ends, by itself or not, every
process of it has ended.
"""

import asyncio
import copy
import math
import os
import pwd
import select
import shutil
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from bot.agent.cut_output import CutOutput
from bot.agent.guard import Guard
from bot.errors import SandboxUnavailable

BUBBLEWRAP = "bwrap"
WORK = "/work"  # where a program sees the folder
_SYSTEM = ("/usr", "/etc/alternatives", "/etc/ld.so.cache")  # read-only
_TOPS = (Path("/bin"), Path("/lib"), Path("/lib64"), Path("/sbin"))  # links into /usr on most systems
_ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/tmp", "LANG": "C.UTF-8", "TERM": "dumb"}  # noqa: S108
UNGUARDED = Guard()
_WATCH_S = 0.1
_END_MS = 5_000  # for the kernel to end what was killed
_CHUNK_BYTES = 64 * 1024

NOT_INSTALLED = "bubblewrap is not installed: apt install bubblewrap"
AS_ROOT = "heed runs as root here: run it as another account, or name one that tools get (--account nobody)"
NO_ACCOUNT = "there is no account {} here"
CANNOT_RUN = "bubblewrap cannot run here ({}): 0.8 is needed, and user namespaces allowed (Docker: seccomp, AppArmor)"


@dataclass(frozen=True)
class Bounds:
    """The bounds of one run, over all of its processes where nothing else is said."""

    seconds: float = 30.0
    memory_bytes: int = 1024**3
    temporary_bytes: int = 64 * 1024**2  # of /tmp, which is in memory
    disk_bytes: int = 512 * 1024**2  # by which the folder's disk may fill meanwhile
    file_bytes: int = 128 * 1024**2  # each
    processes: int = 64
    open_files: int = 256  # of each process
    output_chars: int = 200_000  # that are kept of what it prints


@dataclass(frozen=True)
class Account:
    """The account of programs; None is heed's own."""

    uid: int | None = None
    gid: int | None = None
    groups: list[int] | None = None  # besides


@dataclass(frozen=True)
class Finished:
    """How a run ended: its exit status, or None and the bound that it went over."""

    output: str  # both streams, as they came
    status: int | None
    ended_by: str = ""


class Sandbox:
    """One folder, and the account that programs in it run as."""

    def __init__(self, folder: Path, user: str = "", bounds: Bounds | None = None) -> None:
        """`user` is an account's name, needed where heed runs as root. Raises SandboxUnavailable."""
        self.folder = folder
        self.bounds = bounds or Bounds()
        self._account = account(user)

    def within(self, bounds: Bounds) -> "Sandbox":
        """Return the same folder and account with other bounds."""
        other = copy.copy(self)
        other.bounds = bounds
        return other

    async def run(
        self,
        command: Sequence[str],
        stdin: bytes = b"",
        shown: Mapping[str, bytes] | None = None,
        guard: Guard = UNGUARDED,
    ) -> Finished:
        """Run a command in the folder; `shown` are files it may read, by their paths. Raises SandboxUnavailable."""
        with ExitStack() as stack:
            files = {place: stack.enter_context(_held(data)) for place, data in (shown or {}).items()}
            empty = [stack.enter_context(_held(b"")) for _ in range(guard.num_files)]
            life = stack.enter_context(_life())
            words = wrapped(guard.mounts(self.folder, WORK, empty), self.bounds, files)
            words += tied(limited(guard.checked(command), self.bounds), life)
            beginning = asyncio.create_task(self._begun(words, [*files.values(), *empty, life]))
            try:
                return await self._finished(await asyncio.shield(beginning), stdin)
            finally:
                await _end(await beginning)

    async def try_out(self) -> None:
        """Raise SandboxUnavailable, with the remedy, if nothing can be run here."""
        found = await self.run(["true"])
        if found.status != 0:
            raise SandboxUnavailable(CANNOT_RUN.format(found.output.strip()[:200] or found.ended_by))

    async def _begun(self, words: Sequence[str], descriptors: Sequence[int]) -> asyncio.subprocess.Process:
        try:
            return await asyncio.create_subprocess_exec(
                *words,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                env=_ENVIRONMENT,
                cwd="/",
                pass_fds=descriptors,
                user=self._account.uid,
                group=self._account.gid,
                extra_groups=self._account.groups,
                start_new_session=True,
            )
        except (FileNotFoundError, PermissionError):
            raise SandboxUnavailable(NOT_INSTALLED) from None

    async def _finished(self, process: asyncio.subprocess.Process, stdin: bytes) -> Finished:
        output = CutOutput(self.bounds.output_chars)
        talk = asyncio.create_task(_talk(process, stdin, output))
        watch = asyncio.create_task(self._watched(process.pid))
        try:
            await asyncio.wait({talk, watch}, return_when=asyncio.FIRST_COMPLETED)
            ended_by = watch.result() if watch.done() else ""
            if ended_by:
                await _kill(process)
            await talk
            return Finished(output.text, None if ended_by else await process.wait(), ended_by)
        finally:
            watch.cancel()
            talk.cancel()

    async def _watched(self, pid: int) -> str:
        """Return which bound a run has gone over, once it has."""
        end_s = time.monotonic() + self.bounds.seconds
        least_free_bytes = free_bytes(self.folder) - self.bounds.disk_bytes
        while True:
            await asyncio.sleep(_WATCH_S)
            if time.monotonic() > end_s:
                return f"it took longer than {self.bounds.seconds:g} s"
            if await asyncio.to_thread(memory_of, pid) > self.bounds.memory_bytes:
                return f"it used more than {self.bounds.memory_bytes // 1024**2} MiB of memory"
            if free_bytes(self.folder) < least_free_bytes:
                return f"it wrote more than {self.bounds.disk_bytes // 1024**2} MiB"


def account(user: str) -> Account:
    """Return who programs run as: an account of that name if heed is root. Raises SandboxUnavailable."""
    if os.geteuid() != 0:
        return Account()
    if not user:
        raise SandboxUnavailable(AS_ROOT)
    try:
        found = pwd.getpwnam(user)
    except KeyError:
        raise SandboxUnavailable(NO_ACCOUNT.format(user)) from None
    if found.pw_uid == 0:
        raise SandboxUnavailable(AS_ROOT)
    return Account(found.pw_uid, found.pw_gid, [])


def wrapped(work: Sequence[str], bounds: Bounds, files: Mapping[str, int]) -> list[str]:
    """Return bubblewrap's command line, to be followed by the command.

    `work` are its words for the folder; `files` are descriptors, by their paths.
    """
    words = [BUBBLEWRAP, "--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--new-session"]
    words += ["--hostname", "workspace"]
    for part in _SYSTEM:
        words += ["--ro-bind-try", part, part]
    for top in _TOPS:
        if top.is_symlink():
            words += ["--symlink", str(top.readlink()), str(top)]
        elif top.exists():
            words += ["--ro-bind", str(top), str(top)]
    for place, descriptor in files.items():
        words += ["--ro-bind-data", str(descriptor), place]
    temporary = ["--size", str(bounds.temporary_bytes), "--tmpfs"]
    words += ["--proc", "/proc", "--dev", "/dev", *temporary, "/dev/shm", "--remount-ro", "/dev"]  # noqa: S108
    words += [*temporary, "/tmp", *work, "--remount-ro", "/"]  # noqa: S108
    return [*words, "--chdir", WORK, "--"]


def limited(command: Sequence[str], bounds: Bounds) -> list[str]:
    """Return a command with the kernel's own limits, which it cannot raise."""
    limits = {
        "as": 4 * bounds.memory_bytes,  # an address is not yet memory; what is used is watched
        "nproc": bounds.processes,
        "nofile": bounds.open_files,
        "fsize": bounds.file_bytes,
        "cpu": round(bounds.seconds) + 1,
        "core": 0,
    }
    return ["prlimit", *(f"--{name}={value}" for name, value in limits.items()), "--", *command]


def tied(command: Sequence[str], life: int) -> list[str]:
    """Return a command that ends, with all that it has begun, once the other end of the pipe `life` is closed.

    bubblewrap's own --die-with-parent leaves a moment at its start in which it is not tied yet.
    """
    watch = f'{{ read -r _ <&{life}; kill -KILL -1; }} & exec {life}<&- "$@"'
    return ["bash", "-c", watch, "bash", *command]


def memory_of(pid: int) -> int:
    """Return the bytes in memory of a process and of all that it has begun. Blocking: it reads all processes."""
    total = 0
    with suppress(psutil.NoSuchProcess):
        whole = psutil.Process(pid)
        for process in [whole, *whole.children(recursive=True)]:
            with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                total += process.memory_info().rss
    return total


def free_bytes(folder: Path) -> float:
    """Return the room on a folder's disk; infinity for a folder that is gone."""
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return math.inf


@contextmanager
def _life() -> Iterator[int]:
    """Yield the end of a pipe that is read. The other one is open in this process alone, as long as it lives."""
    reader, writer = os.pipe()
    try:
        yield reader
    finally:
        os.close(writer)
        os.close(reader)


@contextmanager
def _held(data: bytes) -> Iterator[int]:
    """Hold a file in memory; yield its descriptor."""
    descriptor = os.memfd_create("shown")
    try:
        with os.fdopen(os.dup(descriptor), "wb") as file:
            file.write(data)
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield descriptor
    finally:
        os.close(descriptor)


async def _talk(process: asyncio.subprocess.Process, stdin: bytes, output: CutOutput) -> None:
    await asyncio.gather(_feed(process, stdin), _drain(process, output))


async def _feed(process: asyncio.subprocess.Process, data: bytes) -> None:
    assert process.stdin is not None
    with suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(data)
        await process.stdin.drain()
    process.stdin.close()


async def _drain(process: asyncio.subprocess.Process, output: CutOutput) -> None:
    assert process.stdout is not None
    while chunk := await process.stdout.read(_CHUNK_BYTES):
        output.take(chunk)


async def _kill(process: asyncio.subprocess.Process) -> None:
    """Kill bubblewrap if it still runs, and wait until nothing of its namespace is left.

    The namespace's first process is bubblewrap's child and the last of it to be gone, as the kernel ends all others
    before. At its start it waits for bubblewrap, and would wait for ever, so it is not left to die with that.
    """
    if process.returncode is None:
        with suppress(ProcessLookupError, psutil.NoSuchProcess):
            await asyncio.to_thread(_kill_with_children, process.pid)


def _kill_with_children(pid: int) -> None:
    """Kill a group of processes and its leader's children. Blocking. Raises as `os.kill` and psutil do."""
    os.killpg(pid, signal.SIGSTOP)  # from here on it begins no other
    with ExitStack() as stack:
        try:
            children = [stack.enter_context(_watched_end(child.pid)) for child in psutil.Process(pid).children()]
        finally:
            os.killpg(pid, signal.SIGKILL)
        for child in children:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(child, signal.SIGKILL)
            _wait_until_ended(child)


@contextmanager
def _watched_end(pid: int) -> Iterator[int]:
    """Yield a descriptor of a process, which is ready to be read once that has ended."""
    descriptor = os.pidfd_open(pid)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _wait_until_ended(descriptor: int) -> None:
    end = select.poll()
    end.register(descriptor, select.POLLIN)
    end.poll(_END_MS)


async def _end(process: asyncio.subprocess.Process) -> None:
    """Kill it, and wait until it is gone, without listening any more: what it wrote last is not waited for.

    The pipes alone are closed: the transport's own end looks for the process's status, too, and the one
    that waits for it would then find none.
    """
    await _kill(process)
    assert process.stdin is not None
    unread = process.stdin.transport
    if unread.get_write_buffer_size():
        unread.abort()
    unread.close()
    if output := process._transport.get_pipe_transport(1):  # type: ignore[attr-defined]
        output.close()
    await process.wait()
