"""The documents of notifications as models: endpoints, dead letters, and the receipts of what operators do with them."""

from typing import Any, Literal
from uuid import UUID

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from horarium.api.models import Answer

Told = Literal["review", "refused", "missed", "failed", "recovered", "overdue", "heartbeat"]


class Endpoint(Answer):
    """Where somebody wants to be told. No secret is shown, since none is stored."""

    name: str = Field(description="Of a heartbeat, `heartbeat:` and the id of its schedule.")
    url: str
    secret: str = Field(description="The name of the environment variable of the controller that holds the secret.")
    private: bool
    on: list[Told] = Field(
        description="What it is told of. `heartbeat` is each success of its schedule by the calendar."
    )
    schedule_id: UUID | None = Field(description="null where it is told of all schedules of the environment.")
    declared_at: AwareDatetime
    declared_by: str
    stopped_at: AwareDatetime | None = Field(
        description="Since when it is told nothing, because it said that it is gone."
    )
    stopped_because: str | None
    delivered_at: AwareDatetime | None = Field(description="When it last heard something.")
    waiting: int = Field(description="Messages that it has not heard yet.")
    dead: int = Field(description="Messages that were given up, and can be sent again.")
    last_error: str | None = Field(description="Why the newest of these was not heard.")
    silent_since: AwareDatetime | None = Field(
        description="Of a heartbeat: the first due instant since the last success, once a success is overdue."
    )


class Endpoints(Answer):
    """All endpoints of an environment, by name."""

    endpoints: list[Endpoint]


class Message(BaseModel):
    """What a receiver gets, as the Standard Webhooks specification has it. What there is none of is left out of `data`."""

    model_config = ConfigDict(extra="forbid")

    type: Told | Literal["test"]
    timestamp: AwareDatetime = Field(description="When it happened.")
    data: dict[str, Any]


class DeadLetter(Answer):
    """A message that was given up after a day, or because its endpoint is gone."""

    id: int = Field(description="Send it to `notifications/again`.")
    endpoint: str
    message_id: UUID = Field(description="Its `webhook-id`. A receiver that has seen it drops it.")
    message: Message
    attempts: int
    given_up_at: AwareDatetime
    last_status: int | None = Field(description="null where there was no answer.")
    last_error: str | None


class DeadLetters(Answer):
    """A page of dead letters, oldest first."""

    dead: list[DeadLetter]
    next_cursor: int | None = Field(description="Send it as `after` for the next page; null on the last.")


class NotificationReceipt(BaseModel):
    """The proof of what an operator did about notifications. It is not the present state, nor that anything was heard."""

    model_config = ConfigDict(extra="allow")

    receipt_id: UUID
    operation: Literal["notify_add", "notify_heartbeat", "notify_remove", "notify_test", "notify_again"]
    name: str = Field(description="The endpoint.")
    message_id: UUID | None = Field(default=None, description="Of what is sent: its `webhook-id`.")
    warnings: list[str]
    created_at: AwareDatetime
    replayed: bool = Field(description="True where it was carried out by an earlier request with this key.")
