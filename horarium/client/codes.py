"""One class for each problem code of the API, to be caught by name: `except codes.RevisionConflict`.

What an admission may object to when a schedule is enabled has classes too (`codes.InputUnreadable`, …), all below
`NotAdmissible` and made from `OBJECTIONS`.
"""

from collections.abc import Mapping
from types import MappingProxyType

from horarium.client.problems import (
    BadRequest,
    Conflict,
    Forbidden,
    Invalid,
    NotAdmissible,
    NotFound,
    ServerFailed,
    TooLarge,
    TooManyRequests,
    Unauthenticated,
    Unavailable,
)


class InvalidJson(BadRequest, code="invalid_json"):
    """The body is no JSON that has exactly one meaning."""


class IdempotencyKeyMissing(BadRequest, code="idempotency_key_missing"):
    """A mutation came without an `Idempotency-Key`."""


class InvalidCursor(BadRequest, code="invalid_cursor"):
    """The cursor is none that a page before this one gave."""


class MethodNotAllowed(BadRequest, code="method_not_allowed"):
    """The address is there, and does not do that."""


class InvalidProfile(BadRequest, code="invalid_profile"):
    """The submission of a profile, or the event that was to start one, has faults; `faults` holds all of them."""


class RequestTimeout(BadRequest, code="request_timeout"):
    """The request took too long to arrive; it was not carried out."""


class PathTooLong(TooLarge, code="path_too_long"):
    """The path is longer than any of this API's."""


class QueryTooLong(TooLarge, code="query_too_long"):
    """The query is longer than any of this API's."""


class UnsupportedMediaType(BadRequest, code="unsupported_media_type"):
    """The body is not sent as JSON."""


class HeadersTooLarge(TooLarge, code="headers_too_large"):
    """The headers are larger than any that this API needs."""


class BodyTooLarge(TooLarge, code="body_too_large"):
    """The body is larger than any document of this API."""


class NotAuthenticated(Unauthenticated, code="unauthenticated"):
    """The token is missing, expired, or not one that the server trusts."""


class ScopeMissing(Forbidden, code="scope_missing"):
    """The token lacks the scope that every schedule operation needs."""


class HumanSessionRequired(Forbidden, code="human_session_required"):
    """Only a human session may enable, pause, retire or trigger."""


class InvalidPrincipal(Forbidden, code="invalid_principal"):
    """The token's subject is no name that the record could show."""


class PathNotFound(NotFound, code="path_not_found"):
    """There is no such address in this API."""


class EnvironmentNotFound(NotFound, code="environment_not_found"):
    """There is no such environment that the caller may see."""


class ScheduleNotFound(NotFound, code="schedule_not_found"):
    """There is no such schedule that the caller may see."""


class VersionNotFound(NotFound, code="version_not_found"):
    """There is no such version that the caller may see."""


class ReceiptNotFound(NotFound, code="receipt_not_found"):
    """The caller has no receipt under that key."""


class RunNotFound(NotFound, code="run_not_found"):
    """There is no such run that the caller may see."""


class EndpointNotFound(NotFound, code="endpoint_not_found"):
    """Nobody of that name is told of anything in the environment."""


class DeadLetterNotFound(NotFound, code="dead_letter_not_found"):
    """There is no dead letter of that number in the environment; it may have been sent again."""


class AgentClassNotFound(NotFound, code="agent_class_not_found"):
    """No runner in the environment has reported such an agent class."""


class ProfileNotFound(NotFound, code="profile_not_found"):
    """There is no such profile that the caller may see."""


class StartEventNotFound(NotFound, code="start_event_not_found"):
    """The agent class does not declare such a start event."""


class ThreadNotFound(NotFound, code="thread_not_found"):
    """The profile has no thread before its first run."""


class AgentClassNotSchedulable(Conflict, code="agent_class_not_schedulable"):
    """A class that handles no cron start has no schedule."""


class BindingMismatch(Conflict, code="binding_mismatch"):
    """The binding of the profile names an agent of another class."""


class RevisionConflict(Conflict, code="revision_conflict"):
    """The head is another revision than the one that was reviewed."""


class GenerationConflict(Conflict, code="generation_conflict"):
    """The activation is at another generation than was reviewed."""


class DigestConflict(Conflict, code="digest_conflict"):
    """The revision has another digest than the one that was reviewed."""


class VersionConflict(Conflict, code="version_conflict"):
    """The activation is of another version than the one that was named."""


class EnvironmentEpochChanged(Conflict, code="environment_epoch_changed"):
    """The environment's authority changed since it was read."""


class EnvironmentReset(Conflict, code="environment_reset"):
    """The environment was reset since; nothing from before it is recovered."""


class IdempotencyKeyReused(Conflict, code="idempotency_key_reused"):
    """The key was used for another request; keep that one."""


class ScheduleRetired(Conflict, code="schedule_retired"):
    """The schedule is retired, which is final."""


class ChangedMeanwhile(Conflict, code="changed_meanwhile"):
    """Others changed what would run, each time that the authority was asked about it. Read it again."""


class AlreadyPaused(Conflict, code="already_paused"):
    """There is nothing to pause."""


class OtherContract(Conflict, code="other_contract"):
    """The schedule was made by another contract, and only that one publishes its versions."""


class BindingMissing(Conflict, code="binding_missing"):
    """No operator has said what runs for the target of a scheduler v0 schedule."""


class NotPaused(Conflict, code="not_paused"):
    """The schedule fires, so there is nothing to resume."""


class RunAtPassed(Conflict, code="run_at_passed"):
    """The instant of a one-shot has passed, and the schedule has answered for that time already."""


class NotEnabled(Conflict, code="not_enabled"):
    """A manual run needs an enabled schedule."""


class Overlap(Conflict, code="overlap"):
    """A run of the schedule goes on, and its policy allows no second one; nothing was staged."""


class RunEnded(Conflict, code="run_ended"):
    """The run has ended, so there is nothing to cancel, and no outcome to report."""


class OutcomeConflict(Conflict, code="outcome_conflict"):
    """Another outcome of the run was reported before, and counts."""


class OwesLess(Conflict, code="owes_less"):
    """The wallet owes less than was to be collected."""


class EndpointStopped(Conflict, code="endpoint_stopped"):
    """The endpoint has said that it is gone, and is told nothing until it is declared again."""


class TooManyEndpoints(Conflict, code="too_many_endpoints"):
    """The environment has as many endpoints as it may have."""


class RuntimeUnconfigured(Conflict, code="runtime_unconfigured"):
    """The environment has no runtime profile, so nothing can run in it."""


class InvalidDocument(Invalid, code="invalid_schedule"):
    """The document has faults; `faults` holds all of them."""


class InvalidParameter(Invalid, code="invalid_parameter"):
    """A parameter of the address or a header has faults."""


class InvalidLimit(Invalid, code="invalid_limit"):
    """A page is not of that size."""


class InvalidWindow(Invalid, code="invalid_window"):
    """The time ends before it begins, or is too long."""


class RateLimited(TooManyRequests, code="rate_limited"):
    """The caller's share of requests is used up for now."""


class ExecutionUnavailable(Unavailable, code="execution_unavailable"):
    """A runtime worker is missing, so nothing can be enabled."""


class ClockSkew(Unavailable, code="clock_skew"):
    """The server's clock is behind that of the runtime workers."""


class CatalogUnavailable(Unavailable, code="catalog_unavailable"):
    """The catalog does not answer now."""


class ContentUnavailable(Unavailable, code="content_unavailable"):
    """The disk with inputs and outputs does not answer, so whether a run could read and write is not known now."""


class AuthorityUnavailable(Unavailable, code="authority_unavailable"):
    """The platform's own authority gives no valid answer now, so whether a run would be admitted is not known."""


class KeysUnavailable(Unavailable, code="keys_unavailable"):
    """The keys that tokens are checked with cannot be fetched now."""


class InternalError(ServerFailed, code="internal_error"):
    """The server failed at something that it did not foresee."""


class CommitLost(ServerFailed, code="commit_lost"):
    """The server's catalog was lost while it stored a change. A mutation raises `OutcomeUnknown`, and this is its cause."""


class ServerMisconfigured(ServerFailed, code="misconfigured"):
    """The server's installation cannot work as it is set up."""


OBJECTIONS: Mapping[str, str] = MappingProxyType(
    {
        code: "".join(word.capitalize() for word in code.split("_"))
        for code in (
            "stopped_by_operator",
            "principal_left",
            "usage_class_mismatch",
            "approval_missing",
            "approval_expired",
            "agent_missing",
            "agent_not_schedulable",
            "agent_withdrawn",
            "agent_not_ready",
            "agent_offline",
            "input_unreadable",
            "input_expired",
            "consent_expired",
            "grant_missing",
            "grant_expired",
            "grant_revoked",
            "budget_missing",
            "budget_usage_class",
            "payment_x402",
            "payment_per_run",
            "budget_exhausted",
            "wallet_unpaid_limit",
            "wallet_collection_failed",
            "output_missing",
            "output_forbidden",
            "ceiling_exceeded",
            "not_in_calendar",
            "version_unusable",
            "breaker_open",
        )
    }
)
"""What admission may object to (each code with the name of its class), which enabling refuses as an occurrence would."""
for _code, _name in OBJECTIONS.items():
    _told = {"__doc__": f"Enabling is refused: `{_code}`.", "__module__": __name__}
    globals()[_name] = type(_name, (NotAdmissible,), _told, code=_code)
