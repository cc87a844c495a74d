"""A way to a PostgreSQL server that loses an answer at the worst moment."""

import socket
import threading
from contextlib import suppress
from typing import Self

from tests.postgres.server import IP


class LosingProxy:
    """Passes everything on to a server, at a port of its own.

    Once `armed`, it lets the next COMMIT reach the server, waits for the answer, and closes the connection instead of passing
    it on: what a client sees of a network that fails just then.
    """

    def __init__(self, port: int) -> None:
        self.armed = False
        self._server_port = port
        self._listener = socket.create_server((IP, 0))
        self.port: int = self._listener.getsockname()[1]
        self._threads: list[threading.Thread] = []
        self._sockets: list[socket.socket] = []

    def __enter__(self) -> Self:
        self._run(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        for each in (self._listener, *self._sockets):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        for thread in self._threads:
            thread.join()

    def _run(self, target: object, *args: object) -> None:
        thread = threading.Thread(target=target, args=args)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection((IP, self._server_port))
            self._sockets += [client, server]
            self._run(self._serve, client, server)

    def _serve(self, client: socket.socket, server: socket.socket) -> None:
        """Every message of the client is answered before it sends the next one, so one thread serves both ways."""
        with suppress(OSError):
            while asked := client.recv(65_536):
                server.sendall(asked)
                answer = server.recv(65_536)
                while not answer.endswith((b"Z\0\0\0\5I", b"Z\0\0\0\5T", b"Z\0\0\0\5E", b"N")) and len(answer) != 1:
                    answer += server.recv(65_536)
                if self.armed and b"COMMIT\0" in asked:
                    self.armed = False
                    break
                client.sendall(answer)
        for each in (client, server):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
