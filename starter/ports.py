"""Ports on this machine: one that is free, and a sentence where one is not."""

import random
import socket
from collections.abc import Sequence

from horarium.errors import Misconfigured

FREE_PORTS = range(15_000, 32_768)
"""Below those that systems hand out by themselves: one of those could be taken by anybody's outgoing connection while the
process that has it is started again."""


def free_port(candidates: Sequence[int] = FREE_PORTS) -> int:
    """A port that nothing listens on."""
    for port in random.SystemRandom().sample(candidates, k=len(candidates)):
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
