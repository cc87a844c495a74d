"""What a person reviewed before a change, and the request that is made of it. What is not said is read beforehand."""

import shlex
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from horarium.errors import HorariumError
from starter.cli.place import Document, Place, Where

Send = Callable[[Mapping[str, Any], str], Awaitable[Document]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """What a person looked at. None stands for whatever is there now, and for a key that is made.

    `revision` and `digest` name the exact version, `generation` the activation; `environment_epoch` and `reset_generation`
    are the environment's. `key` is the idempotency key.
    """

    revision: int | None = None
    digest: str | None = None
    generation: int | None = None
    environment_epoch: int | None = None
    reset_generation: int | None = None
    key: str | None = None


class Uncertain(HorariumError):
    """A change was sent, and whether it was carried out is not known. The text says how to find out, and how to repeat it."""

    code = "outcome_unknown"

    def __init__(self, sentence: str, *, next_step: str, key: str) -> None:
        self.sentence = sentence
        self.next_step = next_step
        self.key = key
        super().__init__(f"{sentence} [{self.code}] {next_step}")


async def publication(
    place: Place, review: Review, *, schedule_id: str, expected_revision: int, configuration: Any
) -> Document:
    """The request that publishes a configuration."""
    return {
        "schedule_id": schedule_id,
        "expected_revision": expected_revision,
        **await _environment(place, review),
        "configuration": configuration,
    }


async def change(place: Place, review: Review, schedule_id: str, *, of_activation: bool) -> Document:
    """The request that changes an activation: of the version that is enabled or paused, else of the head.

    Without `of_activation` it is of the head in any case, which is what enabling means where nothing is said.
    """
    record = await place.record(schedule_id, revision=review.revision)
    activation = record["activation"]
    version = record["reference"]
    if of_activation and review.revision is None and activation is not None:
        version = activation["version"]
    if review.digest is not None:
        version = {**version, "digest": review.digest}
    present = 0 if activation is None else activation["generation"]
    return {
        "version": version,
        "expected_generation": present if review.generation is None else review.generation,
        **await _environment(place, review),
    }


async def send(what: str, call: Send, request: Mapping[str, Any], review: Review, where: Where) -> Document:
    """Send a request about a schedule once, under the key of the review or a new one.

    Raises `Uncertain` where its answer was lost; `what` begins the command that repeats it.
    """
    look, again = f"get {_schedule(request)}", f"{what}{_options(request)}"
    return await send_once(call, request, review, where, look=look, again=again)


async def send_once(
    call: Send, request: Mapping[str, Any], review: Review, where: Where, *, look: str, again: str
) -> Document:
    """Send a request once, under the key of the review or a new one.

    Raises `Uncertain` where its answer was lost: `look` is the command that shows what is there now, `again` the one that
    repeats this.
    """
    from horarium.client.problems import OutcomeUnknown  # noqa: PLC0415 - httpx, which no command on a folder needs

    # An empty key is a mistake, such as a variable that is not set, and no wish for another one.
    key = str(uuid.uuid4()) if review.key is None else review.key
    try:
        return await call(request, key)
    except OutcomeUnknown as lost:
        repeat = f"horarium {again} --key {shlex.quote(key)}{where.options}"
        raise Uncertain(
            lost.sentence,
            next_step=f"Look first: `horarium {look}{where.options}`. Then, with the same account and "
            f"environment, repeat exactly this and nothing newer: `{repeat}`",
            key=key,
        ) from lost


async def _environment(place: Place, review: Review) -> Document:
    epoch, reset = review.environment_epoch, review.reset_generation
    if epoch is None or reset is None:
        found = await place.environment()
        epoch = found["authority_epoch"] if epoch is None else epoch
        reset = found["reset_generation"] if reset is None else reset
    return {"expected_environment_epoch": epoch, "expected_reset_generation": reset}


def _schedule(request: Mapping[str, Any]) -> str:
    return str(request.get("schedule_id") or request["version"]["schedule_id"])


def _options(request: Mapping[str, Any]) -> str:
    said: dict[str, Any] = {}
    if "version" in request:
        said |= {"revision": request["version"]["revision"], "digest": request["version"]["digest"]}
        said |= {"generation": request["expected_generation"]}
        said |= {"overlap": request["overlap"]} if "overlap" in request else {}
    else:
        said |= {"schedule": request["schedule_id"], "expected-revision": request["expected_revision"]}
    said |= {"environment-epoch": request["expected_environment_epoch"]}
    said |= {"reset-generation": request["expected_reset_generation"]}
    return "".join(f" --{name} {shlex.quote(str(value))}" for name, value in said.items())
