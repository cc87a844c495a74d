"""Ports of this machine: whoever starts a second installation is told of all that are taken, at once."""

import socket
from contextlib import ExitStack

import pytest

from horarium.errors import Misconfigured
from starter.ports import refuse_any_taken

OPTIONS = ("--temporal-port", "--ui-port", "--api-port")
HOST = "127.0.0.1"


def test_every_port_that_is_taken_is_told_at_once_and_none_that_is_free_or_any():
    with ExitStack() as open_ports:
        taken = [open_ports.enter_context(socket.create_server((HOST, 0))).getsockname()[1] for _ in OPTIONS]
        with pytest.raises(Misconfigured) as told:
            refuse_any_taken(HOST, dict(zip(OPTIONS, taken, strict=True)))
        for option, port in zip(OPTIONS, taken, strict=True):
            assert f"{port} ({option})" in str(told.value)
        assert "use --temporal-port 0 --ui-port 0 --api-port 0 for any free ones" in str(told.value)
        with pytest.raises(Misconfigured) as told:
            refuse_any_taken(HOST, {"--temporal-port": 0, "--ui-port": 0, "--api-port": taken[0]})
        assert f"Port {taken[0]} is taken or not allowed (Address already in use)" in str(told.value)
        refuse_any_taken(HOST, dict.fromkeys(OPTIONS, 0))


def test_free_ports_are_refused_to_nobody():
    with socket.create_server((HOST, 0)) as server:
        port = server.getsockname()[1]
    refuse_any_taken(HOST, {"--api-port": port})
