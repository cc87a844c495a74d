"""`codec`: what the payloads at Temporal say, for whoever may know it."""

from collections.abc import Sequence
from pathlib import Path

from horarium.control.principals import WRITE_SCOPE
from horarium.errors import Misconfigured
from starter.api import LOCAL, listener_at, serve_app, token_verifier
from starter.codec_server import CodecAccess, create_codec_app, require_origins
from worker.codec import EncryptingCodec
from worker.logs import configure, tell
from worker.payload_keys import PAYLOAD_KEYS, read_payload_keys
from worker.settings import load


async def serve(*, host: str, port: int, origins: Sequence[str], without_token: bool, data: Path | None) -> int:
    """Serve `/encode` and `/decode`."""
    configure()
    settings = load(data=data)
    keys = read_payload_keys()
    if keys is None:
        raise Misconfigured(f"Nothing is encrypted here: {PAYLOAD_KEYS} names no keys.")
    if without_token and host not in LOCAL:
        raise Misconfigured(
            f"Without a token, whoever reaches the port reads everything. Listen at 127.0.0.1, not at {host[:200]!r}, or leave "
            "--without-token out."
        )
    named = origins or ([] if settings.pages.temporal_ui is None else [settings.pages.temporal_ui])
    access = CodecAccess(
        tokens=None if without_token else token_verifier(settings, host),
        organization=settings.scope.org_id,
        required_scope=settings.api.required_scope or WRITE_SCOPE,
        origins=require_origins(named),
    )
    if not named:
        tell("No browser is answered: name where Temporal's pages are with --origin, or in HORARIUM_TEMPORAL_UI.")
    try:
        await serve_app(create_codec_app(EncryptingCodec(keys), access), listener_at(host, port))
    finally:
        if access.tokens is not None:
            await access.tokens.close()
    return 0
