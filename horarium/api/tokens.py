"""Who calls: JSON Web Tokens, and the keys that they must be signed with.

A token says `sub`, `kind` (`human` or `key`), `org`, `scope` (separated by spaces) and `exp`. The algorithm is that of the
key, never what the token's header asks for, so neither `none` nor a public key taken for a secret can pass.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Protocol

import httpx
import jwt
import structlog
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from horarium.api.problems import RETRY_AFTER_SECONDS, Rejected
from horarium.control.principals import Principal, PrincipalKind
from horarium.errors import HorariumError
from horarium.schedule.document import load_json
from horarium.schedule.identity import NAME

PublicKey = RSAPublicKey | EllipticCurvePublicKey | Ed25519PublicKey

KINDS: Final[Mapping[str, PrincipalKind]] = {"human": PrincipalKind.HUMAN, "key": PrincipalKind.KEY}
"""What a token may say of its holder. A token never makes a local principal."""
MAX_TOKEN: Final = 8 * 1024
"""Characters of a token that are looked at."""
MAX_SUBJECT: Final = 200
LEEWAY: Final = timedelta(seconds=5)
"""How far the clock of whoever made a token may be from ours."""
LEAST_RSA_BITS: Final = 2048
FRESH_FOR: Final = timedelta(minutes=10)
"""How long fetched keys are used before they are asked for again, so that a withdrawn key is gone by then."""
KEPT_FOR: Final = timedelta(hours=1)
"""How long fetched keys are used while their address does not answer. Then nobody is let in."""
FETCH_EVERY: Final = timedelta(seconds=30)
"""How often the keys' address is asked at the most, whatever tokens arrive."""
FETCH_WITHIN: Final = timedelta(seconds=5)
MAX_KEYS_BYTES: Final = 256 * 1024

_RESERVED = ("local:", "system:", "erased:")
_LATEST: Final = 253_402_300_799
"""The last second that a datetime can name."""
_logger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationKey:
    """A public key, with the one algorithm that is accepted for it. `kid` is its name in token headers."""

    kid: str | None
    algorithm: str
    key: PublicKey


class Keys(Protocol):
    """Where public keys come from."""

    async def candidates(self, kid: str | None) -> Sequence[VerificationKey]:
        """The keys that a token naming `kid`, or no key, may be signed with; none where there is no such key.

        Raises `Rejected` with 503 while no keys can be had at all.
        """

    async def close(self) -> None:
        """Let go of connections."""


@dataclass(frozen=True, slots=True)
class FixedKeys:
    """Keys that are given once: those of a file in development."""

    keys: tuple[VerificationKey, ...]

    async def candidates(self, kid: str | None) -> Sequence[VerificationKey]:
        """See `Keys`."""
        return _named(self.keys, kid)

    async def close(self) -> None:
        """Nothing is open."""


class FetchedKeys:
    """Keys from a JWKS address: kept, and fetched again when they are old or a token names one that is not among them.

    One fetch at a time, at most one each `FETCH_EVERY`, and never in the way of a token whose key is known.
    """

    def __init__(
        self,
        url: str,
        *,
        client: httpx.AsyncClient | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._url = url
        self._client = client or httpx.AsyncClient(timeout=FETCH_WITHIN.total_seconds(), follow_redirects=False)
        self._clock = clock
        self._keys: tuple[VerificationKey, ...] = ()
        self._fetched_at: float | None = None
        self._tried_at: float | None = None
        self._fetching: asyncio.Task[None] | None = None

    async def candidates(self, kid: str | None) -> Sequence[VerificationKey]:
        """See `Keys`."""
        found = _named(self._keys, kid) if self._age() < KEPT_FOR.total_seconds() else ()
        if found:
            if self._age() > FRESH_FOR.total_seconds():
                self._fetch()
            return found
        fetching = self._fetch()
        if fetching is not None:
            # Shielded: whoever goes away must not end the fetch that others wait for.
            await asyncio.shield(fetching)
        if self._age() >= KEPT_FOR.total_seconds():
            raise Rejected(
                503,
                "keys_unavailable",
                "The keys that tokens are signed with cannot be had now.",
                next_step="Repeat the same request.",
                headers={"Retry-After": str(RETRY_AFTER_SECONDS)},
            )
        return _named(self._keys, kid)

    async def close(self) -> None:
        """Give up a fetch that is under way, and close its connections."""
        if self._fetching is not None:
            self._fetching.cancel()
            await asyncio.gather(self._fetching, return_exceptions=True)
        await self._client.aclose()

    def _age(self) -> float:
        return float("inf") if self._fetched_at is None else self._clock() - self._fetched_at

    def _fetch(self) -> asyncio.Task[None] | None:
        """The fetch that is under way, a new one, or None where it is too early for another."""
        if self._fetching is not None and not self._fetching.done():
            return self._fetching
        if self._tried_at is not None and self._clock() - self._tried_at < FETCH_EVERY.total_seconds():
            return None
        self._tried_at = self._clock()
        self._fetching = asyncio.create_task(self._fetch_now(), name="fetch token keys")
        return self._fetching

    async def _fetch_now(self) -> None:
        try:
            async with asyncio.timeout(FETCH_WITHIN.total_seconds()):
                document = load_json(await self._read())
            self._keys = keys_of(document)
        except (httpx.HTTPError, TimeoutError, HorariumError, ValueError) as error:
            _logger.warning("token_keys_not_fetched", url=self._url, error=repr(error))
            return
        self._fetched_at = self._clock()

    async def _read(self) -> bytes:
        async with self._client.stream("GET", self._url, headers={"Accept": "application/json"}) as response:
            response.raise_for_status()
            if response.status_code != httpx.codes.OK:
                raise ValueError(f"status {response.status_code}")
            data = b""
            async for part in response.aiter_bytes():
                data += part
                if len(data) > MAX_KEYS_BYTES:
                    raise ValueError(f"more than {MAX_KEYS_BYTES} bytes of keys")
            return data


def keys_of(document: Any) -> tuple[VerificationKey, ...]:
    """The usable keys of a JWK set (RFC 7517); others are left out. ValueError where it is no set, or none is usable."""
    listed = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(listed, list):
        raise ValueError("a JWK set is an object with a list of keys")  # noqa: TRY004 - the text is wrong, not a type
    found = []
    for each in listed:
        if not isinstance(each, dict) or each.get("kty") == "oct" or each.get("use", "sig") != "sig":
            continue
        try:
            key = jwt.PyJWK(each).key
        except (jwt.PyJWTError, ValueError, TypeError, NotImplementedError, UnsupportedAlgorithm) as error:
            # One that the libraries cannot read must not keep the others from being used. They tell it by any of these: a curve
            # or an algorithm that this build of cryptography lacks by `NotImplementedError` or `UnsupportedAlgorithm`.
            _logger.warning("token_key_left_out", kid=str(each.get("kid"))[:80], error=repr(error))
            continue
        algorithm = algorithm_of(key)
        kid = each.get("kid")
        if algorithm is not None and each.get("alg", algorithm) == algorithm and isinstance(kid, str | None):
            found.append(VerificationKey(kid=kid, algorithm=algorithm, key=key))
    if not found:
        raise ValueError("the JWK set has no key for RS256, ES256 or EdDSA")
    return tuple(found)


def algorithm_of(key: object) -> str | None:
    """The one algorithm that a public key is accepted with; None for a key that is not accepted at all."""
    match key:
        case RSAPublicKey() if key.key_size >= LEAST_RSA_BITS:
            return "RS256"
        case EllipticCurvePublicKey() if isinstance(key.curve, SECP256R1):
            return "ES256"
        case Ed25519PublicKey():
            return "EdDSA"
        case _:
            return None


class TokenVerifier:
    """Turns a token into the principal that it was made for."""

    def __init__(self, keys: Keys, *, issuer: str | None = None, audience: str | None = None) -> None:
        self._keys = keys
        self._issuer = issuer
        self._audience = audience

    async def verify(self, token: str) -> Principal:
        """The principal of a valid token. Any other is `Rejected` with 401, which does not say what is wrong with it."""
        return (await self.verify_until(token))[0]

    async def verify_until(self, token: str) -> tuple[Principal, datetime]:
        """The same, and until when the token is valid."""
        claims = await self._claims(token)
        name, kind, org_id, scope = (claims.get(each) for each in ("sub", "kind", "org", "scope"))
        principal = principal_of(name=name, kind=kind, org_id=org_id, scope=scope)
        return principal, datetime.fromtimestamp(min(int(claims["exp"]), _LATEST), UTC)

    async def close(self) -> None:
        """Let go of what the keys hold."""
        await self._keys.close()

    async def _claims(self, token: str) -> dict[str, Any]:
        try:
            if len(token) > MAX_TOKEN:
                raise unauthenticated()
            header = jwt.get_unverified_header(token)
            kid = header.get("kid")
            if "crit" in header or not isinstance(kid, str | None):
                raise unauthenticated()
            for candidate in await self._keys.candidates(kid):
                if header.get("alg") == candidate.algorithm:
                    return self._decoded(token, candidate)
        except (jwt.PyJWTError, ValueError, RecursionError):
            pass
        raise unauthenticated()

    def _decoded(self, token: str, candidate: VerificationKey) -> dict[str, Any]:
        claims: dict[str, Any] = jwt.decode(
            token,
            candidate.key,
            algorithms=[candidate.algorithm],
            issuer=self._issuer,
            audience=self._audience,
            leeway=LEEWAY,
            options={
                "require": ["exp", "sub", "kind", "org"],
                "verify_iss": self._issuer is not None,
                "verify_aud": self._audience is not None,
            },
        )
        return claims


def principal_of(*, name: object, kind: object, org_id: object, scope: object) -> Principal:
    """The principal that claims name, whoever signed them; `Rejected` with 401 where one of them is none that we take.

    `scope` holds scopes separated by spaces.
    """
    if not (
        isinstance(name, str)
        and 0 < len(name) <= MAX_SUBJECT
        and name.isprintable()
        and name == name.strip()  # else " local:ada" would look like a local person in the record
        and not name.startswith(_RESERVED)
        and isinstance(kind, str)
        and kind in KINDS
        and isinstance(org_id, str)
        and NAME.fullmatch(org_id)
        and isinstance(scope, str | None)
    ):
        raise unauthenticated()
    return Principal(name=name, kind=KINDS[kind], org_id=org_id, scopes=frozenset((scope or "").split(" ")))


def unauthenticated() -> Rejected:
    """One answer to every token that is not accepted, so that it teaches nothing about the others."""
    return Rejected(
        401,
        "unauthenticated",
        "The request has no valid token.",
        next_step="Send `Authorization: Bearer TOKEN` with a token that has not expired.",
        headers={"WWW-Authenticate": 'Bearer realm="horarium"'},
    )


def _named(keys: Sequence[VerificationKey], kid: str | None) -> Sequence[VerificationKey]:
    if kid is not None:
        return tuple(key for key in keys if key.kid == kid)
    # Without a name only a lone key can be meant; to try several would let a token choose.
    return tuple(keys) if len(keys) == 1 else ()
