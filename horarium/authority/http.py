"""A platform's own authority, asked over HTTP. Its contract is `deploy/authority.openapi.yaml`.

It fails closed. Whatever is not a valid answer in time is no answer: silence, rubbish, a wrong type, a redirect, any status but
200, an answer that is too large or comes too slowly. No answer is never an error here, and admits nothing.
"""

import asyncio
import ssl
import time
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final, Never, TypeVar

import httpx
import structlog
from pydantic import BaseModel, ValidationError

from horarium.authority import contract
from horarium.authority.asking import Answers
from horarium.authority.content import MAX_INPUT_BYTES
from horarium.authority.contract import (
    InputWanted,
    QuestionAnswered,
    QuestionAsked,
    RequestTold,
    ReservationClosed,
    ReservationConfirmed,
    ScopeTold,
)
from horarium.authority.facts import Question
from horarium.authority.rules import may_cost
from horarium.authority.signing import Keys, sign
from horarium.errors import NotFound, Refused, Unavailable
from horarium.schedule.identity import Scope

UNAVAILABLE: Final = "authority_unavailable"
CONNECT_WITHIN: Final = timedelta(seconds=1)
ANSWER_WITHIN: Final = timedelta(seconds=2)
"""From the first byte to the last, the way to it included."""
READ_WITHIN: Final = timedelta(seconds=20)
"""For the bytes of an input, of which there are up to 4 MiB."""
MAX_ANSWER_BYTES: Final = 256 * 1024
"""Many times what 64 grants, each for 64 agents with short names, take."""
CONNECTIONS: Final = 64
_IDLE_SECONDS: Final = 2.0
"""Shorter than any server keeps a connection, so that none is used at the moment at which it is closed."""
_LOG_AGAIN_SECONDS: Final = 1.0
"""A line for each run that is asked about would hide what else happens. The count goes on."""
_MISSING: Final = frozenset({403, 404, 410})

Message = TypeVar("Message", bound=BaseModel)
_logger = structlog.get_logger(__name__)


class _NoAnswer(Exception):
    """`cause` is for counting, and the sentence for people. Neither holds anything that the other side wrote."""

    def __init__(self, cause: str, sentence: str) -> None:
        self.cause = cause
        self.sentence = sentence
        super().__init__(sentence)


@dataclass(slots=True, kw_only=True)
class HttpAuthority:
    """See `horarium.authority.asking.Authority`. Close it once it is not used any more.

    `base` is the address that the paths of the contract are put behind. `unanswered` counts, by cause, what got no answer;
    each cause is logged at most once a second.
    """

    base: str
    keys: Keys = field(repr=False)
    within: timedelta = ANSWER_WITHIN
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    unanswered: Counter[str] = field(default_factory=Counter)
    _trust: ssl.SSLContext | bool = field(default=False, init=False, repr=False)
    _logged: dict[str, float] = field(default_factory=dict, repr=False)
    _client: httpx.AsyncClient | None = field(default=None, repr=False)
    _loop: asyncio.AbstractEventLoop | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.base.startswith("https:"):
            # It takes a tenth of a second, which no admission is to wait for. SSL_CERT_FILE and SSL_CERT_DIR are heard, for
            # platforms with a CA of their own.
            self._trust = httpx.create_ssl_context()

    @property
    def holds_money(self) -> bool:
        """It does: reservations are the platform's."""
        return True

    async def ask(self, question: Question, *, run_id: str | None = None) -> Answers:
        """Ask for everything at once. A run that costs nothing is asked about without its id: nothing is to be reserved."""
        request = question.request
        reserves_for = run_id if may_cost(request) else None
        asked = QuestionAsked(
            scope=_told(question.scope),
            request=RequestTold(
                agent_version=request.agent_version,
                input=request.input,
                output_target=request.output_target,
                grants=request.grants,
                budget_id=request.budget_id,
                usage_class=request.usage_class.value,
            ),
            person=question.person,
            digest=question.digest,
            run_id=reserves_for,
            asked_at=self.now(),
        )
        try:
            body = asked.model_dump_json().encode()
            answer = await self._post(contract.QUESTIONS, body, f"question_{uuid.uuid4().hex}", most=MAX_ANSWER_BYTES)
            facts = _answered(answer, reserves_for)
        except _NoAnswer as none:
            self._count(none)
            return Answers(question=question, unanswered=none.sentence, unanswered_code=UNAVAILABLE)
        return Answers(question=question, facts=facts, reserved=facts.reserved)

    async def read_input(self, scope: Scope, reference: str, *, person: str | None) -> bytes:
        """The bytes, of which more than 4 MiB are `Refused`, as in the folder of contents."""
        wanted = InputWanted(scope=_told(scope), input=reference, person=person)
        try:
            return await self._post(
                contract.INPUTS,
                wanted.model_dump_json().encode(),
                f"input_{uuid.uuid4().hex}",
                most=MAX_INPUT_BYTES,
                within=max(self.within, READ_WITHIN),
                kind="application/octet-stream",
            )
        except _NoAnswer as none:
            if none.cause in {f"status_{status}" for status in _MISSING}:
                raise NotFound(
                    "input_unreadable", f"There is no input {reference!r} that {person!r} can read."
                ) from None
            if none.cause == "too_large":
                raise Refused(
                    "input_too_large", f"The input {reference!r} is larger than {MAX_INPUT_BYTES} bytes."
                ) from None
            self._raise_unavailable(none)

    async def close_reservation(self, scope: Scope, run_id: str, *, spent: int | None) -> None:
        """Tell it once. Whoever calls keeps in mind what was not heard, and tells it again."""
        closed = ReservationClosed(scope=_told(scope), run_id=run_id, spent=spent)
        path = contract.RESERVATIONS.format(run_id=run_id)
        try:
            body = closed.model_dump_json().encode()
            answer = await self._post(path, body, f"close_{run_id}", most=MAX_ANSWER_BYTES)
            _confirmed(answer, run_id)
        except _NoAnswer as none:
            self._raise_unavailable(none)

    async def aclose(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None and self._loop is asyncio.get_running_loop():
            await client.aclose()

    async def _post(
        self,
        path: str,
        body: bytes,
        message_id: str,
        *,
        most: int,
        within: timedelta | None = None,
        kind: str = "application/json",
    ) -> bytes:
        """The body of the answer to a signed message; `_NoAnswer` whatever else happens."""
        limit = (within or self.within).total_seconds()
        headers = {
            **sign(body, self.keys, message_id=message_id, now=self.now()),
            "content-type": "application/json",
            # A small answer may unfold to a huge one.
            "accept-encoding": "identity",
        }
        try:
            async with (
                asyncio.timeout(limit),
                self._connected().stream("POST", self.base + path, content=body, headers=headers) as response,
            ):
                return await _body(response, most, kind)
        except _NoAnswer:
            raise
        except (TimeoutError, httpx.TimeoutException):
            raise _NoAnswer("timeout", f"The platform's authority did not answer within {limit:g} s.") from None
        except httpx.ConnectError:
            raise _NoAnswer("no_connection", "The platform's authority cannot be reached.") from None
        except (httpx.HTTPError, OSError):
            raise _NoAnswer("broken_off", "The platform's authority broke off in the middle of its answer.") from None
        except Exception as error:
            # The boundary: whatever comes from outside, admission is told that there is no answer.
            _logger.exception("authority_failed", kind=type(error).__name__)
            raise _NoAnswer("failed", "The platform's authority could not be asked. The log says more.") from error

    def _connected(self) -> httpx.AsyncClient:
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            # Connections belong to the loop that they were made in, and end with it.
            self._loop = loop
            self._client = httpx.AsyncClient(
                verify=self._trust,
                # Proxies are not heard: what an environment variable says is no reason to send questions elsewhere.
                trust_env=False,
                follow_redirects=False,
                timeout=httpx.Timeout(
                    None, connect=CONNECT_WITHIN.total_seconds()
                ),  # the whole is bounded by the caller
                limits=httpx.Limits(max_connections=CONNECTIONS, keepalive_expiry=_IDLE_SECONDS),
            )
        return self._client

    def _raise_unavailable(self, none: _NoAnswer) -> Never:
        self._count(none)
        raise Unavailable(
            UNAVAILABLE, none.sentence, next_step="Look whether it is there, then try the same again."
        ) from None

    def _count(self, none: _NoAnswer) -> None:
        self.unanswered[none.cause] += 1
        now = time.monotonic()
        if now - self._logged.get(none.cause, -_LOG_AGAIN_SECONDS) >= _LOG_AGAIN_SECONDS:
            self._logged[none.cause] = now
            count = self.unanswered[none.cause]
            _logger.warning("authority_unanswered", cause=none.cause, because=none.sentence, count=count)


async def _body(response: httpx.Response, most: int, kind: str) -> bytes:
    status = response.status_code
    if status != httpx.codes.OK:
        raise _NoAnswer(f"status_{status}", f"The platform's authority answered with status {status} instead of 200.")
    if response.headers.get("content-type", "").partition(";")[0].strip().lower() != kind:
        # Such as the page of a proxy that stands between: it must not be taken for the bytes of an input.
        raise _NoAnswer("another_kind", f"The platform's authority answered with something else than {kind}.")
    if response.headers.get("content-encoding", "identity") != "identity":
        raise _NoAnswer("encoded", "The platform's authority compressed its answer, which it was asked not to.")
    body = bytearray()
    async for part in response.aiter_raw():
        body += part
        if len(body) > most:
            raise _NoAnswer("too_large", f"The platform's authority answered with more than {most} bytes.")
    return bytes(body)


def _read(model: type[Message], body: bytes) -> Message:
    try:
        return model.model_validate_json(body, strict=True)
    except ValidationError as error:
        raise _NoAnswer(
            "invalid", f"The platform's authority did not answer as its contract says. {_first(error)}"
        ) from None


def _answered(body: bytes, run_id: str | None) -> QuestionAnswered:
    facts = _read(QuestionAnswered, body)
    if run_id is None and facts.reserved is not None:
        raise _NoAnswer("invalid", "The platform's authority says that it reserved something for no run.")
    return facts


def _confirmed(body: bytes, run_id: str) -> None:
    if _read(ReservationConfirmed, body).run_id != run_id:
        raise _NoAnswer("invalid", "The platform's authority confirmed the end of another run.")


def _first(error: ValidationError) -> str:
    """Where the first fault is and what was expected, without anything of the answer but printable names."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place = ".".join(str(part) for part in first["loc"])[:100]
    return f"{place if place.isprintable() else '?'}: {first['msg'][:200]}" if place else "It is no JSON object."


def _told(scope: Scope) -> ScopeTold:
    return ScopeTold(org_id=scope.org_id, environment_id=scope.environment_id)
