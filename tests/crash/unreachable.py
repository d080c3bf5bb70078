"""Parts of a cluster that nothing reaches over the network for a while, though they run: by nftables, as root.

Packets to and from the ports at which they listen are dropped as they come in, so that neither end hears of it; what
was sent meanwhile is sent again by TCP afterwards.
"""

import asyncio
import os
import secrets
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress

import psutil

KIND = "parted from each other"  # a fault that machines can have only where `is_there`


def is_there() -> bool:
    """Return True if the network of this machine can be parted by this account."""
    return shutil.which("nft") is not None and os.geteuid() == 0


def ports_of(process: psutil.Process) -> set[int]:
    """Return the TCP ports at which a process and its children listen."""
    found: set[int] = set()
    for one in (process, *process.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            found |= {c.laddr.port for c in one.net_connections("tcp") if c.status == psutil.CONN_LISTEN}
    return found


@asynccontextmanager
async def parted(ports: Iterable[int]) -> AsyncIterator[None]:
    """Let nothing reach these ports meanwhile, nor come from them."""
    table = f"heed_parted_{secrets.token_hex(4)}"
    among = ", ".join(str(port) for port in sorted(ports))
    rules = f"tcp dport {{ {among} }} drop; tcp sport {{ {among} }} drop;"
    await _nft(f"table inet {table} {{ chain arriving {{ type filter hook input priority 0; {rules} }}; }}\n")
    try:
        yield
    finally:
        await _nft(f"delete table inet {table}\n")


async def _nft(rules: str) -> None:
    await asyncio.to_thread(subprocess.run, ["nft", "-f", "-"], input=rules.encode(), check=True)
