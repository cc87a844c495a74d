"""Ports on this machine: one that is free, and a sentence where one is not."""

import random
import socket
from collections.abc import Collection, Mapping, Sequence
from itertools import combinations

from horarium.errors import Misconfigured

FREE_PORTS = range(15_000, 32_768)
"""Below those that systems hand out by themselves: one of those could be taken by anybody's outgoing connection while the
process that has it is started again."""


def free_port(candidates: Sequence[int] = FREE_PORTS, *, besides: Collection[int] = ()) -> int:
    """A port that nothing listens on, and none of those that were chosen `besides`."""
    for port in random.SystemRandom().sample(candidates, k=len(candidates)):
        if port in besides:
            continue
        try:
            listen("127.0.0.1", port).close()
        except OSError:
            continue
        return port
    raise Misconfigured("No port is free on this machine. Name one that is.")


def listen(host: str, port: int) -> socket.socket:
    """A socket that is bound to an address, which connections of a process that has just ended do not keep."""
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except BaseException:
        listener.close()
        raise
    return listener


def refuse_taken(host: str, port: int, option: str) -> None:
    """Raise `Misconfigured` where nothing can listen at an address."""
    try:
        listener = listen(host, port)
        listener.listen()
        listener.close()
    except OSError as error:
        raise Misconfigured(
            f"Port {port} is taken or not allowed ({error.strerror}). Stop what uses it, or use {option} 0 for any free port."
        ) from error


def refuse_any_taken(host: str, ports: Mapping[str, int]) -> None:
    """The same for several at once, by their options, so that whoever starts a second installation is told once. 0 is any."""
    taken: list[tuple[str, int]] = []
    for option, port in ports.items():
        try:
            refuse_taken(host, port, option)
        except Misconfigured:
            taken.append((option, port))
    if len(taken) == 1:
        ((option, port),) = taken
        refuse_taken(host, port, option)
    if taken:
        named = ", ".join(f"{port} ({option})" for option, port in taken)
        free = " ".join(f"{option} 0" for option, _ in taken)
        raise Misconfigured(
            f"Ports {named} are taken or not allowed. Stop what uses them, such as another installation, or use {free} "
            "for any free ones."
        )


def refuse_equal(ports: Mapping[str, int]) -> None:
    """Raise `Misconfigured` where two options, which `ports` has by name, ask for one port. 0 is any free one."""
    for (option, port), (other, same) in combinations(ports.items(), 2):
        if port == same != 0:
            raise Misconfigured(f"{option} and {other} are both {port}. Choose two ports, or 0 for any free one.")
