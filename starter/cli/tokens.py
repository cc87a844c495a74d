"""`api` and `token`: the HTTP API as a process, and tokens for it in development."""

import getpass
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from horarium.api.tokens import MAX_SUBJECT
from horarium.control.principals import WRITE_SCOPE
from horarium.errors import Misconfigured, Refused
from horarium.schedule.identity import NAME, instant_text
from starter.cli.installation import refuse_absent
from starter.cli.printing import Output, print_fields, show
from starter.keys import LONGEST, load_key, mint
from worker.logs import configure
from worker.settings import Settings, load


async def serve(*, host: str, port: int, data: Path | None) -> int:
    """Serve the HTTP API."""
    from starter import api  # noqa: PLC0415 - what only this command needs

    configure()
    settings = load(data=data)
    refuse_absent(settings)
    await api.serve(settings, host=host, port=port)
    return 0


async def issue(
    *,
    kind: str,
    scopes: Sequence[str],
    organization: str | None,
    subject: str | None,
    lifetime: timedelta,
    data: Path | None,
    output: Output | None,
) -> int:
    """Print a token for the development installation's API."""
    settings = load(data=data)
    claims = _claims(settings, kind, scopes, organization, subject)
    if settings.api.keys_url is not None:
        raise Misconfigured(
            "HORARIUM_JWKS_URL is set, so the API takes tokens of that issuer only. Ask it for one, or unset the variable."
        )
    if not timedelta(seconds=1) <= lifetime <= LONGEST:
        raise Refused(
            "invalid_lifetime",
            f"A development token lives 1 second to {LONGEST.days} days.",
            next_step="As --expires 1h.",
        )
    now = datetime.now(UTC)
    token = mint(load_key(settings.key_file), claims, now=now, lifetime=lifetime)
    expires = instant_text((now + lifetime).replace(microsecond=0))
    answer = {"token": token, "expires_at": expires, "claims": claims}
    if output is None:
        print(token)  # alone, so that a shell can take it: TOKEN=$(horarium token)
    else:
        show(answer, output, lambda: print_fields([("Token", token), ("Expires", expires), *claims.items()]))
    return 0


def _claims(
    settings: Settings, kind: str, scopes: Sequence[str], organization: str | None, subject: str | None
) -> dict[str, Any]:
    org_id = organization or settings.scope.org_id
    if not NAME.fullmatch(org_id):
        raise Refused("invalid_scope", f"{org_id[:80]!r} is no name of an organization.")
    name = subject or f"{getpass.getuser()}@{org_id}" if kind == "human" else subject or f"key@{org_id}"
    if len(name) > MAX_SUBJECT or not name.isprintable() or name.startswith(("local:", "system:")):
        raise Refused(
            "invalid_principal",
            f"{name[:80]!r} is no subject: 1 to {MAX_SUBJECT} printable characters, and 'local:' and 'system:' are ours.",
        )
    claims: dict[str, Any] = {"sub": name, "kind": kind, "org": org_id}
    claims["scope"] = " ".join(scopes or [settings.api.required_scope or WRITE_SCOPE])
    if settings.api.issuer is not None:
        claims["iss"] = settings.api.issuer
    if settings.api.audience is not None:
        claims["aud"] = settings.api.audience
    return claims
