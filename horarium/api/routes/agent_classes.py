"""Agent classes and their profiles (seed 004): what can be scheduled, its settings, its thread, and its start events.

The environment stands in the query, and so may the organization; left out, it is that of the token.
"""

from collections.abc import Callable
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import JSONResponse
from sqlalchemy import Connection

from horarium.api import profile_examples as examples
from horarium.api import profile_models as models
from horarium.api.bodies import idempotency_key, read_document
from horarium.api.examples import RECEIPT, RUN
from horarium.api.openapi import SEEN, operation
from horarium.api.problems import Rejected
from horarium.api.profile_queries import ClassesQuery, ProfilesQuery, ThreadQuery
from horarium.api.queries import InEnvironment
from horarium.api.service import AuthorizedByQuery, Call, OperatingByQuery
from horarium.authority.asking import Content, asked_outside
from horarium.control import operations, profiles
from horarium.control.principals import require_human
from horarium.control.receipts import Receipt
from horarium.errors import InvalidSchedule
from horarium.schedule.profiles import AGENT_ID

router = APIRouter(prefix="/v1/agent-classes", tags=["Cron profiles"])

AgentClass = Annotated[str, Path(description="The agent class.", examples=[examples.AGENT_CLASS])]
AgentId = Annotated[str, Path(description="The profile of the class.", examples=[examples.AGENT_ID])]
NewAgentId = Annotated[
    str,
    Path(
        description="The profile of the class. Its name for good.",
        examples=[examples.AGENT_ID],
        pattern=f"^{AGENT_ID.pattern}$",
    ),
]
StartEvent = Annotated[str, Path(description="A start event that the class declares.", examples=["CronStartEvent"])]
Here = Annotated[InEnvironment, Query()]
_CHANGES = (400, *SEEN, 409)
_PROFILE = "/{agent_class}/profiles/{agent_id}"


@router.get("", **operation(models.AgentClasses, examples.CLASSES))
async def list_agent_classes(call: AuthorizedByQuery, query: Annotated[ClassesQuery, Query()]) -> JSONResponse:
    """List the agent classes that reported themselves, a page at a time, and what each can do.

    Both capabilities follow from the start events that a class handles, and are declared nowhere else. A class that handles
    no user message is no conversational one.
    """
    found = await call.service.read(
        profiles.classes,
        call.principal,
        call.scope,
        is_conversational=query.is_conversational,
        is_schedulable=query.is_schedulable,
        after=query.after,
        limit=query.limit,
        now=call.service.now(),
        required_scope=call.service.required_scope,
    )
    return JSONResponse(found)


@router.get("/{agent_class}", **operation(models.AgentClass, examples.CLASS))
async def get_agent_class(call: AuthorizedByQuery, agent_class: AgentClass, _query: Here) -> JSONResponse:
    """Read one agent class, with the form that its profiles are filled in with and the schema of what is submitted."""
    found = await call.service.read(
        profiles.class_of,
        call.principal,
        call.scope,
        agent_class,
        now=call.service.now(),
        required_scope=call.service.required_scope,
    )
    return JSONResponse(found)


@router.get("/{agent_class}/profiles", **operation(models.Profiles, examples.PROFILES))
async def list_profiles(
    call: AuthorizedByQuery, agent_class: AgentClass, query: Annotated[ProfilesQuery, Query()]
) -> JSONResponse:
    """List the profiles of a class by their ids, a page at a time. One whose stored row is malformed says so in `fault`."""
    found = await call.service.read(
        profiles.directory,
        call.principal,
        call.scope,
        agent_class,
        after=query.after,
        limit=query.limit,
        now=call.service.now(),
        required_scope=call.service.required_scope,
    )
    return JSONResponse(found)


@router.get(_PROFILE, **operation(models.Profile, examples.PROFILE))
async def get_profile(
    call: AuthorizedByQuery, agent_class: AgentClass, agent_id: AgentId, _query: Here
) -> JSONResponse:
    """Read a profile, how its schedule stands, and when it is due next."""
    found = await call.service.read(
        profiles.show,
        call.principal,
        call.scope,
        agent_class,
        agent_id,
        now=call.service.now(),
        required_scope=call.service.required_scope,
    )
    return JSONResponse(found)


@router.put(
    _PROFILE,
    **operation(
        models.ProfileReceipt,
        examples.receipt("profile_save", enabled=True, ended_generation=None),
        why="The profile is stored. The receipt proves this operation; it is not the present state.",
        refuses=_CHANGES,
        body=models.ProfileSubmission,
        body_example=examples.SUBMISSION,
        keyed=True,
    ),
)
async def save_profile(
    call: AuthorizedByQuery, agent_class: AgentClass, agent_id: NewAgentId, request: Request, _query: Here
) -> JSONResponse:
    """Save a profile: with a cron it fires from now on, without one it does not; a human session only.

    What is wrong with the submission is refused with 400, each fault at its place. What speaks against the schedule is told
    all at once: more runs than the deployment allows (`ceiling_exceeded`) among it. Nothing of the past fires. Runs by the
    calendar have no user, and share the thread of their profile.
    """
    require_human(call.principal)
    key, service = idempotency_key(request), call.service
    document = await read_document(request, service.limits)

    def save(connection: Connection, /, **known: Content) -> Receipt:
        return profiles.save(
            connection,
            call.principal,
            call.scope,
            agent_class,
            agent_id,
            document,
            key,
            now=service.now(),
            required_scope=service.required_scope,
            ceilings=service.ceilings,
            **known,
        )

    save.__name__ = "save_profile"
    try:
        receipt = await asked_outside(service.authority, lambda content: service.write(save, content=content))
    except InvalidSchedule as error:
        raise _invalid(error) from error
    return _answer(call, receipt)


@router.delete(
    _PROFILE,
    **operation(
        models.ProfileReceipt,
        examples.receipt("profile_delete", enabled=False, ended_generation=1, generation=2),
        why="The profile is gone. The receipt proves this operation; it is not the present state.",
        refuses=_CHANGES,
        keyed=True,
    ),
)
async def delete_profile(
    call: AuthorizedByQuery, agent_class: AgentClass, agent_id: AgentId, request: Request, _query: Here
) -> JSONResponse:
    """Delete a profile; a human session only. Its schedule is paused.

    The ledger stays, and so do the thread and its events, which nothing prunes any more. Saving a profile of this id again
    takes all of them up again.
    """
    return await _stopped(profiles.delete, call, agent_class, agent_id, request)


@router.delete(
    f"{_PROFILE}/cron",
    **operation(
        models.ProfileReceipt,
        examples.receipt("profile_clear", enabled=False, ended_generation=1, generation=2),
        why="The profile has no cron. The receipt proves this operation; it is not the present state.",
        refuses=_CHANGES,
        keyed=True,
    ),
)
async def clear_profile(
    call: AuthorizedByQuery, agent_class: AgentClass, agent_id: AgentId, request: Request, _query: Here
) -> JSONResponse:
    """Take the cron out of a profile, so that it fires no more; a human session only. Its schedule is paused.

    The rest of its config stays as it is and is not judged again. One that cannot be read is left alone, and `warnings` says
    so.
    """
    return await _stopped(profiles.clear, call, agent_class, agent_id, request)


@router.get(f"{_PROFILE}/thread", **operation(models.Thread, examples.THREAD))
async def get_thread(
    call: OperatingByQuery, agent_class: AgentClass, agent_id: AgentId, query: Annotated[ThreadQuery, Query()]
) -> JSONResponse:
    """Read the thread of a profile: what its scheduled runs did, oldest first. For operators; it has no members.

    It is there from the first run on.
    """
    found = await call.service.read(
        profiles.thread,
        call.principal,
        call.scope,
        agent_class,
        agent_id,
        after=query.after,
        limit=query.limit,
        required_scope=call.service.operator_scope,
    )
    return JSONResponse(found)


@router.post(
    f"{_PROFILE}/{{start_event}}",
    **operation(
        models.ProfileReceipt,
        examples.receipt(
            "profile_trigger",
            run_id=RUN,
            trigger=f"manual:{RECEIPT}",
            nominal_time="2027-01-31T09:00:00Z",
            start_event="CronStartEvent",
        ),
        status=201,
        why="The run is staged. Whether it may start is decided by admission.",
        refuses=_CHANGES,
        body=models.EventSubmission,
        body_example=examples.EVENT,
        body_required=False,
        keyed=True,
    ),
)
async def trigger_profile(
    call: AuthorizedByQuery,
    agent_class: AgentClass,
    agent_id: AgentId,
    start_event: StartEvent,
    request: Request,
    _query: Here,
) -> JSONResponse:
    """Start a run of a profile now by any start event that its class declares; a human session only.

    Unlike a run by the calendar it has a user, whoever asks, and is admitted on what that person may do. `CronStartEvent`
    starts what the calendar would start.
    """
    require_human(call.principal)
    key, service = idempotency_key(request), call.service
    document = await read_document(request, service.limits) if _has_body(request) else {}
    try:
        receipt = await service.write(
            profiles.trigger,
            call.principal,
            call.scope,
            agent_class,
            agent_id,
            start_event,
            document,
            key,
            now=service.now(),
            required_scope=service.required_scope,
        )
    except InvalidSchedule as error:
        raise _invalid(error) from error
    return _answer(call, receipt, status=201)


def _has_body(request: Request) -> bool:
    return "transfer-encoding" in request.headers or request.headers.get("content-length", "0") != "0"


def _invalid(error: InvalidSchedule) -> Rejected:
    """The refusal of a submission: 400, as the contract has it, with every fault at its place."""
    count = len(error.faults)
    return Rejected(
        400,
        "invalid_profile",
        error.faults[0].sentence if count == 1 else f"There are {count} faults. The first: {error.faults[0].sentence}",
        next_step="Correct what the errors name, then send it again. Nothing was stored, and the key is not used up.",
        faults=error.faults,
    )


async def _stopped(
    change: Callable[..., Receipt], call: Call, agent_class: str, agent_id: str, request: Request
) -> JSONResponse:
    require_human(call.principal)
    key, service = idempotency_key(request), call.service
    receipt = await service.write(
        change,
        call.principal,
        call.scope,
        agent_class,
        agent_id,
        key,
        now=service.now(),
        required_scope=service.required_scope,
    )
    return _answer(call, receipt)


def _answer(call: Call, receipt: Receipt, *, status: int = 200) -> JSONResponse:
    """The receipt; and what Temporal is told meanwhile, after the commit."""
    run = operations.run_to_start(call.scope, receipt)
    if run is not None:
        call.service.afterwards("start_run", lambda hands: hands.start_run(run))
    ended = operations.activation_to_nudge(call.scope, receipt)
    if ended is not None:
        call.service.afterwards("nudge", lambda hands: hands.nudge(ended, "pause"))
    return JSONResponse(receipt.document, status_code=status)
