"""A real PostgreSQL for tests: a cluster of its own in a temporary folder, on a socket in that folder."""

import asyncio
import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import asyncpg
import pytest

DEBIAN = Path("/usr/lib/postgresql")
OWNERS = ("postgres", "nobody")  # as whom it runs where the tests run as root, which it refuses to be
PASSWORD = "a-password-for-tests"
# This role has to give a password.
ACCESS = "local all guarded scram-sha-256\nlocal all all trust\n"

_numbers = count(1)


@dataclass(frozen=True)
class PostgresServer:
    """A PostgreSQL that listens on a socket in its own folder."""

    programs: Path
    folder: Path
    owner: dict[str, Any]  # as whom its programs run

    def run(self, program: str, *arguments: str, text: str = "") -> str:
        """Run one of its programs and return its output; an error fails the test."""
        done = subprocess.run(
            [self.programs / program, *arguments], input=text, capture_output=True, text=True, cwd=self.folder,
            check=False, **self.owner,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    def make(self) -> None:
        """Make an empty cluster with a user who has a password."""
        self.run("initdb", "-D", "data", "-U", "heed", "-A", "trust", "-E", "UTF8", "--no-sync")
        (self.folder / "data" / "pg_hba.conf").write_text(ACCESS)
        self.start()
        self.tell("postgres", f"CREATE ROLE guarded LOGIN PASSWORD '{PASSWORD}'")

    def start(self, options: str = "-c fsync=off") -> None:
        """Start it, also after a crash."""
        given = f"-k {self.folder} -c listen_addresses='' {options}"
        self.run("pg_ctl", "-D", "data", "-w", "-t", "300", "-l", "log", "-o", given, "start")

    def stop(self, mode: str = "immediate") -> None:
        """End it: "immediate" as in a crash, "fast" by telling everybody."""
        self.run("pg_ctl", "-D", "data", "-w", "-t", "300", "-m", mode, "stop")

    def kill(self) -> None:
        """Kill all its processes with SIGKILL; return when they are gone."""
        postmaster = int((self.folder / "data" / "postmaster.pid").read_text().split()[0])
        os.kill(postmaster, signal.SIGSTOP)  # it must not start anybody meanwhile
        processes = [*_children(postmaster), postmaster]
        for pid in processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        while any(map(_is_alive, processes)):
            time.sleep(0.01)

    def tell(self, database: str, script: str) -> list[str]:
        """The rows that a script answers; it stops at its first error."""
        connection = ("-h", str(self.folder), "-U", "heed", "-d", database)
        return self.run("psql", *connection, "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", text=script).splitlines()

    def do(self, database: str, script: str) -> None:
        """Run a script that answers nothing, at a tenth of what a process costs."""
        asyncio.run(self._do(database, script))

    async def _do(self, database: str, script: str) -> None:
        connection = await asyncpg.connect(host=str(self.folder), user="heed", database=database)
        try:
            await connection.execute(script)
        finally:
            await connection.close()

    def url(self, database: str, user: str = "heed") -> str:
        """The value for HEED_DATABASE_URL."""
        return f"postgresql://{user}@/{database}?host={self.folder}"

    @contextlib.contextmanager
    def database(self, template: str = "template1") -> Iterator[str]:
        """Yield the name of a new database, like its template; dropped at the end, with its connections."""
        name = f"heed_{next(_numbers)}"
        self.tell("postgres", f"CREATE DATABASE {name} TEMPLATE {template}")
        try:
            yield name
        finally:
            self.tell("postgres", f"DROP DATABASE {name} WITH (FORCE)")


@contextlib.contextmanager
def running() -> Iterator[PostgresServer]:
    """A running server; the test is skipped where there is none to start."""
    found = shutil.which("pg_ctl") or max(map(str, DEBIAN.glob("*/bin/pg_ctl")), default=None)
    if found is None:
        pytest.skip("no PostgreSQL server on this machine: apt install postgresql")
    with tempfile.TemporaryDirectory(prefix="heed-pg-") as name:
        server = PostgresServer(Path(found).resolve().parent, Path(name), _owner(name))
        server.make()
        try:
            yield server
        finally:
            server.stop()


def _owner(folder: str) -> dict[str, Any]:
    """In place: the folder belongs to who runs the server."""
    if os.getuid() != 0:
        return {}
    user = next(found for found in pwd.getpwall() if found.pw_name in OWNERS)
    os.chown(folder, user.pw_uid, user.pw_gid)
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()  # also before its parent has taken note: until then it counts as running
