"""One call: snapshot first, then the token, then exactly one request; and what an answer, or none, means.

Nothing is ever sent twice. Whether a mutation whose answer was lost may be repeated is for a person to decide, who knows
what was reviewed.
"""

import asyncio
import inspect
import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit

import httpx

from horarium.client.answers import read
from horarium.client.problems import OutcomeUnknown, Problem, UnexpectedAnswer, Unreachable, problem
from horarium.errors import Fault, InvalidSchedule, Misconfigured, Refused
from horarium.schedule.document import MAX_DOCUMENT_BYTES, json_faults
from horarium.schedule.identity import Scope

Token = str | Callable[[], str | Awaitable[str]]
"""A bearer token, or a function that gives one for each call, awaited where it gives an awaitable."""
Answer = TypeVar("Answer")
Query = Mapping[str, str | Sequence[str]]
ScopeLike = Scope | Mapping[str, str]
"""One environment of one organization: `{"org_id": …, "environment_id": …}`, or the value."""

CONNECT_WITHIN = timedelta(seconds=5)
ANSWER_WITHIN = timedelta(seconds=30)
"""From the token until the whole answer is there. More than the catalog waits for a lock, less than a person does."""
MAX_KEY = 200
"""Characters of an idempotency key."""
MAX_ANSWER = 64 * 1024 * 1024
"""Bytes of an answer that are read, once decompressed: many times the largest page."""
LARGEST_PAGE = 50
"""Entries of a directory that a server gives at once."""
LONGEST_WAIT = timedelta(days=1)
"""What a server may ask to wait at the most."""

_NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
_PREFIX = "/v1/organizations/{}/environments/{}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What will be sent, as it was when the method was called. `key` is None for whatever changes nothing."""

    operation: str
    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    content: bytes | None = None
    key: str | None = None


class Caller:
    """Sends calls to one server over one pool of connections."""

    def __init__(
        self, base_url: str, token: Token, *, answer_within: timedelta, transport: httpx.AsyncBaseTransport | None
    ) -> None:
        _check_url(base_url)
        self._token = token
        self._answer_within = answer_within.total_seconds()
        self._http = httpx.AsyncClient(
            base_url=base_url,
            timeout=httpx.Timeout(self._answer_within, connect=CONNECT_WITHIN.total_seconds()),
            follow_redirects=False,
            transport=transport,
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def send(self, call: Call, kind: type[Answer]) -> Answer:
        """The answer. Raises `Problem`, `Unreachable`, `UnexpectedAnswer`, and for mutations `OutcomeUnknown`."""
        response, body = await self._exchange(call)
        try:
            return read(kind, _document(response, body))
        except Problem as found:
            if found.status >= httpx.codes.INTERNAL_SERVER_ERROR and found.status != httpx.codes.SERVICE_UNAVAILABLE:
                _raise_if_changing(call, f"the server failed ({found.sentence})", found)
            raise
        except UnexpectedAnswer as found:
            # What stands between us and the server, or another release of it: either may have carried it out.
            if response.is_success or response.status_code >= httpx.codes.INTERNAL_SERVER_ERROR:
                _raise_if_changing(call, str(found), found)
            raise

    async def _exchange(self, call: Call) -> tuple[httpx.Response, bytes]:
        headers = {
            "Authorization": f"Bearer {await self._fresh_token()}",
            "Accept": "application/json, application/problem+json",
        }
        if call.content is not None:
            headers["Content-Type"] = "application/json"
        if call.key is not None:
            headers["Idempotency-Key"] = call.key
        try:
            async with (
                asyncio.timeout(self._answer_within),
                self._http.stream(
                    call.method, call.path, params=list(call.query), content=call.content, headers=headers
                ) as response,
            ):
                return response, await _body(response)
        except _NEVER_SENT as error:
            raise Unreachable(
                f"{self._http.base_url} does not answer ({_described(error)}), and nothing was sent. "
                "Check the address, and that `horarium api` runs there."
            ) from error
        except (TimeoutError, httpx.HTTPError, httpx.InvalidURL) as error:
            _raise_if_changing(call, f"the answer was lost ({_described(error)}).", error)
            raise Unreachable(
                f"The {call.operation} got no answer ({_described(error)}). It changes nothing."
            ) from error

    async def _fresh_token(self) -> str:
        token = self._token
        if not isinstance(token, str):
            made = token()
            token = await made if inspect.isawaitable(made) else made
        if not token or not token.isascii() or not token.isprintable() or " " in token:
            # Never repeated in the sentence: most of it may be the real secret.
            raise Misconfigured(
                "The token is empty or holds a character that no token has. Print one by `horarium token`."
            )
        return token


def reading(operation: str, scope: ScopeLike, *path: str, query: Query | None = None, root: str | None = None) -> Call:
    """A call that changes nothing. With a `root` the path begins there, and the query holds the scope."""
    address, asked = _address(scope, path, query, root)
    return Call(operation=operation, method="GET", path=address, query=asked)


def asking(operation: str, scope: ScopeLike, *path: str, request: Mapping[str, Any]) -> Call:
    """A call with a body that changes nothing."""
    return Call(operation=operation, method="POST", path=_path(scope, path), content=snapshot(request))


def changing(
    operation: str,
    scope: ScopeLike,
    *path: str,
    request: Mapping[str, Any] | None,
    key: str,
    method: str = "POST",
    query: Query | None = None,
    root: str | None = None,
) -> Call:
    """A mutation, under the caller's key; without a body where the request is None. `root` is as for `reading`."""
    _check_key(key)
    content = None if request is None else snapshot(request)
    address, asked = _address(scope, path, query, root)
    return Call(operation=operation, method=method, path=address, query=asked, content=content, key=key)


def snapshot(request: Mapping[str, Any]) -> bytes:
    """The request as bytes. Later changes of the caller's own do not reach it.

    Raises `InvalidSchedule` for what is no JSON, and for what no server reads: it refuses before all of it is sent, and that
    answer may be lost.
    """
    plain = dict(request)
    if faults := json_faults(plain):
        raise InvalidSchedule(faults)
    content = json.dumps(plain, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    if len(content) > MAX_DOCUMENT_BYTES:
        sentence = f"The request has {len(content):,} bytes; at most {MAX_DOCUMENT_BYTES:,} are read."
        raise InvalidSchedule([Fault("", "too_large", sentence)])
    return content


def _path(scope: ScopeLike, parts: Sequence[str]) -> str:
    return _address(scope, parts, None, None)[0]


def _address(
    scope: ScopeLike, parts: Sequence[str], query: Query | None, root: str | None
) -> tuple[str, tuple[tuple[str, str], ...]]:
    """The path and the query of a call."""
    found = scope if isinstance(scope, Scope) else _scope(scope)
    asked = _flat(query or {})
    if root is None:
        root = _PREFIX.format(quote(found.org_id, safe=""), quote(found.environment_id, safe=""))
    else:
        # The organization would be that of the token, and the caller may hold the wrong one.
        asked = (("org_id", found.org_id), ("environment_id", found.environment_id), *asked)
    return "/".join([root, *(quote(part, safe="") for part in parts)]), asked


def _scope(scope: Mapping[str, str]) -> Scope:
    if set(scope) != {"org_id", "environment_id"} or not all(isinstance(each, str) for each in scope.values()):
        raise Refused(
            "invalid_scope",
            f"A scope has exactly org_id and environment_id, both texts; found {sorted(map(str, scope))}.",
        )
    return Scope(org_id=scope["org_id"], environment_id=scope["environment_id"])


def _flat(query: Query) -> tuple[tuple[str, str], ...]:
    return tuple(
        (name, each) for name, value in query.items() for each in ([value] if isinstance(value, str) else value)
    )


def _check_url(base_url: str) -> None:
    try:
        parts = urlsplit(base_url)
        usable = parts.port != 0 and httpx.URL(base_url).host and not re.search(r"\s", base_url)
    except (ValueError, httpx.InvalidURL):
        usable = False
    if not usable or parts.scheme not in {"http", "https"} or parts.username or parts.query or parts.fragment:
        # The address may hold a password, so it is not repeated, nor what the parser says of it.
        raise Misconfigured(
            "The server's address is http:// or https:// with a host, without a user, a query or a fragment: "
            "https://horarium.example, or http://127.0.0.1:8080."
        ) from None


def _check_key(key: str) -> None:
    # A space at an end would be cut off on the way, and the receipt would stand under another key.
    if not (0 < len(key) <= MAX_KEY and key.isascii() and key.isprintable() and key == key.strip()):
        sentence = f"An idempotency key has 1 to {MAX_KEY} printable ASCII characters and no space at its ends."
        raise InvalidSchedule([Fault("", "invalid_idempotency_key", f"{sentence} Found {key[:80]!r}.")])


async def _body(response: httpx.Response) -> bytes:
    """The body of an answer, or as much of it as tells that it is too long."""
    body = bytearray()
    async for part in response.aiter_bytes():
        body += part
        if len(body) > MAX_ANSWER:
            break
    return bytes(body)


def _document(response: httpx.Response, body: bytes) -> Any:
    if len(body) > MAX_ANSWER:
        raise UnexpectedAnswer(f"The server's answer has more than {MAX_ANSWER:,} bytes.")
    try:
        document = _parsed(body)
    except (ValueError, RecursionError) as error:
        raise _foreign(response) from error
    if response.is_success:
        return document
    if response.status_code < httpx.codes.BAD_REQUEST or not isinstance(document, dict) or "code" not in document:
        raise _foreign(response)
    raise problem(response.status_code, document, retry_after=_retry_after(response))


def _parsed(body: bytes) -> Any:
    document = json.loads(body.decode())
    if b"\\u" in body:
        # Half a character could be neither printed nor stored by whoever asked.
        json.dumps(document, ensure_ascii=False).encode()
    return document


def _foreign(response: httpx.Response) -> UnexpectedAnswer:
    return UnexpectedAnswer(
        f"{response.url.copy_with(query=None)} answered with status {response.status_code} and a body that is none of "
        "this API's. Is that the address of Horarium's API, or of something that stands before it?"
    )


def _retry_after(response: httpx.Response) -> timedelta | None:
    text = response.headers.get("Retry-After", "").strip()
    if text.isascii() and text.isdecimal():
        return min(timedelta(seconds=int(text[:9])), LONGEST_WAIT)
    try:
        wait = parsedate_to_datetime(text) - datetime.now(UTC)
    except (ValueError, TypeError):
        return None
    return min(max(timedelta(0), wait), LONGEST_WAIT)


def _raise_if_changing(call: Call, because: str, cause: Exception) -> None:
    if call.key is not None:
        request = json.loads(call.content or b"{}")
        raise OutcomeUnknown(call.operation, key=call.key, request=request, because=because) from cause


def _described(error: Exception) -> str:
    return str(error) or type(error).__name__
