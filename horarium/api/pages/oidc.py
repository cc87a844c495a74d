"""Sign-in with an issuer of OpenID Connect: the authorization code flow with PKCE (RFC 7636), a state and a nonce.

What the issuer says of a person is taken from the ID token alone, which is verified with the issuer's own keys as a token for
the API is. The client secret, the code and the tokens are kept nowhere.
"""

import asyncio
import hmac
import json
import math
import secrets
import time
import warnings
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from importlib import import_module
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import httpx
import jwt
import structlog

from horarium.api.pages.settings import OidcSettings
from horarium.api.problems import Rejected
from horarium.api.tokens import LEEWAY, MAX_TOKEN, FetchedKeys, principal_of
from horarium.control.principals import Principal
from horarium.errors import HorariumError, Misconfigured, Unavailable
from horarium.schedule.document import load_json

PENDING_FOR: Final = timedelta(minutes=10)
"""How long somebody may take at the issuer."""
UNKNOWN: Final = "sign_in_unknown"
"""The code of what is said to a browser that comes back from no sign-in of its own."""
ANSWER_WITHIN: Final = timedelta(seconds=10)
_LEAVING_WITHIN: Final = timedelta(seconds=2)
"""How long somebody who has signed out here waits to be told where to sign out there."""
_FRESH_FOR: Final = timedelta(hours=1)
_MAX_ANSWER: Final = 256 * 1024
_SECRET_BYTES: Final = 32
_LONGEST_CODE: Final = 4_096

_logger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """A sign-in that has begun, as the browser keeps it in a cookie until it comes back.

    `verifier` proves to the issuer that whoever comes with the code began this; `place` is where to lead the person then.
    """

    state: str
    nonce: str = field(repr=False)
    verifier: str = field(repr=False)
    place: str

    def as_cookie(self) -> str:
        """The same as the value of a cookie."""
        return urlsafe_b64encode(json.dumps(asdict(self)).encode()).decode().rstrip("=")


def read_pending(cookie: str | None) -> Pending | None:
    """What a cookie holds; None where it is none of ours."""
    try:
        padded = (cookie or "") + "=" * (-len(cookie or "") % 4)
        found = json.loads(urlsafe_b64decode(padded.encode("ascii")))
        texts = {name: found[name] for name in ("state", "nonce", "verifier", "place")}
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return Pending(**texts) if all(isinstance(each, str) for each in texts.values()) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Discovered:
    authorization: str
    token: str
    keys_address: str
    end_session: str | None
    methods: tuple[str, ...]
    at: float


class Issuer:
    """An issuer as the pages use it. What it publishes of itself is asked for when somebody signs in, and kept for an hour.

    Whoever came while it was asked in vain is told so with the one who asked, so that nobody waits longer than for one answer.
    """

    def __init__(self, settings: OidcSettings, callback_url: str) -> None:
        self._settings = settings
        self._callback_url = callback_url
        self._authlib = _authlib_client()
        self._client = httpx.AsyncClient(timeout=ANSWER_WITHIN.total_seconds(), follow_redirects=False)
        self._discovered: _Discovered | None = None
        self._discovering = asyncio.Lock()
        self._failed_at = -math.inf
        self._keys: dict[str, FetchedKeys] = {}

    async def close(self) -> None:
        """Close connections."""
        for keys in self._keys.values():
            await keys.close()
        await self._client.aclose()

    async def begin(self, place: str) -> tuple[str, Pending]:
        """Where to send the browser, and what it keeps until it comes back. Raises `Unavailable`."""
        found = await self._discover()
        pending = Pending(
            state=secrets.token_urlsafe(_SECRET_BYTES),
            nonce=secrets.token_urlsafe(_SECRET_BYTES),
            verifier=secrets.token_urlsafe(48),
            place=place,
        )
        async with self._oauth(found) as client:
            address, _ = client.create_authorization_url(
                found.authorization, state=pending.state, nonce=pending.nonce, code_verifier=pending.verifier
            )
        return str(address), pending

    async def leaving(self) -> str | None:
        """Where a browser ends the session that it has with the issuer; None where the issuer has no such place, or is silent.

        See "OpenID Connect RP-Initiated Logout 1.0". No token is kept here that could say whose session it is, so the issuer
        may ask; and where the person ends up is the issuer's.
        """
        try:
            async with asyncio.timeout(_LEAVING_WITHIN.total_seconds()):
                found = await self._discover()
        except (TimeoutError, Unavailable):
            return None
        if found.end_session is None:
            return None
        parts = urlsplit(found.end_session)
        query = [*parse_qsl(parts.query, keep_blank_values=True), ("client_id", self._settings.client_id)]
        return urlunsplit(parts._replace(query=urlencode(query), fragment=""))

    async def finish(
        self, pending: Pending | None, *, state: str | None, code: str | None, error: str | None
    ) -> Principal:
        """The person who comes back from the issuer. `Rejected` where anything of it is not as it was begun.

        That is with `UNKNOWN` where it is not the sign-in of this browser. Raises `Unavailable`.
        """
        if pending is None or not hmac.compare_digest(pending.state.encode(), (state or "").encode()):
            raise Rejected(
                403,
                UNKNOWN,
                "This browser did not begin the sign-in that it comes back from, or it took too long, or was finished before.",
                next_step="Sign in again.",
            )
        if error is not None or not code or len(code) > _LONGEST_CODE:
            raise _refused("The issuer did not sign you in" + (f": {error[:80]}." if error else "."))
        found = await self._discover()
        token = await self._exchange(found, pending, code)
        return self._person(await self._claims(found, token, pending.nonce))

    async def _exchange(self, found: _Discovered, pending: Pending, code: str) -> str:
        try:
            async with self._oauth(found) as client:
                answer: Any = await client.fetch_token(
                    found.token, code=code, grant_type="authorization_code", code_verifier=pending.verifier
                )
        except _authlib_error() as error:
            # A wrong secret of ours is told in the same way, and for the operator to find.
            _logger.warning("issuer_refused", error=str(getattr(error, "error", ""))[:80])
            raise _refused("The issuer does not accept this sign-in: it was used, or is over.") from error
        except (httpx.HTTPError, ValueError) as error:
            self._log_silence(error)
            raise _unavailable() from error
        token = answer.get("id_token") if isinstance(answer, dict) else None
        if not isinstance(token, str) or len(token) > MAX_TOKEN:
            raise _refused("The issuer gave no ID token.")
        return token

    async def _claims(self, found: _Discovered, token: str, nonce: str) -> dict[str, Any]:
        try:
            header = jwt.get_unverified_header(token)
            kid = header.get("kid")
            if "crit" in header or not isinstance(kid, str | None):
                raise _refused("The issuer's ID token is none that we read.")
            for candidate in await self._keys_at(found.keys_address).candidates(kid):
                if header.get("alg") != candidate.algorithm:
                    continue
                claims: dict[str, Any] = jwt.decode(
                    token,
                    candidate.key,
                    algorithms=[candidate.algorithm],
                    issuer=self._settings.issuer,
                    audience=self._settings.client_id,
                    leeway=LEEWAY,
                    options={"require": ["iss", "sub", "aud", "exp", "iat"]},
                )
                self._require_ours(claims, nonce)
                return claims
        except (jwt.PyJWTError, ValueError, RecursionError) as error:
            # Which of its claims is wrong is for the log: the person cannot put it right.
            _logger.warning("id_token_refused", error=type(error).__name__)
        raise _refused("The issuer's ID token is not valid here.")

    def _require_ours(self, claims: dict[str, Any], nonce: str) -> None:
        told, audience, party = claims.get("nonce"), claims["aud"], claims.get("azp")
        if not isinstance(told, str) or not hmac.compare_digest(told.encode(), nonce.encode()):
            raise jwt.InvalidTokenError("another nonce")
        several = isinstance(audience, list) and len(audience) > 1
        if party is None and several:
            raise jwt.InvalidTokenError("several audiences and no authorized party")
        if party is not None and party != self._settings.client_id:
            raise jwt.InvalidTokenError("another authorized party")

    def _person(self, claims: dict[str, Any]) -> Principal:
        asked = self._settings
        if claims.get("kind", "human") != "human":
            raise _refused("The issuer says that this is no person.")
        if asked.subject_claim == "email" and claims.get("email_verified") is not True:
            # At many issuers people type their own address.
            raise _refused("The issuer has not verified the e-mail address that would be your name here.")
        scopes = claims.get(asked.scope_claim)
        if isinstance(scopes, list):
            scopes = " ".join(each for each in scopes if isinstance(each, str) and " " not in each)
        try:
            return principal_of(
                name=claims.get(asked.subject_claim),
                kind="human",
                org_id=asked.organization or claims.get(asked.organization_claim),
                scope=scopes,
            )
        except Rejected as error:
            raise _refused(
                f"The issuer does not say who you are here: it has to name you in {asked.subject_claim!r} and your "
                f"organization in {asked.organization_claim!r}."
            ) from error

    def _oauth(self, found: _Discovered) -> Any:
        method = "none"
        if self._settings.client_secret is not None:
            basic = not found.methods or "client_secret_basic" in found.methods
            method = "client_secret_basic" if basic else "client_secret_post"
        return self._authlib(
            client_id=self._settings.client_id,
            client_secret=self._settings.client_secret,
            token_endpoint_auth_method=method,
            redirect_uri=self._callback_url,
            scope=self._settings.asked_scope,
            code_challenge_method="S256",
            timeout=ANSWER_WITHIN.total_seconds(),
            follow_redirects=False,
        )

    async def _discover(self) -> _Discovered:
        came_at = time.monotonic()
        async with self._discovering:
            if self._failed_at < came_at:
                await self._ask_anew()
            # Else somebody asked in vain meanwhile. Each asking in turn, they would wait one behind another.
            if self._discovered is None:
                raise _unavailable()
            return self._discovered

    async def _ask_anew(self) -> None:
        """Ask the issuer what it publishes of itself, unless that is fresh. What was known stays where it is silent."""
        known = self._discovered
        if known is not None and time.monotonic() - known.at < _FRESH_FOR.total_seconds():
            return
        address = self._settings.issuer.rstrip("/") + "/.well-known/openid-configuration"
        try:
            self._discovered = self._understood(load_json(await self._read(address)))
        except (httpx.HTTPError, HorariumError, ValueError, KeyError, TypeError) as error:
            self._failed_at = time.monotonic()
            self._log_silence(error)

    def _keys_at(self, address: str) -> FetchedKeys:
        """The keys of an address. Those of an address that is named no more stay: another sign-in may be using them."""
        if address not in self._keys:
            self._keys[address] = FetchedKeys(address)
        return self._keys[address]

    async def _read(self, address: str) -> bytes:
        async with self._client.stream("GET", address, headers={"Accept": "application/json"}) as response:
            response.raise_for_status()
            data = b""
            async for part in response.aiter_bytes():
                data += part
                if len(data) > _MAX_ANSWER:
                    raise ValueError(f"more than {_MAX_ANSWER} bytes")
            return data

    def _understood(self, document: Any) -> _Discovered:
        if document["issuer"] != self._settings.issuer:
            raise ValueError("the document is another issuer's")
        addresses = {name: document[name] for name in ("authorization_endpoint", "token_endpoint", "jwks_uri")}
        for name, address in addresses.items():
            if not self._may_be_asked(address):
                raise ValueError(f"{name} is no address that may be asked")
        leaving = document.get("end_session_endpoint")
        methods = document.get("token_endpoint_auth_methods_supported")
        return _Discovered(
            authorization=addresses["authorization_endpoint"],
            token=addresses["token_endpoint"],
            keys_address=addresses["jwks_uri"],
            # Signing in does without it.
            end_session=leaving if self._may_be_asked(leaving) else None,
            methods=tuple(each for each in methods if isinstance(each, str)) if isinstance(methods, list) else (),
            at=time.monotonic(),
        )

    def _may_be_asked(self, address: object) -> bool:
        """Whether something is an address like the issuer's own: over TLS, or on this machine."""
        if not isinstance(address, str) or not address.isascii() or not address.isprintable():
            return False
        return urlsplit(address).scheme in {"https", urlsplit(self._settings.issuer).scheme}

    def _log_silence(self, error: Exception) -> None:
        _logger.warning("issuer_unavailable", issuer=self._settings.issuer, error=type(error).__name__)


def _authlib_client() -> Any:
    """Authlib's client. It tells at import that it will prefer another package than httpx one day; nobody can act on that."""
    # Not at the top, since it takes half a second and is needed only where there is an issuer. It brings no types.
    try:
        authlib_deprecate = import_module("authlib.deprecate")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", authlib_deprecate.AuthlibDeprecationWarning)
            return import_module("authlib.integrations.httpx_client").AsyncOAuth2Client
    except ImportError as error:
        raise Misconfigured("HORARIUM_OIDC_ISSUER needs the package authlib, which is not installed.") from error


def _authlib_error() -> type[Exception]:
    """What Authlib raises where the issuer refuses."""
    error: type[Exception] = import_module("authlib.common.errors").AuthlibBaseError
    return error


def _unavailable() -> Unavailable:
    return Unavailable(
        "issuer_unavailable",
        "The issuer that people sign in with does not answer now, or not as one does.",
        next_step="Try again in a while. Sessions that have begun go on.",
    )


def _refused(sentence: str) -> Rejected:
    return Rejected(
        403,
        "sign_in_refused",
        sentence,
        next_step="Sign in again. If that does not help, tell whoever runs this installation.",
    )
