"""A started run reads its input: the authority is asked at each read, in the name of the person on whose word it runs."""

from datetime import datetime

import structlog
from sqlalchemy import Connection

from horarium.authority.asking import Authority
from horarium.authority.rules import Objection
from horarium.catalog import Catalog, ledger, ledger_changes
from horarium.catalog.audit_events import record_event
from horarium.catalog.schedules import find_activation, require_schedule
from horarium.control import running
from horarium.control.judgement import judge_reading
from horarium.control.running import Opened
from horarium.errors import Forbidden, NotFound
from horarium.schedule.identity import Scope, schedule_key
from horarium.schedule.ledger import Reason

_logger = structlog.get_logger(__name__)


async def read_input(
    catalog: Catalog, authority: Authority, run_id: str, token: str, *, scope: Scope | None = None, now: datetime
) -> bytes:
    """The input of a running run, for whoever holds its token. With `scope`, the run is one of that environment.

    Raises `NotFound` once the run has ended, or with another token; `Forbidden` with the reason's code where the person may
    read it no longer, which is recorded once for each reason; `Unavailable` where the authority does not answer; and `Refused`
    with `input_too_large`.
    """
    opened = await catalog.read(running.opened, run_id, token)
    if scope not in {None, opened.scope}:
        raise running.not_opened(run_id)
    question = opened.question
    answers = await authority.ask(question)
    objection = await catalog.read(judge_reading, question, answers, now=now)
    if objection is not None:
        raise await _refused(catalog, opened, objection, now=now)
    try:
        return await authority.read_input(opened.scope, opened.input, person=question.person)
    except NotFound as gone:
        # It was there a moment ago, when the authority was asked.
        vanished = Objection(reason=Reason.INPUT_UNREADABLE, sentence=gone.sentence, evidence={})
        raise await _refused(catalog, opened, vanished, now=now) from gone


async def _refused(catalog: Catalog, opened: Opened, objection: Objection, *, now: datetime) -> Forbidden:
    await catalog.write(_note, opened, objection, now=now)
    _logger.warning("input_refused", run_id=opened.run_id, reason=objection.reason.value)
    return Forbidden(
        objection.reason,
        f"Run {opened.run_id} may not read its input any more: {objection.sentence}",
        next_step="Stop reading, and report what was done until now.",
    )


def _note(connection: Connection, opened: Opened, objection: Objection, *, now: datetime) -> None:
    """Write down that a read was refused, once for each reason: an agent may ask again and again."""
    # Locked first: of two reads at once, the second has to find what the first has written.
    schedule = require_schedule(connection, schedule_key(opened.scope, opened.schedule_id), lock=True)
    run = ledger.find_run(connection, opened.run_id)
    entry = None if run is None else ledger.entry_of(connection, run)
    if run is None or entry is None or run.input_refused == objection.reason:
        return
    ledger_changes.change_run(connection, opened.run_id, input_refused=objection.reason)
    activation = find_activation(connection, schedule, entry.generation)
    assert activation is not None, "an entry has its activation"
    record_event(
        connection,
        schedule,
        "input_refused",
        at=now,
        actor="system:input",
        generation=entry.generation,
        revision=activation.revision,
        details={
            "run_id": opened.run_id,
            "code": objection.reason.value,
            "because": objection.sentence,
            "person": opened.question.person,
        },
    )
