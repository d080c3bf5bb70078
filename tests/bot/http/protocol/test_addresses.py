"""bot.http.protocol.addresses: the address that is believed and counted."""

import pytest

from bot.http.protocol.addresses import client_behind, counted, networks

PROXIES = networks(("127.0.0.1", "::1", "10.0.0.0/8"))


@pytest.mark.parametrize(
    ("remote", "forwarded", "client"),
    [
        ("203.0.113.7", "198.51.100.1", "203.0.113.7"),  # no proxy: its header is not believed
        ("127.0.0.1", "", "127.0.0.1"),
        ("127.0.0.1", "203.0.113.7", "203.0.113.7"),
        ("127.0.0.1", "198.51.100.1, 203.0.113.7", "203.0.113.7"),  # the caller wrote the first one
        ("127.0.0.1", "198.51.100.1, 203.0.113.7, 10.1.2.3", "203.0.113.7"),  # through two proxies
        ("127.0.0.1", "10.1.2.3", "10.1.2.3"),
        ("127.0.0.1", "nonsense", "127.0.0.1"),
        ("::1", "2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("::ffff:127.0.0.1", "203.0.113.7", "203.0.113.7"),
        ("", "203.0.113.7", ""),
    ],
)
def test_only_proxies_are_believed(remote: str, forwarded: str, client: str) -> None:
    """The nearest hop that is no trusted proxy is the caller."""
    hops = forwarded.split(",") if forwarded else []
    assert client_behind(remote, hops, PROXIES) == client


def test_an_ipv6_customer_is_one_address() -> None:
    """All addresses of a network of 64 bits are counted together."""
    assert counted("2001:db8::1") == counted("2001:db8::ffff:1") != counted("2001:db8:0:1::1")
    assert counted("::ffff:203.0.113.7") == "203.0.113.7"
    assert counted("nonsense") == "nonsense"
