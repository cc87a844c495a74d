"""`horarium api`: the HTTP API as a process of its own."""

import asyncio
import importlib.metadata
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import partial

import structlog
import uvicorn
from starlette.types import ASGIApp

from horarium.api.app import create_app
from horarium.api.limits import Limits, Rate
from horarium.api.pages.settings import PagesSettings
from horarium.api.tokens import FetchedKeys, FixedKeys, TokenVerifier
from horarium.control.principals import OPERATOR_SCOPE, WRITE_SCOPE
from horarium.errors import Misconfigured
from starter.connections import Connection
from starter.hands import TemporalHands
from starter.keys import load_key, verification_key
from starter.ports import listen
from worker.connection import connect, temporal_namespace
from worker.logs import tell
from worker.metrics import SdkFigures
from worker.processes import open_catalog, until_told
from worker.settings import Settings
from worker.starts import totals_told
from worker.tracing import traced

GRACE = timedelta(seconds=10)
"""What requests that are under way may take to end, once the process is told to leave."""
BURST = 4
"""Requests at once, as a multiple of those of a second."""
LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})

_logger = structlog.get_logger(__name__)


class _Server(uvicorn.Server):
    """A server that leaves signals to its process, which has more than this to put in order."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield


@traced("api")
@totals_told()
async def serve(settings: Settings, *, host: str, port: int) -> None:
    """Serve until SIGTERM or SIGINT, then let requests end. Works while Temporal is down.

    Raises `Misconfigured` where the port is taken, the catalog has another form, or there is no key for tokens.
    """
    tokens = token_verifier(settings, host)
    authority = settings.authority
    catalog = open_catalog(settings)
    try:
        listener = listener_at(host, port)
        sdk = SdkFigures()
        async with TemporalHands(connecting=partial(connect, runtime=sdk.runtime)) as hands:
            app = create_app(
                catalog,
                authority,
                tokens=tokens,
                hands=hands,
                limits=_limits(settings),
                required_scope=settings.api.required_scope or WRITE_SCOPE,
                operator_scope=settings.api.operator_scope or OPERATOR_SCOPE,
                ceilings=settings.ceilings,
                pages=_pages(settings, temporal_namespace()),
                more_figures=sdk.read,
                version=importlib.metadata.version("horarium"),
            )
            await serve_app(app, listener)
    finally:
        await authority.aclose()
        catalog.close()


async def serve_app(app: ASGIApp, listener: socket.socket) -> None:
    """Serve an application until SIGTERM or SIGINT, then let its requests end. Says where, once it listens."""
    server = _Server(
        uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            server_header=False,
            # Whoever puts a proxy in front limits peers there: to believe its headers unasked lets anybody lie.
            proxy_headers=False,
            http=Connection,
            ws="none",
            timeout_keep_alive=20,
            timeout_graceful_shutdown=int(GRACE.total_seconds()),
        )
    )
    host, port = listener.getsockname()[:2]
    serving = asyncio.create_task(server.serve(sockets=[listener]), name="serve HTTP")
    told = None
    try:
        while not server.started and not serving.done():  # noqa: ASYNC110 - uvicorn has a flag here, and no event
            await asyncio.sleep(0.01)
        if not serving.done():
            shown = f"[{host}]" if ":" in host else host
            _say_where(f"Listening on http://{shown}:{port}")
            told = asyncio.create_task(until_told())
            await asyncio.wait([serving, told], return_when=asyncio.FIRST_COMPLETED)
    finally:
        server.should_exit = True
        if told is not None:
            told.cancel()
            with suppress(asyncio.CancelledError):
                await told
        await serving


def token_verifier(settings: Settings, host: str) -> TokenVerifier:
    """What tokens are verified with here, as the settings say. Raises `Misconfigured` where there is no key for it."""
    asked = settings.api
    if asked.keys_url is None:
        key = verification_key(load_key(settings.key_file))
        if host not in LOCAL:
            _logger.warning("development_key_on_a_public_address", host=host)
        return TokenVerifier(FixedKeys((key,)), issuer=asked.issuer, audience=asked.audience)
    if asked.audience is None:
        _logger.warning(
            "any_audience", advice="Set HORARIUM_TOKEN_AUDIENCE, or tokens for other services are let in too."
        )
    return TokenVerifier(FetchedKeys(asked.keys_url), issuer=asked.issuer, audience=asked.audience)


def _pages(settings: Settings, namespace: str) -> PagesSettings:
    """Where people find the pages and how they sign in: by an issuer, or with the key of a development installation."""
    pages = PagesSettings(
        public_url=settings.public_url,
        oidc=settings.pages.issuer(),
        takes_codes=settings.api.keys_url is None,
        temporal_ui=settings.pages.temporal_ui_of(namespace),
    )
    if pages.is_exposed:
        _logger.warning(
            "sessions_in_the_clear",
            url=settings.public_url,
            advice="Set HORARIUM_PUBLIC_URL to an address over https://, or whoever listens on the network signs in as others.",
        )
    return pages


def _limits(settings: Settings) -> Limits:
    each = settings.api.requests_per_second
    return Limits(per_principal=Rate(per_second=each, burst=BURST * each))


def listener_at(host: str, port: int) -> socket.socket:
    """Listen, or raise `Misconfigured`."""
    try:
        return listen(host, port)
    except OSError as error:
        raise Misconfigured(
            f"Cannot listen at {host}, port {port}: {error.strerror}. Stop what uses it, or name another with --port "
            "(0 for any free one)."
        ) from error


def _say_where(sentence: str) -> None:
    """On stdout; but where that is one file with stderr, as a line of the log."""
    if os.path.sameopenfile(sys.stdout.fileno(), sys.stderr.fileno()):
        tell(sentence)
    else:
        print(sentence, flush=True)
