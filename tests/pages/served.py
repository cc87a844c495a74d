"""The pages on a port of their own, for a real browser."""

import shutil
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import pytest
import uvicorn

from horarium.api.app import create_app
from horarium.api.pages.settings import PagesSettings
from horarium.api.tokens import FixedKeys, TokenVerifier
from horarium.authority.local import LocalAuthority
from horarium.catalog import Catalog
from horarium.control import sessions
from tests.api.house import GENEROUS, VERIFICATION, Recorder
from tests.control.desk import Shelf
from tests.pages.browser import LOCAL, person

CHROMIUM = shutil.which("chromium")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="there is no `chromium` on PATH")
ARGUMENTS = ["--no-sandbox", "--disable-dev-shm-usage"]
PATIENCE = 60_000
"""Milliseconds that a browser waits for anything on a busy machine."""


@dataclass(slots=True)
class Clock:
    """The time that the pages go by."""

    now: datetime


@dataclass(slots=True, kw_only=True)
class Served:
    """Where the pages are, and the catalog behind them."""

    catalog: Catalog
    settings: PagesSettings
    clock: Clock
    server: uvicorn.Server

    @property
    def url(self) -> str:
        return self.settings.public_url

    def session(self, name: str = "ada", *, org_id: str = "acme") -> dict[str, str]:
        """A cookie of somebody who is signed in."""
        with self.catalog.writing() as connection:
            secret = sessions.begin(connection, person(name, org_id=org_id), now=self.clock.now)
        return {"name": self.settings.session_cookie, "value": secret, "url": self.url}

    def link(self) -> str:
        """A link that signs ada in once."""
        with self.catalog.writing() as connection:
            return f"{self.url}/ui/sign-in?code={sessions.make_code(connection, person(), now=self.clock.now)}"


@contextmanager
def served(catalog: Catalog, now: datetime, **settings: Any) -> Iterator[Served]:
    """Serve the pages over a catalog, in a thread of this process."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    told = replace(LOCAL, public_url=url, **settings)
    clock = Clock(now)
    app = create_app(
        catalog,
        LocalAuthority(Shelf()),
        tokens=TokenVerifier(FixedKeys((VERIFICATION,))),
        hands=Recorder(),
        limits=GENEROUS,
        pages=told,
        now=lambda: clock.now,
    )
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.02)
    try:
        yield Served(catalog=catalog, settings=told, clock=clock, server=server)
    finally:
        server.should_exit = True
        thread.join(30)
        listener.close()
