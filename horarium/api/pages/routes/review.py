"""The review of a schedule, and what a person decides on it: enable, pause, retire. Each form does one thing, once.

A form carries what its reader was shown: the exact version, the generation, both numbers of the environment, and a key of its
own. Where any of it is not so any more, nothing changes and a page says what did meanwhile.
"""

from typing import Annotated, Any, Final

from fastapi import Query, Response
from sqlalchemy import Connection

from horarium.api import problems
from horarium.api.bodies import uuid_in_path, well_formed_key
from horarium.api.errands import tell_temporal
from horarium.api.pages.pictures import shown_days
from horarium.api.pages.refusals import in_words
from horarium.api.pages.routing import page_router
from horarium.api.pages.visits import Submission, Submitted, Visit, Visited
from horarium.api.problems import Rejected
from horarium.authority.asking import Content, asked_outside
from horarium.catalog.failures import OutcomeUnknown
from horarium.control import operations
from horarium.control.principals import require_human
from horarium.control.receipts import Receipt, find_receipt
from horarium.control.requests import MAX_NUMBER
from horarium.control.review import meanwhile, review
from horarium.errors import Forbidden, NotFound, Refused, Unavailable
from horarium.schedule.identity import schedule_key

router = page_router()

_FIELDS: Final = ("key", "revision", "digest", "generation", "environment_epoch", "reset_generation", "seen")
"""What every form of a review carries, beside the token of the session."""
_DONE: Final = {"enable": "Enabled", "pause": "Paused", "retire": "Retired"}


@router.get("/schedules/{schedule_id}/review")
async def show_review(
    visit: Visited, schedule_id: str, revision: Annotated[int | None, Query(ge=1, le=MAX_NUMBER)] = None
) -> Response:
    """Show what a version would do and what speaks against it; the head where no revision is named."""
    told = await _reviewed(visit, uuid_in_path(schedule_id, what="schedule"), revision=revision)
    return visit.render(
        "review.html",
        here="schedules",
        it=told,
        days=shown_days(told["days"]),
        keys={each: visit.new_key() for each in _DONE},
    )


@router.post("/schedules/{schedule_id}/review")
async def decide(sent: Submitted, schedule_id: str) -> Response:
    """Enable the version that was reviewed, or pause what is enabled."""
    act = sent.fields.get("act", "")
    if act not in {"enable", "pause"}:
        raise Rejected(400, "invalid_form", "The form does not say what to do.", next_step="Load the review again.")
    return await _carry_out(sent, uuid_in_path(schedule_id, what="schedule"), act)


@router.get("/schedules/{schedule_id}/retirement")
async def show_retirement(visit: Visited, schedule_id: str) -> Response:
    """Ask once more, since it is final."""
    told = await _reviewed(visit, uuid_in_path(schedule_id, what="schedule"), revision=None)
    return visit.render("retire.html", here="schedules", it=told, key=visit.new_key())


@router.post("/schedules/{schedule_id}/retirement")
async def retire(sent: Submitted, schedule_id: str) -> Response:
    """End a schedule for good."""
    return await _carry_out(sent, uuid_in_path(schedule_id, what="schedule"), "retire")


@router.get("/schedules/{schedule_id}/receipts/{key}")
async def show_receipt(visit: Visited, schedule_id: str, key: str) -> Response:
    """Show what a form did, by the receipt that it left."""
    found = uuid_in_path(schedule_id, what="schedule")
    receipt = await visit.ask(find_receipt, visit.scope, visit.principal, well_formed_key(key))
    document = receipt.document
    if document.get("schedule_id") != found or document["operation"] not in _DONE:
        raise NotFound("receipt_not_found", "No form of yours about this schedule has left a receipt under that key.")
    return visit.render("receipt.html", here="schedules", receipt=document, done=_DONE[document["operation"]])


async def _reviewed(visit: Visit, schedule_id: str, *, revision: int | None) -> dict[str, Any]:
    service = visit.service

    async def look(content: Content) -> dict[str, Any]:
        return await visit.ask(
            review,
            schedule_key(visit.scope, schedule_id),
            content,
            by=visit.principal.name,
            revision=revision,
            ceilings=service.ceilings,
            now=visit.now,
        )

    return await asked_outside(service.authority, look)


async def _carry_out(sent: Submission, schedule_id: str, act: str) -> Response:
    visit, key = sent.visit, well_formed_key(sent.fields.get("key", ""))
    require_human(visit.principal)
    try:
        receipt = await _perform(visit, schedule_id, act, _request(schedule_id, act, sent.fields), key)
    except (NotFound, Forbidden):
        raise
    except Refused as refused:
        return await _not_done(sent, schedule_id, act, refused)
    tell_temporal(visit.service, visit.scope, receipt)
    return visit.go("schedules", schedule_id, "receipts", key)


async def _perform(visit: Visit, schedule_id: str, act: str, request: dict[str, Any], key: str) -> Receipt:
    service = visit.service

    def perform(connection: Connection, /, **known: Any) -> Receipt:
        operation = operations.retire if act == "retire" else operations.set_activation
        receipt: Receipt = operation(
            connection,
            visit.principal,
            visit.scope,
            request,
            key,
            now=service.now(),
            schedule_id=schedule_id,
            required_scope=service.required_scope,
            **known,
        )
        return receipt

    perform.__name__ = act
    if act == "retire":
        return await visit.change(perform)
    return await asked_outside(
        service.authority, lambda content: visit.change(perform, content=content, ceilings=service.ceilings)
    )


def _request(schedule_id: str, act: str, fields: dict[str, str]) -> dict[str, Any]:
    """The request that a form stands for. What is no number is refused as the field that it is."""
    return {
        "version": {
            "schedule_id": schedule_id,
            "revision": _number(fields.get("revision")),
            "digest": fields.get("digest", ""),
        },
        "expected_generation": _number(fields.get("generation")),
        "expected_environment_epoch": _number(fields.get("environment_epoch")),
        "expected_reset_generation": _number(fields.get("reset_generation")),
        **({} if act == "retire" else {"enabled": act == "enable"}),
    }


def _number(text: str | None) -> int | str | None:
    return int(text) if text is not None and text.isascii() and text.isdecimal() and len(text) <= 10 else text


async def _not_done(sent: Submission, schedule_id: str, act: str, refused: Refused) -> Response:
    """The page that says why nothing was done, and what changed since the form was shown."""
    visit, rejected = sent.visit, problems.as_rejected(refused)
    seen = _number(sent.fields.get("seen"))
    try:
        told = await visit.ask(
            meanwhile, schedule_key(visit.scope, schedule_id), seen=seen if isinstance(seen, int) else MAX_NUMBER
        )
    except Unavailable:
        told = None  # what became of the change itself is still to be said, and it may be unknown
    answer = visit.render(
        "not_done.html",
        status=rejected.status,
        here="schedules",
        it=told,
        schedule_id=schedule_id,
        act=act,
        rejected=rejected,
        words=in_words(rejected, sent=True),
        unknown=isinstance(refused, OutcomeUnknown),
        # What may work in a moment is sent again as it is, under the same key: it is done once at the most.
        again={name: sent.fields.get(name, "") for name in _FIELDS} if isinstance(refused, Unavailable) else None,
    )
    for name, value in rejected.headers.items():
        answer.headers[name] = value
    return answer
