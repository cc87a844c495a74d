"""What the pages are told about the installation: where they are, and how people sign in."""

from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from horarium.errors import Misconfigured

LOCAL_URL: Final = "http://127.0.0.1:8080"
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True, kw_only=True)
class OidcSettings:
    """An issuer of OpenID Connect that people sign in with, and which of its claims say what.

    `subject_claim` is the person's name in the record, the same that tokens for the API have in `sub`; `organization_claim` the
    organization, and `scope_claim` what they may do: a text separated by spaces, or a list. An `email` names nobody unless the
    issuer says with `email_verified` that it is the person's. `organization` is that of everybody whom the issuer lets in,
    where it tells none.
    """

    issuer: str
    client_id: str
    client_secret: str | None = field(default=None, repr=False)
    subject_claim: str = "sub"
    organization_claim: str = "org"
    scope_claim: str = "scope"
    organization: str | None = None
    asked_scope: str = "openid profile"


@dataclass(frozen=True, slots=True, kw_only=True)
class PagesSettings:
    """How the pages are set up.

    `public_url` is where browsers find the API. `takes_codes` is whether the key of a development installation lets people in,
    by a code or a token. `temporal_ui` is the address of Temporal's own pages of our namespace, such as
    `http://127.0.0.1:8233/namespaces/default`; None where nobody said.
    """

    public_url: str = LOCAL_URL
    oidc: OidcSettings | None = None
    takes_codes: bool = False
    temporal_ui: str | None = None

    @property
    def base(self) -> str:
        """What stands before `/ui` in the path of an address; empty where the API has a host of its own."""
        return urlsplit(self.public_url).path.rstrip("/")

    @property
    def origin(self) -> str:
        """The origin as a browser tells it."""
        parts = urlsplit(self.public_url)
        return f"{parts.scheme}://{parts.netloc}".lower()

    @property
    def is_secure(self) -> bool:
        """Whether browsers reach the pages by TLS, so that cookies need it too."""
        return urlsplit(self.public_url).scheme == "https"

    @property
    def is_exposed(self) -> bool:
        """Whether sessions would cross a network in the clear."""
        return not self.is_secure and urlsplit(self.public_url).hostname not in _LOOPBACK

    @property
    def oidc_host(self) -> str:
        """What the issuer is called on the button that leads there."""
        return "" if self.oidc is None else urlsplit(self.oidc.issuer).netloc

    @property
    def session_cookie(self) -> str:
        """The name of the cookie of a session.

        Behind TLS with the prefix that keeps other hosts and paths from setting it. Else it names the port, since two
        installations on one machine share a host, and with it the cookies.
        """
        return "__Host-horarium-session" if self.is_secure else f"horarium-session-{self._port}"

    @property
    def sign_in_cookie(self) -> str:
        """The name of the cookie that ties a sign-in with an issuer to the browser that began it."""
        return "__Host-horarium-sign-in" if self.is_secure else f"horarium-sign-in-{self._port}"

    @property
    def callback_url(self) -> str:
        """Where an issuer sends people back to. It has to be registered there."""
        return f"{self.public_url.rstrip('/')}/ui/sign-in/callback"

    @property
    def _port(self) -> int:
        return urlsplit(self.public_url).port or 80


def require_issuer(url: str) -> str:
    """The address of an issuer, or `Misconfigured`: who is let in must not be decided over a network in the clear."""
    parts = urlsplit(url)
    safe = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)
    if not safe or not parts.hostname or parts.query or parts.fragment or parts.username:
        raise Misconfigured(
            f"HORARIUM_OIDC_ISSUER is {url[:200]!r}; an issuer is asked over https:// (or on this machine over http://)."
        )
    return url
