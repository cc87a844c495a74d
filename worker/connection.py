"""Reaching Temporal, as the SDK's own environment configuration says: TEMPORAL_ADDRESS, _NAMESPACE, _API_KEY, TLS, profiles."""

import asyncio
import time

from temporalio.client import Client
from temporalio.envconfig import ClientConfig
from temporalio.runtime import Runtime
from temporalio.service import RPCError

from horarium.errors import Misconfigured, Unavailable
from worker.plugin import horarium_plugin

DEFAULT_ADDRESS = "localhost:7233"


async def connect(*, wait_seconds: float = 0, runtime: Runtime | None = None) -> Client:
    """A client with our plugin. Tries again for `wait_seconds` while nothing answers, then raises `Unavailable`."""
    try:
        config = ClientConfig.load_client_connect_config()
    except RuntimeError as error:
        raise Misconfigured(f"Temporal's client configuration cannot be read: {error}") from error
    address = config.setdefault("target_host", DEFAULT_ADDRESS)
    until = time.monotonic() + wait_seconds
    while True:
        try:
            return await Client.connect(**config, plugins=[horarium_plugin()], runtime=runtime)
        except (RuntimeError, RPCError) as error:
            if time.monotonic() >= until:
                raise Unavailable(
                    "temporal_unavailable",
                    f"No Temporal server answers at {address}.",
                    next_step="Start one with `horarium dev`, or set TEMPORAL_ADDRESS to where yours is.",
                ) from error
        await asyncio.sleep(0.2)
