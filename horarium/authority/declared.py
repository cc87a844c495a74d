"""What operators declare about an environment: agents, inputs, grants, money, approvals and the ways to agents.

Each model is one kind of declaration as it stands in a file, in the catalog and in the facts that admission looks at. They are
read strictly: no text for a number, no number for a boolean, no field that is not known. Money is in whole minor units of one
currency, never in fractions.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, HttpUrl, model_validator
from pydantic_core import PydanticCustomError

from horarium.schedule.configuration import MAX_GRANTS, MAX_REFERENCE_LENGTH

MAX_AMOUNT: Final = 10**15
"""The largest amount of money: ten thousand billion units of a currency with cents, far inside what a column holds."""
MAX_RUN_SECONDS: Final = 7 * 86_400
MAX_READERS: Final = 1_000
EVERYBODY: Final = "*"
"""As a reader of an input: every member of the organization."""
_REFERENCE = r"^[A-Za-z0-9._@:-][A-Za-z0-9._@:/-]*$"
_PERSON_CHARACTERS: Final = 200


def _instant(value: object) -> object:
    """RFC 3339 in UTC, as text or as YAML reads it."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            value = None
    if not isinstance(value, datetime) or value.tzinfo is None or value.utcoffset() != UTC.utcoffset(None):
        raise PydanticCustomError("not_an_instant", "This is an instant in UTC such as 2027-01-31T12:00:00Z.")
    return value.astimezone(UTC)


def _tuple(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def _unique(values: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(values)) != len(values):
        raise PydanticCustomError("duplicate", "The same name stands here twice. Keep one.")
    return values


def one_line(text: str) -> str:
    """Let a text through that can stand in a record as it is, for validators of pydantic."""
    if not text.isprintable() or text != text.strip():
        raise PydanticCustomError(
            "not_printable", "This is one line of printable characters, without spaces at its ends."
        )
    return text


At = Annotated[datetime, BeforeValidator(_instant)]
Reference = Annotated[str, Field(min_length=1, max_length=MAX_REFERENCE_LENGTH, pattern=_REFERENCE)]
PersonName = Annotated[str, Field(min_length=1, max_length=_PERSON_CHARACTERS), AfterValidator(one_line)]
Amount = Annotated[int, Field(ge=0, le=MAX_AMOUNT)]
Currency = Annotated[str, Field(pattern=r"^[A-Z]{3}$")]
UsageClassName = Literal["test_simulation", "test_compute", "live"]


class Declared(BaseModel):
    """One declaration."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Person(Declared):
    """Somebody of the organization. Who is not declared, or has left, enables nothing and nothing runs on their word."""

    left: bool = False


class Agent(Declared):
    """One exact agent version, and what a run of it may cost and take.

    `max_cost` is reserved at every admission, in minor units. `gateway` says how a run reaches it: `temporal`, by a runner
    that registers and renews a lease; or `http`, by a POST to a registered destination, and then `lifecycle` and
    `lease_until` say whether it takes runs.
    """

    max_cost: Amount
    max_run_seconds: Annotated[int, Field(ge=1, le=MAX_RUN_SECONDS)]
    schedulable: bool = True
    withdrawn: bool = False
    gateway: Literal["temporal", "http"] = "temporal"
    destination: Reference | None = None
    idempotent: bool = False
    lifecycle: Literal["ready", "running", "starting", "paused", "stopped", "failed"] = "ready"
    lease_until: At | None = None

    @model_validator(mode="after")
    def _has_its_way(self) -> "Agent":
        if (self.gateway == "http") != (self.destination is not None):
            raise PydanticCustomError(
                "destination_and_gateway", "An agent behind the gateway http names a destination, and no other does."
            )
        if self.gateway == "temporal" and (self.lease_until is not None or self.lifecycle != "ready"):
            raise PydanticCustomError(
                "runner_reports",
                "The runner of an agent behind the gateway temporal reports its lifecycle and its lease.",
            )
        return self


class Consent(Declared):
    """The consent that an input may be used, by whom it was given and until when."""

    by: PersonName
    expires_at: At | None = None
    withdrawn: bool = False


class Input(Declared):
    """Something that runs read: who may, until when, and on whose consent. `readers` holds names, or `*` for every member."""

    readers: Annotated[
        tuple[PersonName, ...], BeforeValidator(_tuple), AfterValidator(_unique), Field(max_length=MAX_READERS)
    ]
    expires_at: At | None = None
    consent: Consent | None = None

    def is_readable_by(self, person: str) -> bool:
        """Whether a person may read it; membership is another question."""
        return person in self.readers or EVERYBODY in self.readers


class Output(Declared):
    """A place that runs may write to."""

    writable: bool = True


class Grant(Declared):
    """A workload grant. It is held by the agents that it names, or by every agent of the environment."""

    agents: (
        Annotated[tuple[Reference, ...], BeforeValidator(_tuple), AfterValidator(_unique), Field(max_length=MAX_GRANTS)]
        | None
    ) = None
    expires_at: At | None = None
    revoked: bool = False


class Budget(Declared):
    """What may be spent, by which usage classes, and out of what.

    x402 and paying per run can be declared, so that they are refused by name.
    """

    usage_classes: Annotated[tuple[UsageClassName, ...], BeforeValidator(_tuple), AfterValidator(_unique)]
    pays_by: Literal["credits", "wallet", "x402"]
    limit: Amount
    currency: Currency
    per_run: bool = False
    wallet: Reference | None = None

    @model_validator(mode="after")
    def _has_its_wallet(self) -> "Budget":
        if (self.pays_by == "wallet") != (self.wallet is not None):
            raise PydanticCustomError("wallet_and_payment", "A budget that pays by wallet names it, and no other does.")
        return self


class Wallet(Declared):
    """What a budget is paid from. Nothing is admitted while it owes its unpaid limit, or a collection has failed."""

    unpaid_limit: Amount
    currency: Currency
    collection_failed: bool = False


class Approval(Declared):
    """Somebody approved one exact version, which the declaration's name is the digest of, for live runs until some time."""

    by: PersonName
    expires_at: At


class Destination(Declared):
    """Where runs of agents behind the gateway `http` are posted to. Only operators register one.

    `secret` names where the shared secret is found when it is needed: an environment variable of the run workers and the API.
    The secret itself is kept nowhere. `private` allows an address of this network. `outcome` is how an end is learnt.
    """

    url: Annotated[
        HttpUrl,
        BeforeValidator(lambda value: HttpUrl(value) if isinstance(value, str) else value),
        Field(max_length=2_000),
    ]
    secret: Annotated[str, Field(pattern=r"^HORARIUM_SECRET_[A-Z0-9_]{1,80}$")]
    private: bool = False
    outcome: Literal["callback", "poll"] = "callback"

    @model_validator(mode="after")
    def _is_safe(self) -> "Destination":
        if self.url.scheme != "https" and not self.private:
            raise PydanticCustomError("not_https", "A destination that is not private is reached over https://.")
        if self.url.username or self.url.password or self.url.query or self.url.fragment:
            raise PydanticCustomError(
                "not_plain", "A destination is an address without user, password, query or fragment."
            )
        return self


class BoundRun(Declared):
    """The run request that a binding supplies: as `run` of a configuration, and checked like it."""

    agent_version: Reference
    input: Reference
    output_target: Reference
    grants: Annotated[
        tuple[Reference, ...], BeforeValidator(_tuple), AfterValidator(_unique), Field(max_length=MAX_GRANTS)
    ]
    budget_id: Reference | None
    usage_class: UsageClassName


class Binding(Declared):
    """What stands behind the names of a contract that knows neither input nor budget (DESIGN.md, section 8).

    For scheduler v0 its name is `v0:{workspace_id}/{agent_id}`, for cron profiles `cron:{agent_class}/{agent_id}`.
    """

    run: BoundRun


KINDS: Final[Mapping[str, type[Declared]]] = {
    "person": Person,
    "agent": Agent,
    "input": Input,
    "output": Output,
    "grant": Grant,
    "budget": Budget,
    "wallet": Wallet,
    "approval": Approval,
    "destination": Destination,
    "binding": Binding,
}
"""Every kind by its name in the catalog."""


def stored(declared: Declared) -> dict[str, Any]:
    """A declaration as JSON values, without what is not said."""
    return declared.model_dump(mode="json", exclude_defaults=True)
