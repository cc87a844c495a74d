"""What calls answer, as values. All instants are aware; fields that this release does not know stay in `document`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import AwareDatetime, TypeAdapter, ValidationError

from horarium.client.problems import UnexpectedAnswer

Answer = TypeVar("Answer")
Document = Mapping[str, Any]
"""A JSON object as the server sent it."""

_adapters: dict[type[Any], TypeAdapter[Any]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """One exact version: what a person reviewed. `as_document` is how a request names it."""

    schedule_id: str
    revision: int
    digest: str

    def as_document(self) -> dict[str, Any]:
        """The reference as it stands in a request, under `version`."""
        return {"schedule_id": self.schedule_id, "revision": self.revision, "digest": self.digest}


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """An environment, read before a change: its two numbers are preconditions of every mutation.

    `execution_ready` says whether both runtime workers are there. It does not establish that an installed worker has ever
    completed a scheduled run. `runtime_profile` is None where nothing can be enabled.
    """

    mode: str
    authority_epoch: int
    reset_generation: int
    execution_ready: bool
    runtime_profile: str | None = None
    document: Document


@dataclass(frozen=True, slots=True, kw_only=True)
class Activation:
    """Which version is enabled or paused. `version` may be older than the publication head: look here before pausing."""

    version: Reference
    generation: int
    enabled: bool
    changed_at: AwareDatetime
    changed_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """What the controller observed last of the activation with this `generation` (0 without one).

    `state` is one of `unconfigured` (the environment has no runtime profile), `pending` (asked for and not established yet),
    `active` (each occurrence still needs authority of its own), `paused` (also what was never activated), `review` (it does not
    resume by itself; a new generation is required), `stopping` (paused or retired, cleaning up remains) and `error`.
    `observed_at` is the last check, failed ones too. It is not proof of a successful execution.
    """

    state: str
    generation: int
    observed_at: AwareDatetime | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A schedule at one version. `reference` is that version, `head` the newest one, `activation` what is enabled or paused.

    No preview of occurrences is implied by any of these fields; `client.schedules.preview` computes one.
    """

    schedule_id: str
    resource_id: str
    reference: Reference
    configuration: Document
    head: Reference
    retired: bool
    published_at: AwareDatetime
    published_by: str
    activation: Activation | None
    runtime: Runtime
    execution_ready: bool
    document: Document


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A schedule in the directory: its head's record with a name and the next due instant in place of the configuration."""

    name: str
    schedule_id: str
    resource_id: str
    reference: Reference
    head: Reference
    retired: bool
    published_at: AwareDatetime
    published_by: str
    activation: Activation | None
    runtime: Runtime
    execution_ready: bool
    next_due: AwareDatetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page of the directory, ordered by UUID. Continue with `after=next_cursor`; None says that it is the last."""

    schedules: tuple[Entry, ...]
    next_cursor: str | None
    document: Document


@dataclass(frozen=True, slots=True, kw_only=True)
class LastOutcome:
    """What became of what a schedule answered for last, a refused run too. Of a span, `nominal_time` is the last instant."""

    disposition: str
    nominal_time: AwareDatetime
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """A completed operation. It confirms that one operation; the current activation may have changed afterwards.

    `replayed` tells that the operation had been carried out before, by the same key and body. `generation` is None for a
    publication; `run_id` and `nominal_time` are those of a manual run. `warnings` are sentences that refused nothing.
    """

    receipt_id: str
    operation: str
    created_at: AwareDatetime
    schedule_id: str | None = None
    resource_id: str | None = None
    reference: Reference | None = None
    generation: int | None = None
    enabled: bool | None = None
    run_id: str | None = None
    nominal_time: AwareDatetime | None = None
    environment_epoch: int | None = None
    reset_generation: int | None = None
    warnings: tuple[str, ...] = ()
    replayed: bool = False
    document: Document


@dataclass(frozen=True, slots=True, kw_only=True)
class Occurrence:
    """One line of the ledger: a due instant, a span of them that share one fate, or a manual run.

    `disposition` is where it stands, and `reason` and `sentence` say why. `lateness_ms` is how many milliseconds after its
    nominal time the agent began.
    """

    first_at: AwareDatetime
    last_at: AwareDatetime
    count: int
    disposition: str
    generation: int
    trigger: str
    triggered_by: str | None = None
    reason: str | None = None
    sentence: str | None = None
    run_id: str | None = None
    agent_version: str | None = None
    begun_at: AwareDatetime | None = None
    lateness_ms: int | None = None
    ended_at: AwareDatetime | None = None
    summary: str | None = None
    outputs: Any = None
    cost: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """An archive that something older than `before` was removed after. Whoever runs the installation keeps it."""

    archive_id: str
    before: AwareDatetime
    archived_at: AwareDatetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Occurrences:
    """A page of the ledger. Continue with `after=next_cursor`; None says that it is the last.

    `archived` may hold what would stand before the oldest line; it is told on the page that has that end.
    """

    occurrences: tuple[Occurrence, ...]
    next_cursor: str | None = None
    archived: tuple[Archive, ...] = ()
    document: Document


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One audit event: who changed what, and the details of the change."""

    id: int
    at: AwareDatetime
    kind: str
    actor: str
    generation: int | None = None
    revision: int | None = None
    details: Document


@dataclass(frozen=True, slots=True, kw_only=True)
class Events:
    """A page of audit events, oldest first. Continue with `after=next_cursor`; None says that it is the last.

    `archived` may hold those from before the first one.
    """

    events: tuple[Event, ...]
    next_cursor: int | None = None
    archived: tuple[Archive, ...] = ()
    document: Document


@dataclass(frozen=True, slots=True, kw_only=True)
class Translation:
    """The canonical calendar of the same instants; `calendar` is None where there is none, and `sentence` says why."""

    calendar: Document | None
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """When a document of any contract, or a timing alone, would be due. Nothing was stored.

    `count` is how many instants there are even where the list was cut, which `truncated` tells. `notes` are sentences on
    warnings and on changes of the clock; `tzdata` is the release of the zone data. `runs_per_30_days` are the instants of the
    30 days from the start. `contract` is that of the document (`schedules`, `v0`, `cron_profiles`), None for a timing alone.
    """

    occurrences: tuple[AwareDatetime, ...]
    count: int
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    truncated: bool = False
    timezone: str | None = None
    tzdata: str | None = None
    runs_per_30_days: int | None = None
    contract: str | None = None
    translation: Translation | None = None
    document: Document


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """One thing that an operator did; `everywhere` where it was about the whole organization."""

    id: int
    at: AwareDatetime
    kind: str
    actor: str
    everywhere: bool
    details: Document


@dataclass(frozen=True, slots=True, kw_only=True)
class Acts:
    """A page of what operators did, oldest first. Continue with `after=next_cursor`; None says that it is the last."""

    events: tuple[Act, ...]
    next_cursor: int | None = None
    archived: tuple[Archive, ...] = ()
    document: Document


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorityOverview:
    """An environment as operators see it: what is declared, what was counted, and which kill switches are on."""

    mode: str
    runtime_profile: str | None
    authority_epoch: int
    reset_generation: int
    stops: tuple[Document, ...]
    declared: Document
    budgets: Document
    wallets: Document
    document: Document


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """What a file of declarations changed, each as `action`, `kind`, `name`, `from` and `to`; or would change, in a dry run."""

    changes: tuple[Document, ...]
    dry_run: bool = False
    receipt_id: str | None = None
    warnings: tuple[str, ...] = ()
    replayed: bool = False
    document: Document


def read(kind: type[Answer], document: Any) -> Answer:
    """An answer as a value; `UnexpectedAnswer` where a part that we rely on is missing or is something else.

    What we do not know is let through: a newer server may say more.
    """
    if not isinstance(document, dict):
        raise UnexpectedAnswer(f"The server answered with {type(document).__name__}; an object was expected.")
    try:
        answer = _adapter(kind).validate_python({**document, "document": document})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = "/".join(str(part) for part in first["loc"])
        raise UnexpectedAnswer(
            f"The server's answer is not the {kind.__name__.lower()} that was asked for: {first['msg']} at {place!r}."
        ) from None
    return answer


def _adapter(kind: type[Answer]) -> TypeAdapter[Answer]:
    # Building one takes a millisecond, so each is built once, when it is first needed.
    if kind not in _adapters:
        _adapters[kind] = TypeAdapter(kind)
    return _adapters[kind]
