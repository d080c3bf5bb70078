"""The address a request comes from, and the name under which an address is counted.

Invariant: a forwarded address is believed only if the connection itself comes from a trusted proxy, and then only up to
the first hop that is none: what stands before it, the caller may have written.
"""

import ipaddress
from collections.abc import Iterable

from aiohttp import web

from bot.http.protocol.app_keys import CORE

FORWARDED_FOR, FORWARDED_PROTO = "X-Forwarded-For", "X-Forwarded-Proto"
IPV6_NETWORK_BITS = 64  # one customer has at least that many addresses
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def client_address(request: web.Request) -> str:
    """Return the counted address of a request's caller, who may stand behind trusted proxies."""
    hops = [hop for header in request.headers.getall(FORWARDED_FOR, ()) for hop in header.split(",")]
    return client_behind(request.remote or "", hops, _trusted(request))


def is_https(request: web.Request) -> bool:
    """Return True if the caller uses HTTPS: with heed, or with a trusted proxy before it."""
    address = parsed(request.remote or "")
    is_proxy = address is not None and is_in(address, _trusted(request))
    return request.secure or (is_proxy and request.headers.get(FORWARDED_PROTO, "").lower() == "https")


def client_behind(remote: str, hops: list[str], trusted: Iterable[Network]) -> str:
    """Return the counted address of the nearest hop that is no trusted proxy. `hops`: the farthest first."""
    address = parsed(remote)
    while hops and address is not None and is_in(address, trusted):
        nearer = parsed(hops.pop())
        if nearer is None:
            break
        address = nearer
    return counted(str(address)) if address is not None else remote


def counted(address: str) -> str:
    """Return the name under which an address is counted: itself, or its network of 64 bits for IPv6."""
    known = parsed(address)
    if not isinstance(known, ipaddress.IPv6Address):
        return str(known or address)
    return str(ipaddress.ip_network((known.packed, IPV6_NETWORK_BITS), strict=False))


def networks(names: Iterable[str]) -> tuple[Network, ...]:
    """Return addresses and networks, as written in the settings, as networks."""
    return tuple(ipaddress.ip_network(name, strict=False) for name in names)


def is_in(address: Address, among: Iterable[Network]) -> bool:
    """Return True if the address lies in one of the networks."""
    return any(address in network for network in among)


def parsed(text: str) -> Address | None:
    """Return an address as an address, IPv4 written as IPv6 as IPv4; None if the text is none."""
    try:
        address = ipaddress.ip_address(text.strip())
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def _trusted(request: web.Request) -> tuple[Network, ...]:
    return networks(request.app[CORE].settings.http.trusted_proxies)
