"""Connections that are given up when they bring no request: else whoever opens enough of them keeps everybody else out."""

import asyncio
import socket
from datetime import timedelta
from typing import ClassVar, cast

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

REQUEST_WITHIN = timedelta(seconds=30)
"""From the connection, or from the answer before, until the next request has arrived up to the end of its headers."""


class Connection(H11Protocol):
    """A connection that is closed where it stays silent, trickles its headers, or takes nothing of an answer any more.

    uvicorn itself waits for all of these without end. The time for a body is the application's to bound, since it reads it.
    """

    patience: ClassVar[timedelta] = REQUEST_WITHIN
    _deadline: asyncio.TimerHandle | None = None
    _unsent: int = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """See `asyncio.Protocol`."""
        super().connection_made(transport)
        # Head and body of an answer are two writes, and the second would wait 40 ms for the other end to acknowledge the first.
        # asyncio sees to it only where the listening socket names TCP as its protocol, which those of most makers do not.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        super().connection_lost(exc)
        self._forget()

    def handle_events(self) -> None:
        """Look at what has arrived."""
        super().handle_events()
        self._watch()

    def on_response_complete(self) -> None:
        """Go on with the next request."""
        super().on_response_complete()
        self._watch()

    def _watch(self) -> None:
        """Wait for a request with a deadline, which single bytes do not put off; and for its answer without one."""
        # uvicorn says that there is always one, and begins with None.
        cycle = cast("RequestResponseCycle | None", self.cycle)
        if cycle is not None and not cycle.response_complete:
            self._forget()
        elif self._deadline is None:
            self._unsent = self.transport.get_write_buffer_size()
            self._deadline = self.loop.call_later(self.patience.total_seconds(), self._lose_patience)

    def _forget(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _lose_patience(self) -> None:
        self._deadline = None
        if 0 < self.transport.get_write_buffer_size() < self._unsent:
            # A large answer over a slow line, which goes on.
            self._watch()
        else:
            self.transport.abort()
