"""`api` and `token`: the HTTP API as a process, and tokens for it in development."""

import getpass
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from horarium.api.tokens import MAX_SUBJECT, principal_of
from horarium.control import sessions
from horarium.control.principals import OPERATOR_SCOPE, WRITE_SCOPE
from horarium.control.sessions import CODE_LIFETIME
from horarium.errors import Misconfigured, Refused
from horarium.schedule.identity import NAME, instant_text
from starter.cli.installation import refuse_absent
from starter.cli.printing import Output, print_fields, show
from starter.keys import LONGEST, load_key, mint
from worker.logs import configure
from worker.processes import open_catalog
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
    sign_in: bool = False,
) -> int:
    """Print a token for the development installation's API, or a link that signs a person in to its pages."""
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
    if sign_in:
        return _print_link(settings, claims, output)
    token = mint(load_key(settings.key_file), claims, now=now, lifetime=lifetime)
    expires = instant_text((now + lifetime).replace(microsecond=0))
    answer = {"token": token, "expires_at": expires, "claims": claims}
    if output is None:
        print(token)  # alone, so that a shell can take it: TOKEN=$(horarium token)
    else:
        show(answer, output, lambda: print_fields([("Token", token), ("Expires", expires), *claims.items()]))
    return 0


def _print_link(settings: Settings, claims: Mapping[str, Any], output: Output | None) -> int:
    refuse_absent(settings)
    # Whoever may use the key may let a person in by it, and nobody else: it is read for that alone.
    load_key(settings.key_file)
    link = sign_in_link(settings, claims)
    if output is None:
        print(link)
    else:
        lives = f"{CODE_LIFETIME.total_seconds() / 60:.0f} minutes, once"
        show({"link": link, "claims": claims}, output, lambda: print_fields([("Link", link), ("Good for", lives)]))
    return 0


def sign_in_link(settings: Settings, claims: Mapping[str, Any] | None = None) -> str:
    """A link that signs a person in to the pages of a development installation once; whoever sits here, if nobody is named.

    Raises `Refused` where the claims are a key's, and `Misconfigured` where the catalog has another form.
    """
    scopes = [settings.api.required_scope or WRITE_SCOPE, settings.api.operator_scope or OPERATOR_SCOPE]
    told = claims or _claims(settings, "human", scopes, None, None)
    if told["kind"] != "human":
        raise Refused(
            "human_session_required", "A key has no session: the pages are for people.", next_step="Leave --kind out."
        )
    principal = principal_of(name=told["sub"], kind="human", org_id=told["org"], scope=told["scope"])
    catalog = open_catalog(settings)
    try:
        with catalog.writing() as connection:
            code = sessions.make_code(connection, principal, now=datetime.now(UTC))
    finally:
        catalog.close()
    return f"{settings.public_url}/ui/sign-in?code={code}"


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
