"""What the pages are told by the environment: the issuer that people sign in with, and where Temporal's own pages are."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from horarium.api.pages.settings import OidcSettings, require_issuer
from horarium.errors import Misconfigured
from horarium.schedule.identity import NAME

ISSUER = "HORARIUM_OIDC_ISSUER"
CLIENT = "HORARIUM_OIDC_CLIENT_ID"
SECRET = "HORARIUM_OIDC_CLIENT_SECRET"  # noqa: S105 - the name of a variable that names another
TEMPORAL_UI = "HORARIUM_TEMPORAL_UI"
_CLAIMS = {
    "subject_claim": "HORARIUM_OIDC_SUBJECT_CLAIM",
    "organization_claim": "HORARIUM_OIDC_ORGANIZATION_CLAIM",
    "scope_claim": "HORARIUM_OIDC_SCOPE_CLAIM",
    "asked_scope": "HORARIUM_OIDC_SCOPES",
}
_ORGANIZATION = "HORARIUM_OIDC_ORGANIZATION"
_NAME = re.compile(r"HORARIUM_SECRET_[A-Z0-9_]{1,80}")


@dataclass(frozen=True, slots=True, kw_only=True)
class PageVariables:
    """What the environment says of the pages.

    `oidc` lacks the client's secret, which the API alone needs: `secret_variable` names where it is, None for a public client.
    `temporal_ui` may lack the namespace, which the connection knows.
    """

    oidc: OidcSettings | None = None
    secret_variable: str | None = None
    temporal_ui: str | None = None

    def issuer(self, environ: Mapping[str, str] = os.environ) -> OidcSettings | None:
        """The issuer with the client's secret. Raises `Misconfigured` where that is not there."""
        if self.oidc is None or self.secret_variable is None:
            return self.oidc
        secret = environ.get(self.secret_variable) or None
        if secret is None:
            raise Misconfigured(
                f"{SECRET} names {self.secret_variable}, which is not set. Put the client's secret there."
            )
        return replace(self.oidc, client_secret=secret)

    def temporal_ui_of(self, namespace: str) -> str | None:
        """Where Temporal's own pages show a namespace; None where nobody said."""
        if self.temporal_ui is None or "/namespaces/" in self.temporal_ui:
            return self.temporal_ui
        return f"{self.temporal_ui}/namespaces/{namespace}"


def read_page_variables(environ: Mapping[str, str]) -> PageVariables:
    """The issuer by `HORARIUM_OIDC_ISSUER`, `HORARIUM_OIDC_CLIENT_ID` and `HORARIUM_OIDC_CLIENT_SECRET`, which names the
    variable that holds the secret; which claims say what by `HORARIUM_OIDC_SUBJECT_CLAIM`, `…_ORGANIZATION_CLAIM` and
    `…_SCOPE_CLAIM`, everybody's organization by `HORARIUM_OIDC_ORGANIZATION`, what the issuer is asked for by
    `HORARIUM_OIDC_SCOPES`; and Temporal's pages by `HORARIUM_TEMPORAL_UI`. Raises `Misconfigured`.
    """
    return PageVariables(
        oidc=_oidc(environ), secret_variable=_secret_variable(environ), temporal_ui=_temporal_ui(environ)
    )


def _oidc(environ: Mapping[str, str]) -> OidcSettings | None:
    issuer, client = environ.get(ISSUER) or None, environ.get(CLIENT) or None
    if issuer is None and client is None:
        return None
    if issuer is None or client is None:
        given, missing = (CLIENT, ISSUER) if issuer is None else (ISSUER, CLIENT)
        raise Misconfigured(f"{given} is set and {missing} is not. Set both, so that people can sign in, or neither.")
    told = {name: environ[variable] for name, variable in _CLAIMS.items() if environ.get(variable)}
    organization = environ.get(_ORGANIZATION) or None
    if organization is not None and not NAME.fullmatch(organization):
        raise Misconfigured(f"{_ORGANIZATION} is {organization[:80]!r}, which is no name of an organization.")
    return OidcSettings(
        issuer=require_issuer(issuer),
        client_id=client,
        organization=organization,
        **told,
    )


def _secret_variable(environ: Mapping[str, str]) -> str | None:
    name = environ.get(SECRET) or None
    if name is None:
        return None  # a public client, which PKCE alone protects
    if _NAME.fullmatch(name) is None:
        raise Misconfigured(
            f"{SECRET} names the environment variable that holds the client's secret, such as HORARIUM_SECRET_OIDC. It does "
            "not hold the secret itself."
        )
    return name


def _temporal_ui(environ: Mapping[str, str]) -> str | None:
    url = (environ.get(TEMPORAL_UI) or "").rstrip("/") or None
    if url is None:
        return None
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment or parts.username:
        raise Misconfigured(
            f"{TEMPORAL_UI} is {url[:200]!r}; it is the address of Temporal's own pages, such as http://localhost:8233 or "
            "https://cloud.temporal.io/namespaces/NAME."
        )
    return url
