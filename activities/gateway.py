"""The gateway `http`: what is sent to an agent that is no Temporal worker, and what its answers mean.

Messages are signed as `horarium.authority.signing` says; the id of a message names the run that it is about. A connection is
made for each, to an address that was checked, by this machine and no proxy. No redirect is followed, and of an answer no more
is read than is needed.
"""

import asyncio
import json
import ssl
import traceback
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import httpx
import structlog

from activities.addresses import ForbiddenAddress, Resolve, addresses_of, resolve
from horarium import traces
from horarium.authority.declared import Destination
from horarium.authority.signing import Keys, keys_named, sign
from horarium.calendar.faults import shown
from horarium.control.dispatching import Answer, Claim
from horarium.control.outcomes import OutcomeReport, read_outcome
from horarium.errors import InvalidSchedule, Misconfigured
from horarium.schedule.document import load_json
from horarium.schedule.identity import Scope, instant_text

CONNECT_WITHIN: Final = timedelta(seconds=3)
"""For each address of a destination."""
ANSWER_WITHIN: Final = timedelta(seconds=10)
"""For a whole exchange. A destination takes a run and does it afterwards, so an answer needs no longer."""
MAX_ANSWER: Final = 256 * 1024
"""Bytes of an answer to a poll: as much as the API takes of a reported outcome."""
IDEMPOTENCY_KEY: Final = "Idempotency-Key"

_ASK_AGAIN: Final = frozenset({408, 425, 429})
"""Client errors that mean later, and not no."""
_GONE: Final = 410

_logger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a POST came to, and a sentence about it that names no secret. `trace` is the traceback where it failed."""

    answer: Answer
    sentence: str
    trace: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Polled:
    """What a destination says about a run: its outcome, or None while it goes on or nothing usable was said.

    `gone` says that it will never have one.
    """

    report: OutcomeReport | None = None
    gone: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What somebody who was told something answered: a status, and `Retry-After` as it stands there."""

    status: int
    retry_after: str | None = None


class HttpGateway:
    """Sends to destinations. `public_url` is where agents find the API of this installation."""

    def __init__(
        self,
        public_url: str,
        *,
        resolving: Resolve = resolve,
        keys_of: Callable[[str], Keys] = keys_named,
        trusts: ssl.SSLContext | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._public_url = public_url.rstrip("/")
        self._resolving = resolving
        self._keys_of = keys_of
        # The system's certificates, since operators add their own there. Loading them takes tens of milliseconds, so now.
        self._trusts = trusts or ssl.create_default_context()
        self._now = now

    def keys_of(self, variable: str) -> Keys:
        """The secrets of a destination."""
        return self._keys_of(variable)

    async def post(self, claim: Claim) -> Told:
        """Send a run to its agent, once."""
        name = claim.destination_name
        message = json.dumps(self._message(claim), separators=(",", ":"), sort_keys=True).encode()
        try:
            headers = {IDEMPOTENCY_KEY: claim.run_id, **traces.handed_on()}
            status = await self._send(claim.destination, "", claim.run_id, body=message, headers=headers)
        except ForbiddenAddress as error:
            sentence = f"Destination {name!r} may not be used: {error}"
            told = Told(answer=Answer.REFUSED, sentence=sentence, trace=_trace(error))
        except (NotConnectedError, Misconfigured) as error:
            sentence = f"Destination {name!r} could not be reached: {error}"
            told = Told(answer=Answer.UNSENT, sentence=sentence, trace=_trace(error))
        except (httpx.HTTPError, OSError) as error:
            sentence = f"Destination {name!r} gave no usable answer: {type(error).__name__}."
            told = Told(answer=Answer.UNKNOWN, sentence=sentence, trace=_trace(error))
        else:
            told = Told(answer=_meaning(status), sentence=f"Destination {name!r} answered with status {status}.")
        if told.answer is not Answer.TAKEN:
            _logger.warning("run_not_taken", run_id=claim.run_id, answer=told.answer.value, because=told.sentence)
        return told

    async def poll(self, destination: Destination, run_id: str) -> Polled:
        """Ask how a run stands. Whatever is no answer is worth another question later."""
        try:
            async with self._answered(
                destination, "GET", f"/runs/{run_id}", f"poll:{run_id}", headers=traces.handed_on()
            ) as answer:
                if answer.status_code == _GONE:
                    return Polled(gone=True)
                if answer.status_code != httpx.codes.OK:
                    _logger.warning("poll_not_answered", run_id=run_id, status=answer.status_code)
                    return Polled()
                said = load_json(await _bounded(answer))
            if isinstance(said, dict) and said.get("outcome") == "running":
                return Polled()
            return Polled(report=read_outcome(said))
        except (ForbiddenAddress, NotConnectedError, Misconfigured, httpx.HTTPError, OSError) as error:
            _logger.warning("poll_not_answered", run_id=run_id, error=f"{type(error).__name__}: {shown(str(error))}")
        except InvalidSchedule as error:
            _logger.warning("poll_not_understood", run_id=run_id, faults=[str(each) for each in error.faults[:5]])
        return Polled()

    async def cancel(self, destination: Destination, run_id: str) -> bool:
        """Tell the agent that nobody waits for a run any more, once; False where that was not heard."""
        try:
            below, headers = f"/runs/{run_id}/cancel", traces.handed_on()
            status = await self._send(destination, below, f"cancel:{run_id}", body=b"{}", headers=headers)
        except (ForbiddenAddress, NotConnectedError, Misconfigured, httpx.HTTPError, OSError) as error:
            _logger.warning(
                "cancellation_not_told", run_id=run_id, error=f"{type(error).__name__}: {shown(str(error))}"
            )
            return False
        return httpx.codes.is_success(status)

    async def tell(self, destination: Destination, message_id: str, body: bytes) -> Said:
        """Post a signed message that no run waits for, once, and return what was answered. The body of that is not read.

        Raises `ForbiddenAddress`, `Misconfigured` without a secret, `NotConnectedError`, `httpx.HTTPError` or `TimeoutError`.
        """
        async with self._answered(destination, "POST", "", message_id, body=body) as answer:
            return Said(status=answer.status_code, retry_after=answer.headers.get("retry-after"))

    def _message(self, claim: Claim) -> Mapping[str, Any]:
        schedule, request = claim.key.activation.schedule, claim.version.configuration.run
        here = self._address(schedule.scope, claim.run_id)
        previous = claim.previous_success
        return {
            "run_id": claim.run_id,
            "schedule": {
                "org_id": schedule.org_id,
                "environment_id": schedule.environment_id,
                "schedule_id": schedule.schedule_id,
                "revision": claim.version.revision,
                "digest": claim.version.digest,
            },
            "trigger": claim.key.trigger,
            "nominal_time": instant_text(claim.key.nominal_time),
            "actual_time": instant_text(claim.decided_at),
            "previous_success": None if previous is None else instant_text(previous),
            "agent_version": request.agent_version,
            "usage_class": request.usage_class.value,
            "output_target": request.output_target,
            "grants": list(request.grants),
            "input": {"url": f"{here}/input", "token": claim.token},
            "outcome": {"url": f"{here}/outcome", "by": claim.destination.outcome},
            "deadline": instant_text(claim.deadline),
            **_started_with(claim),
        }

    def _address(self, scope: Scope, run_id: str) -> str:
        return f"{self._public_url}/v1/organizations/{scope.org_id}/environments/{scope.environment_id}/runs/{run_id}"

    async def _send(
        self,
        destination: Destination,
        below: str,
        message_id: str,
        *,
        body: bytes,
        headers: Mapping[str, str] | None = None,
    ) -> int:
        async with self._answered(destination, "POST", below, message_id, body=body, headers=headers) as answer:
            # What else it says is not read: the connection ends here.
            return answer.status_code

    @asynccontextmanager
    async def _answered(
        self,
        destination: Destination,
        method: str,
        below: str,
        message_id: str,
        *,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
    ) -> AsyncIterator[httpx.Response]:
        """The answer to a signed message, its body unread.

        Raises `ForbiddenAddress`, `Misconfigured` without a secret, `NotConnectedError` where nothing was sent; after that
        `httpx.HTTPError` or `TimeoutError`.
        """
        url, sent = destination.url, _Sent()
        assert url.host is not None, "a destination has a host"
        request_headers = {
            "Host": _host_header(url.host, url.port, url.scheme),
            "Accept-Encoding": "identity",
            "User-Agent": "horarium",
            **({"Content-Type": "application/json"} if body else {}),
            **sign(body, self._keys_of(destination.secret), message_id=message_id, now=self._now()),
            **(headers or {}),
        }
        path = (url.path or "").rstrip("/") + below or "/"
        try:
            async with (
                asyncio.timeout(ANSWER_WITHIN.total_seconds()),
                httpx.AsyncClient(trust_env=False, verify=self._trusts, timeout=_TIMEOUT, limits=_ONE) as client,
            ):
                answer = await _first_that_connects(
                    client,
                    [
                        client.build_request(
                            method,
                            httpx.URL(scheme=url.scheme, host=address, port=url.port, path=path),
                            content=body,
                            headers=request_headers,
                            # The certificate is to be the host's, whatever address it has.
                            extensions={"sni_hostname": url.host.strip("[]"), "trace": sent},
                        )
                        for address in await self._addresses(destination)
                    ],
                    sent,
                )
                try:
                    yield answer
                finally:
                    await answer.aclose()
        except (httpx.HTTPError, OSError) as error:
            if sent.something:
                raise
            raise NotConnectedError(f"no connection was made ({type(error).__name__}).") from error

    async def _addresses(self, destination: Destination) -> Sequence[str]:
        url = destination.url
        assert url.host is not None
        port = url.port or 443
        return await addresses_of(url.host, port, private=destination.private, resolving=self._resolving)


class _Sent:
    """Notes whether any byte of a request went out, by what the connection tells of its progress."""

    def __init__(self) -> None:
        self.something = False

    async def __call__(self, event: str, _details: Mapping[str, Any]) -> None:
        """See https://www.encode.io/httpcore/extensions/#trace."""
        if event.startswith("http11.send_request"):
            self.something = True


class NotConnectedError(Exception):
    """Nothing was sent, since there was no connection. The sentence goes on after a colon."""


_TIMEOUT: Final = httpx.Timeout(ANSWER_WITHIN.total_seconds(), connect=CONNECT_WITHIN.total_seconds())
_ONE: Final = httpx.Limits(max_connections=1, max_keepalive_connections=0)


async def _first_that_connects(
    client: httpx.AsyncClient, requests: Sequence[httpx.Request], sent: _Sent
) -> httpx.Response:
    """Send to the first address that takes a connection. Raises what the last one did, or the first that was sent anything."""
    *others, last = requests
    for each in others:
        try:
            return await client.send(each, stream=True)
        except (httpx.ConnectError, httpx.ConnectTimeout):
            assert not sent.something, "there was no connection"
    return await client.send(last, stream=True)


def _started_with(claim: Claim) -> Mapping[str, Any]:
    """What only some runs have: an agent that knows none of it is told nothing new."""
    told = {
        "start_event": claim.start_event,
        "event": dict(claim.event),
        "config": dict(claim.config),
        "tenant_id": claim.tenant_id,
    }
    return {name: value for name, value in told.items() if value}


def _trace(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


def _meaning(status: int) -> Answer:
    if httpx.codes.is_success(status):
        return Answer.TAKEN
    if status in _ASK_AGAIN or httpx.codes.is_server_error(status):
        return Answer.UNKNOWN
    # A redirection too: only an operator says where runs go.
    return Answer.REFUSED


def _host_header(host: str, port: int | None, scheme: str) -> str:
    return host if port is None or (scheme, port) in {("https", 443), ("http", 80)} else f"{host}:{port}"


async def _bounded(answer: httpx.Response) -> bytes:
    data = bytearray()
    async for part in answer.aiter_raw():
        data += part
        if len(data) > MAX_ANSWER:
            raise httpx.DecodingError(f"The answer has more than {MAX_ANSWER:,} bytes.")
    return bytes(data)
