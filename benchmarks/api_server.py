"""`python -m benchmarks.api_server bare | CATALOG_URL PUBLIC_KEY`: a server to measure, on one core and a free port.

Both are served by the same uvicorn with the same settings, so that they differ in what they do for a request alone.
"""

import asyncio
import os
import socket
import sys

import uvicorn
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from fastapi import FastAPI

from benchmarks.http_peer import SERVER_CORE
from benchmarks.stored_schedules import Contents
from horarium.api.app import create_app
from horarium.api.limits import Limits, Rate
from horarium.api.tokens import FixedKeys, TokenVerifier, VerificationKey
from horarium.authority.local import LocalAuthority
from horarium.catalog import Catalog
from starter.connections import Connection
from worker.logs import configure

KEY_NAME = "bench"
ALGORITHM = "EdDSA"
_UNLIMITED = Rate(per_second=1e9, burst=10**9)


def bare() -> FastAPI:
    """An application that does nothing but answer."""
    app = FastAPI(openapi_url=None)

    @app.get("/bare")
    async def answer() -> dict[str, str]:
        return {"state": "active"}

    return app


def ours(catalog_url: str, public_key: str) -> FastAPI:
    """The API as it is, with limits that no benchmark meets."""
    key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public_key))
    return create_app(
        Catalog.open(catalog_url),
        LocalAuthority(Contents()),
        tokens=TokenVerifier(FixedKeys((VerificationKey(kid=KEY_NAME, algorithm=ALGORITHM, key=key),))),
        limits=Limits(per_principal=_UNLIMITED, per_peer=_UNLIMITED),
    )


async def serve(app: FastAPI) -> None:
    """Serve until SIGTERM. The port is the first line of the output."""
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    # A connection waits longer for its turn than a server keeps idle ones by default.
    config = uvicorn.Config(
        app, log_config=None, access_log=False, http=Connection, timeout_graceful_shutdown=1, timeout_keep_alive=600
    )
    await uvicorn.Server(config).serve(sockets=[listener])


if __name__ == "__main__":
    configure()
    if SERVER_CORE in os.sched_getaffinity(0):
        os.sched_setaffinity(0, {SERVER_CORE})
    match sys.argv[1:]:
        case ["bare"]:
            asyncio.run(serve(bare()))
        case [catalog_url, public_key]:
            asyncio.run(serve(ours(catalog_url, public_key)))
        case _:
            sys.exit(__doc__)
