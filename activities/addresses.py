"""Which network addresses a destination may have, and finding them.

What was checked is what is connected to: whoever sends takes the address from here and looks nothing up again, so that a name
cannot mean one address to the check and another to the connection.
"""

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Final

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]

_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
_OWN: Final = (
    ipaddress.IPv4Network("10.0.0.0/8"),
    ipaddress.IPv4Network("172.16.0.0/12"),
    ipaddress.IPv4Network("192.168.0.0/16"),
    # What carriers use behind their translation (RFC 6598), and clusters for their own.
    ipaddress.IPv4Network("100.64.0.0/10"),
    ipaddress.IPv6Network("fc00::/7"),
    ipaddress.IPv6Network("fec0::/10"),
    # A translation to IPv4 of one's own (RFC 8215).
    ipaddress.IPv6Network("64:ff9b:1::/48"),
)
_OF_CLOUDS: Final = frozenset(
    map(ipaddress.ip_address, ("fd00:ec2::254", "fd20:ce::254", "100.100.100.200", "168.63.129.16"))
)
"""Where clouds tell a machine its secrets, as AWS, Google, Alibaba and Azure have it beside their link-local addresses."""
LOOKUPS: Final = 64
"""Names that are looked up at the same time, each once. A resolver that hangs holds its thread for as long as it likes, whoever
still waits for it; so there is room for many of those, and nothing else needs one of these."""

_threads = ThreadPoolExecutor(LOOKUPS, thread_name_prefix="resolve")
_under_way: dict[tuple[str, int], Future[Sequence[str]]] = {}
"""What is being looked up: whoever asks meanwhile is told the same, and needs no thread."""


class ForbiddenAddress(ValueError):
    """The name means an address that this destination may not have. The sentence is for the operator."""


async def resolve(host: str, port: int) -> Sequence[str]:
    """The addresses of a host, as the system finds them; `OSError` where it finds none."""
    found = _under_way.get((host, port))
    if found is None:
        found = _under_way[host, port] = _threads.submit(_looked_up, host, port)
        found.add_done_callback(lambda _: _under_way.pop((host, port), None))
    await _until_done(found)
    return found.result()


def _looked_up(host: str, port: int) -> Sequence[str]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError as error:  # of a label that is empty, or longer than 63 characters
        raise OSError(f"{host[:80]!r} can be no name of a host.") from error
    return list(dict.fromkeys(str(each[4][0]) for each in found))


async def _until_done(found: Future[Sequence[str]]) -> None:
    """Wait for what others may wait for too: whoever leaves takes nothing from them."""
    loop = asyncio.get_running_loop()
    told: asyncio.Future[None] = loop.create_future()

    def tell() -> None:
        if not told.done():
            told.set_result(None)

    def tell_from_there(_: Future[Sequence[str]]) -> None:
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(tell)

    found.add_done_callback(tell_from_there)
    await told


async def addresses_of(host: str, port: int, *, private: bool, resolving: Resolve = resolve) -> Sequence[str]:
    """The addresses that a destination may be reached at, each of them checked.

    One that is forbidden forbids them all: a name that means a public address and a private one is no mistake that should be
    worked around. Raises `ForbiddenAddress`; `OSError` where the name has no address.
    """
    bare = host.removeprefix("[").removesuffix("]")
    try:
        found: Sequence[str] = [str(ipaddress.ip_address(bare))]
    except ValueError:
        found = await resolving(bare, port)
    if not found:
        raise OSError(f"{host!r} has no address.")
    for each in found:
        why = objection(ipaddress.ip_address(each), private=private)
        if why is not None:
            raise ForbiddenAddress(f"{host!r} means {each}, {why}.")
    return found


def objection(address: Address, *, private: bool) -> str | None:
    """Why a destination may not have an address; None where it may.

    With `private`, those of private networks and of this machine are allowed. What is no address of one host (multicast,
    unspecified and reserved ones) is not, nor are those where clouds keep their secrets, link-local ones first of all. An IPv6
    address that stands for an IPv4 one is judged as that.
    """
    inner = _inside(address)
    if inner in _OF_CLOUDS:
        return "where a cloud keeps the secrets of this machine"
    if inner.is_link_local:
        return "a link-local address"
    if inner.is_multicast:
        return "a multicast address"
    if inner.is_loopback or any(inner in each for each in _OWN if each.version == inner.version):
        return None if private else "a private address, and the destination is not registered as private"
    return None if inner.is_global and not inner.is_reserved else "a reserved address"


def _inside(address: Address) -> Address:
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in _NAT64 or (int(address) >> 32 == 0 and int(address) > 1):
        # The second is the deprecated form ::a.b.c.d.
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else address)
