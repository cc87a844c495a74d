"""Which addresses a destination may have: what was checked is what is connected to, and no spelling gets around it."""

import asyncio
import contextlib
import ipaddress
import socket
import threading
from collections import Counter

import pytest

from activities.addresses import LOOKUPS, ForbiddenAddress, addresses_of, objection, resolve

PUBLIC = ["8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::"]
OWN = [
    "127.0.0.1",
    "127.255.255.254",
    "10.1.2.3",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "100.64.0.1",
    "::1",
    "fc00::1",
    "fd12:3456::1",
    "fec0::1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b:1::1",
    "2002:7f00:1::",
    "2001:0:4136:e378:8000:63bf:80ff:fffe",  # Teredo, for 127.0.0.1
]
NOBODYS = [
    "0.0.0.0",
    "0.1.2.3",
    "::",
    "169.254.169.254",
    "::ffff:169.254.169.254",
    "64:ff9b::a9fe:a9fe",
    "fd00:ec2::254",  # what AWS calls the same
    "fd20:ce::254",  # and Google
    "100.100.100.200",  # and Alibaba
    "168.63.129.16",  # and Azure, where it looks as public as any
    "::ffff:168.63.129.16",
    "fe80::1",
    "fe80::1%1",
    "224.0.0.1",
    "ff02::1",
    "240.0.0.1",
    "255.255.255.255",
    "192.0.2.1",
    "198.18.0.1",
    "2001:db8::1",
]


@pytest.mark.parametrize("text", PUBLIC)
def test_a_public_address_is_anybodys(text):
    assert objection(ipaddress.ip_address(text), private=False) is None
    assert objection(ipaddress.ip_address(text), private=True) is None


@pytest.mark.parametrize("text", OWN)
def test_an_address_of_a_private_network_needs_a_private_destination(text):
    assert "not registered as private" in objection(ipaddress.ip_address(text), private=False)
    assert objection(ipaddress.ip_address(text), private=True) is None


@pytest.mark.parametrize("text", NOBODYS)
def test_an_address_that_no_agent_has_is_forbidden_to_all(text):
    assert objection(ipaddress.ip_address(text), private=False) is not None
    assert objection(ipaddress.ip_address(text), private=True) is not None


def found(host, *, private=False, resolving=None):
    more = {} if resolving is None else {"resolving": resolving}
    return asyncio.run(addresses_of(host, 443, private=private, **more))


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "[::1]", "2130706433", "0x7f000001", "127.1", "017700000001", "localhost"]
)
def test_every_spelling_of_this_machine_is_this_machine(host):
    """The system itself is asked what such a spelling means."""
    with pytest.raises(ForbiddenAddress, match="private address"):
        found(host)
    assert set(found(host, private=True)) <= {"127.0.0.1", "::1"}


@pytest.mark.parametrize("second", ["10.0.0.1", "169.254.169.254", "::1"])
def test_one_forbidden_address_of_a_name_forbids_them_all(second):
    async def resolving(_host, _port):
        return ["8.8.8.8", second]

    with pytest.raises(ForbiddenAddress, match=second):
        found("agent.test", resolving=resolving)


def test_a_name_without_an_address_is_not_found():
    async def resolving(_host, _port):
        return []

    with pytest.raises(OSError, match=r"agent\.test"):
        found("agent.test", resolving=resolving)


@pytest.mark.parametrize("host", ["a..b", ".agent.test", "x" * 64 + ".test"])
def test_a_name_that_can_be_no_name_is_not_found(host):
    """The system does not even ask for it: it cannot be written as labels of 1 to 63 characters."""
    with pytest.raises(OSError, match="no name"):
        found(host)


class Resolver:
    """A system's resolver that answers of no name that begins with `hangs`, until it is let go on."""

    def __init__(self):
        self.go_on = threading.Event()
        self.asked = Counter()
        self._usual = socket.getaddrinfo

    def __call__(self, host, *args, **named):
        self.asked[host] += 1
        if host.startswith("hangs"):
            self.go_on.wait(60)
            raise socket.gaierror(f"of {host}")
        return self._usual(host, *args, **named)


@pytest.fixture
def resolver(monkeypatch):
    there = Resolver()
    monkeypatch.setattr(socket, "getaddrinfo", there)
    yield there
    there.go_on.set()


async def asked_and_left(host):
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(0.05):
            await resolve(host, 443)


@pytest.mark.parametrize("name_of", [lambda _: "hangs.test", "hangs-{}.test".format], ids=["one name", "many names"])
def test_names_that_nobody_answers_for_hold_up_no_other(resolver, name_of):
    """Whoever asked for one gives up and comes again, while the first question still holds its thread."""

    async def asking():
        for _ in range(2):
            await asyncio.gather(*(asked_and_left(name_of(number)) for number in range(LOOKUPS - 1)))
        async with asyncio.timeout(30):
            return await resolve("localhost", 443)

    assert asyncio.run(asking())
    assert set(resolver.asked.values()) == {1}


def test_many_who_ask_for_a_name_at_once_are_all_told(resolver):
    async def asking():
        several = asyncio.gather(*(resolve("hangs.test", 443) for _ in range(5)), return_exceptions=True)
        await asyncio.sleep(0.05)
        resolver.go_on.set()
        return await several

    told = asyncio.run(asking())
    assert [type(each) for each in told] == [socket.gaierror] * 5
    assert resolver.asked == {"hangs.test": 1}
