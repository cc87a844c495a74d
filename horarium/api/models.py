"""The documents of the API as models. They describe: what is sent comes from the control plane as it is."""

from typing import Annotated, Any, Final, Literal
from uuid import UUID

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from horarium.schedule.ledger import Disposition, Reason

RuntimeState = Literal["unconfigured", "pending", "active", "paused", "review", "stopping", "error"]
Digest = Annotated[
    str, Field(pattern=r"^sha256:[0-9a-f]{64}$", description="SHA-256 of the canonical JSON (RFC 8785).")
]


class Answer(BaseModel):
    """The base of what is answered: nothing is in a document that its model does not name."""

    model_config = ConfigDict(extra="forbid")


class Reference(Answer):
    """One exact version, as a person reviewed it."""

    schedule_id: UUID
    revision: int = Field(ge=1)
    digest: Digest


class LastOutcome(Answer):
    """What became of what a schedule answered for last, in brief. Its occurrences tell the rest."""

    disposition: str
    reason: str | None
    nominal_time: AwareDatetime = Field(description="Of a span, its last instant.")


class Environment(Answer):
    """An environment. Read it before a change: its two numbers are preconditions of every mutation."""

    org_id: str
    environment_id: str
    mode: str = Field(description="`simulation`, `test` or `live`: which usage classes may run.")
    authority_epoch: int = Field(description="Send it as expected_environment_epoch.")
    reset_generation: int = Field(description="Send it as expected_reset_generation.")
    runtime_profile: str | None = Field(description="null where nothing can be enabled.")
    execution_ready: bool = Field(
        description="Whether both runtime workers are there. This is no proof that an installed worker has ever completed a "
        "scheduled run."
    )


class Activation(Answer):
    """Which version is enabled or paused. It may be older than the head: look here before pausing."""

    version: Reference
    generation: int = Field(ge=1, description="Send it as expected_generation.")
    enabled: bool = Field(description="Whether this version fires, unless `runtime` says why it does not.")
    changed_at: AwareDatetime
    changed_by: str


class Runtime(Answer):
    """What the controller observed last."""

    state: RuntimeState = Field(
        description="`unconfigured`: the environment's mode has no runtime profile, whatever its activation says. `pending`: "
        "the controller has not established active execution of this generation yet. `active`: the controller "
        "reports it active; each occurrence still needs authority of its own when it is due. `paused`: it is "
        "stopped, or was never activated. `review`: an enabled schedule stopped or needs review; it does not "
        "resume by itself, and a new activation generation is required. `stopping`: pause or retirement is "
        "recorded, and cleaning up remains. `error`: the controller could not establish what was asked for."
    )
    generation: int = Field(ge=0, description="The activation's generation, or 0 without one.")
    observed_at: AwareDatetime | None = Field(
        default=None,
        description="The controller's last check, a failed one too. It is not proof of a successful execution.",
    )
    reason: str | None = Field(default=None, description="Why it is in `review` or in `error`, as a sentence.")


class _Listed(Answer):
    schedule_id: UUID
    resource_id: UUID = Field(description="The id of this exact version.")
    reference: Reference = Field(description="Send it as `version` to change the activation of exactly this version.")
    head: Reference = Field(description="The newest version. It is not necessarily the one that is enabled.")
    retired: bool = Field(description="Whether its identity has ended, which is final.")
    published_at: AwareDatetime
    published_by: str
    activation: Activation | None = Field(
        description="null before the first; expected_generation is 0 then, else its `generation`."
    )
    runtime: Runtime
    execution_ready: bool = Field(
        description="Whether both runtime workers are there. It does not establish that this schedule is active."
    )
    problem: str | None = Field(
        default=None,
        description="Why this release cannot use a version that is shown or enabled; there only where it cannot.",
    )


class Record(_Listed):
    """A schedule at one version. No preview of occurrences is implied by these fields."""

    configuration: dict[str, Any] = Field(description="As it was submitted.")


class DirectoryEntry(_Listed):
    """A schedule at its head, with its name in place of the configuration."""

    name: str
    next_due: AwareDatetime | None = Field(
        description="The next instant of what is enabled; null where nothing is, or nothing is due any more. Whether it will "
        "run is decided then."
    )


class Directory(Answer):
    """A page of schedules, ordered by UUID."""

    schedules: list[DirectoryEntry]
    next_cursor: UUID | None = Field(description="Send it as `after` for the next page; null on the last.")


class Receipt(BaseModel):
    """The proof of one accepted operation.

    It confirms that this operation was completed. It is not the present state: the activation may have changed since.
    """

    model_config = ConfigDict(extra="allow")

    receipt_id: UUID
    operation: str = Field(
        description="`publish`, `enable`, `pause`, `retire`, `trigger` or `cancel_run`; of scheduler v0 `v0_create`, "
        "`v0_update`, `v0_pause`, `v0_resume` or `v0_disable`; or an act of an operator, whose receipt has parts of its own."
    )
    schedule_id: UUID | None = Field(default=None, description="Not of most acts of operators.")
    resource_id: UUID | None = Field(
        default=None, description="The id of the version that it was about, to be read exactly. Not of `cancel_run`."
    )
    reference: Reference | None = Field(default=None, description="The version that it was about. Not of `cancel_run`.")
    generation: int | None = Field(
        default=None, description="The activation that it made, or that a triggered run is of. Not of `publish`."
    )
    enabled: bool | None = Field(
        default=None,
        description="What an `enable`, a `pause` or a `retire` made of it; of scheduler v0, whether the schedule fires now. A "
        "one-shot whose instant has passed does not.",
    )
    ended_generation: int | None = Field(
        default=None,
        description="The activation before the one that was made; null where there was none, or none was made.",
    )
    run_id: UUID | None = Field(default=None, description="The run that was triggered, or asked to end.")
    trigger: str | None = Field(
        default=None, description="Of a triggered run: how the ledger tells it from a due instant."
    )
    nominal_time: AwareDatetime | None = Field(
        default=None, description="Of a triggered run: the second that it is for."
    )
    workflow_id: str | None = Field(default=None, description="The run's workflow at Temporal.")
    warnings: list[str] = Field(description="What a person should know, as sentences. They refused nothing.")
    environment_epoch: int = Field(description="The environment's authority epoch at that moment.")
    reset_generation: int = Field(description="The environment's reset generation at that moment.")
    created_at: AwareDatetime
    replayed: bool = Field(description="True where the operation was carried out by an earlier request with this key.")


class Occurrence(Answer):
    """A line of the ledger: a due instant, a span of instants with one fate, or a manual run."""

    first_at: AwareDatetime = Field(description="The nominal time, or the first one of a span.")
    last_at: AwareDatetime = Field(description="The last nominal time; the first one again where there is one only.")
    count: int = Field(ge=1, description="How many due instants this line stands for.")
    disposition: Disposition = Field(description="Where it stands.")
    reason: Reason | None = Field(description="Why it stands so, for programs; null where nothing needs a reason.")
    sentence: str | None = Field(description="The reason for people.")
    generation: int = Field(description="The activation that answers for it.")
    trigger: str = Field(description="`schedule`, or `manual:` and the receipt of whoever asked for it.")
    triggered_by: str | None = Field(default=None, description="Of a manual run: who asked for it.")
    run_id: UUID | None = Field(description="null where no run was meant to begin.")
    workflow_id: str | None = Field(description="The run's workflow at Temporal.")
    agent_version: str | None = Field(description="The agent that it was handed to, or was meant for.")
    begun_at: AwareDatetime | None = Field(description="When the agent began.")
    lateness_ms: int | None = Field(description="Milliseconds from the nominal time until the agent began.")
    ended_at: AwareDatetime | None = Field(description="When the run ended, by whatever way.")
    summary: str | None = Field(description="What the agent says of its work.")
    outputs: list[str] | None = Field(description="What the agent left, by name.")
    cost: int | None = Field(
        description="What the agent says that it cost, in the smallest unit of the budget's currency."
    )
    evidence: dict[str, Any] | None = Field(description="What admission looked at when it decided.")


class Run(Occurrence):
    """A line of the ledger with its schedule."""

    schedule_id: UUID


class OutcomeTaken(Answer):
    """How a run ended, as it was reported."""

    run_id: UUID
    disposition: Disposition
    reason: Reason | None
    replayed: bool = Field(description="Whether the same outcome had been reported before.")


class Archive(Answer):
    """An archive that something was removed from the record after. Whoever runs the installation keeps it."""

    archive_id: UUID
    before: AwareDatetime = Field(description="How old what it holds was at the least.")
    archived_at: AwareDatetime


_ARCHIVED: Final = (
    "Archives that may hold what would stand before the oldest line asked for, the newest first, at most ten; told on the page "
    "that has that end, and else empty."
)


class Occurrences(Answer):
    """A page of one schedule's ledger, by nominal time."""

    occurrences: list[Occurrence]
    next_cursor: str | None = Field(description="Send it as `after` for the next page; null on the last.")
    archived: list[Archive] = Field(description=_ARCHIVED)


class EnvironmentOccurrences(Answer):
    """A page of an environment's ledger, by nominal time."""

    occurrences: list[Run]
    next_cursor: str | None = Field(description="Send it as `after` for the next page; null on the last.")
    archived: list[Archive] = Field(description=_ARCHIVED)


class Runs(Answer):
    """A page of an environment's runs, by nominal time."""

    runs: list[Run]
    next_cursor: str | None = Field(description="Send it as `after` for the next page; null on the last.")
    archived: list[Archive] = Field(description=_ARCHIVED)


class Event(Answer):
    """One accepted change or transition: who, what, and from which state to which."""

    id: int
    at: AwareDatetime
    kind: str
    actor: str = Field(description="The principal, or the part of Horarium, that did it.")
    generation: int | None = Field(description="The activation that it led to.")
    revision: int | None = Field(description="The version that it is about.")
    details: dict[str, Any] = Field(
        description="`from` and `to` with reference, generation and state; `because`; and `receipt_id` where a request with a "
        "key did it."
    )


class Events(Answer):
    """A page of a schedule's audit events, oldest first."""

    events: list[Event]
    next_cursor: int | None = Field(description="Send it as `after` for the next page; null on the last.")
    archived: list[Archive] = Field(description=_ARCHIVED)


class Stop(Answer):
    """A kill switch that is on."""

    everywhere: bool = Field(description="Whether it is that of the whole organization.")
    since: AwareDatetime
    by: str
    because: str


class Declaration(Answer):
    """What operators declared under one name."""

    version: int = Field(description="The number of the act that made it so.")
    facts: dict[str, Any] = Field(description="As in a file; what is left out is as if it were left out there.")


class BudgetCount(Answer):
    """What was counted for a budget, in minor units. Without a declaration there is no currency, limit and room."""

    currency: str | None
    limit: int | None
    reserved: int
    spent: int
    room: int | None


class WalletCount(Answer):
    """What was counted for a wallet, in minor units."""

    currency: str | None
    unpaid_limit: int | None
    owed: int


class Act(Answer):
    """One thing that an operator did."""

    id: int
    at: AwareDatetime
    kind: str = Field(
        description="`applied`, `stopped`, `lifted`, `epoch_advanced`, `environment_reset`, `collected` or `approved`."
    )
    actor: str
    everywhere: bool = Field(description="Whether it was about the whole organization.")
    details: dict[str, Any] = Field(description="What changed, from what to what, and the receipt.")


class Acts(Answer):
    """A page of what operators did, oldest first."""

    events: list[Act]
    next_cursor: int | None = Field(description="Send it as `after` for the next page; null on the last.")
    archived: list[Archive] = Field(description=_ARCHIVED)


class AuthorityOverview(Answer):
    """An environment as operators see it."""

    org_id: str
    environment_id: str
    mode: str
    runtime_profile: str | None
    development: bool
    live_needs_approval: bool
    authority_epoch: int
    reset_generation: int
    stops: list[Stop] = Field(description="The kill switches that are on, the organization's first.")
    declared: dict[str, dict[str, Declaration]] = Field(description="Every kind as a file calls it, each by name.")
    budgets: dict[str, BudgetCount] = Field(description="Also those that are declared no more.")
    wallets: dict[str, WalletCount] = Field(description="Likewise.")
    acts: list[Act] = Field(description="The last ten, newest first.")


class Change(Answer):
    """One difference that a file makes."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    action: Literal["created", "changed", "withdrawn"]
    kind: str = Field(description="`environment` for what the file says of the environment itself.")
    name: str
    from_: dict[str, Any] | None = Field(alias="from", description="null where there was nothing.")
    to: dict[str, Any] | None = Field(description="null where it is withdrawn.")


class AuthorityReceipt(BaseModel):
    """The proof of one act of an operator. It is not the present state."""

    model_config = ConfigDict(extra="allow")

    receipt_id: UUID
    operation: str = Field(description="`stop`, `lift`, `advance_epoch`, `reset`, `collect` or `approve`.")
    warnings: list[str]
    environment_epoch: int = Field(description="The environment's authority epoch after the act.")
    reset_generation: int = Field(description="The environment's reset generation after the act.")
    created_at: AwareDatetime
    replayed: bool = Field(description="True where it was carried out by an earlier request with this key.")


class Applied(BaseModel):
    """What a file changed; of a dry run, what it would change, and then there is no receipt."""

    model_config = ConfigDict(extra="allow")

    operation: Literal["apply"]
    changes: list[Change] = Field(description="None where everything was so already; then nothing is recorded.")
    warnings: list[str]
    dry_run: bool = Field(default=False)
    receipt_id: UUID | None = None
    replayed: bool = Field(default=False)


class Translation(Answer):
    """The canonical calendar of the same instants."""

    calendar: dict[str, Any] | None = Field(
        description="The document, or null where a calendar of the same fields selects others. Its `start_at` counts."
    )
    sentence: str = Field(
        description="That they are equal and from when on, or which change of the clock tells them apart."
    )


class Preview(Answer):
    """The instants that a document selects. Nothing was stored."""

    occurrences: list[AwareDatetime]
    count: int = Field(description="How many there are, also where the list was cut.")
    notes: list[str] = Field(description="The warnings, and what changes of the clock do, as sentences.")
    warnings: list[str] = Field(description="What is worth a second look, as sentences. They refuse nothing.")
    truncated: bool = Field(description="Whether there are more instants than were listed.")
    timezone: str = Field(description="The zone whose wall clock was followed.")
    tzdata: str = Field(description="The release of the zone data.")
    runs_per_30_days: int = Field(description="Instants in the 30 days from the start of the preview.")
    contract: Literal["schedules", "v0", "cron_profiles"] | None = Field(
        description="Whose document it is; null for a timing by itself."
    )
    translation: Translation


class Healthy(Answer):
    """The process serves."""

    status: Literal["ok"]


class Ready(Answer):
    """What this process can do now."""

    ready: bool
    execution_ready: bool = Field(description="Whether both runtime workers are there; publication does not need them.")


class Version(Answer):
    """Which release answers."""

    version: str
    tzdata: str


class ProblemError(Answer):
    """One thing that is wrong."""

    pointer: str = Field(
        description="The place as a JSON pointer: into the body, or `/query/…` and `/path/…` for a parameter."
    )
    code: str
    detail: str
    evidence: dict[str, Any] = Field(
        default={}, description="What admission looked at; there only where it objects to what shall be enabled."
    )


class Problem(Answer):
    """A refusal (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    code: str = Field(description="Stable, for programs.")
    next_step: str
    errors: list[ProblemError] = Field(description="All that was found wrong, at once.")
    request_id: str = Field(description="The same as in the header X-Request-Id and in the log.")
