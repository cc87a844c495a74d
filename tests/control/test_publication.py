"""Publication: what it asks first, what it stores, and that it enables nothing."""

from typing import Any

import pytest

from horarium.catalog.audit_events import list_events
from horarium.catalog.schedules import find_version, require_schedule
from horarium.control.publication import publish
from horarium.errors import Conflict, InvalidSchedule, NotFound
from horarium.schedule.canonical import digest
from horarium.schedule.identity import Scope, schedule_key
from tests.control.desk import NOON, Desk, at, configuration, every


def kinds(desk: Desk) -> list[str]:
    def listed(connection: Any) -> list[str]:
        schedule = require_schedule(connection, desk.key)
        return [event["kind"] for event in list_events(connection, schedule, after=0, limit=50)]

    return desk.read(listed)


def test_versions_are_numbered_from_one_and_keep_the_document_as_it_was_submitted(desk: Desk) -> None:
    first = desk.publish(every(60), expected=0).version
    second = desk.publish(every(90), expected=1).version
    assert (first.revision, second.revision) == (1, 2)
    assert first.resource_id != second.resource_id
    assert (first.digest, second.digest) == (digest(every(60)), digest(every(90)))
    assert dict(second.document) == every(90)
    stored = desk.read(lambda c: find_version(c, require_schedule(c, desk.key), 1))
    assert stored == first
    assert kinds(desk) == ["published", "published"]


def test_publishing_enables_nothing_and_replaces_no_enabled_version(desk: Desk) -> None:
    desk.publish(every(60))
    assert desk.read(lambda c: require_schedule(c, desk.key)).generation == 0
    desk.enable()
    desk.publish(every(90))
    activation = desk.activation()
    assert (activation.generation, activation.revision, activation.is_live) == (1, 1, True)


@pytest.mark.parametrize(("published", "expected"), [(0, 1), (1, 0), (2, 1), (2, 3)])
def test_another_head_than_the_reviewed_one_is_a_conflict(desk: Desk, published: int, expected: int) -> None:
    for _ in range(published):
        desk.publish(every(60))
    with pytest.raises(Conflict, match=f"is revision {published}, not {expected}") as refused:
        desk.publish(every(90), expected=expected)
    assert refused.value.code == "revision_conflict"
    if published:
        assert desk.read(lambda c: require_schedule(c, desk.key)).head_revision == published


def test_a_refused_first_publication_leaves_no_schedule(desk: Desk) -> None:
    document = every(60)
    document["policy"]["overlap"] = "maybe"
    document["calendar"]["timezone"] = "Mars/Olympus"
    with pytest.raises(InvalidSchedule) as refused:
        desk.publish(document)
    assert {fault.pointer for fault in refused.value.faults} == {"/policy/overlap", "/calendar/timezone"}
    with pytest.raises(NotFound):
        desk.read(lambda c: require_schedule(c, desk.key))


def test_a_retired_schedule_cannot_be_revived(desk: Desk) -> None:
    desk.publish(every(60))
    desk.retire()
    with pytest.raises(Conflict, match="that is final") as refused:
        desk.publish(every(60), expected=1)
    assert refused.value.code == "schedule_retired"


def test_an_environment_that_does_not_exist_is_named(desk: Desk) -> None:
    elsewhere = schedule_key(Scope(org_id="acme", environment_id="nowhere"), desk.key.schedule_id)
    with pytest.raises(NotFound, match="no environment 'nowhere' in organization 'acme'"):
        desk.write(publish, elsewhere, every(60), expected_revision=None, by="ada", now=NOON)


@pytest.mark.parametrize(
    ("end", "warning"),
    [
        (at(-60), "its last one has passed"),
        (at(-86_400 + 1), "can never select an instant within its bounds, so it will never run anything."),
    ],
)
def test_a_calendar_that_will_never_be_due_is_stored_with_a_warning(desk: Desk, end: Any, warning: str) -> None:
    rules = [{"every_seconds": 3_600, "offset_seconds": 7}]
    published = desk.publish(configuration(rules, "skip", end_at=end))
    assert published.version.revision == 1
    assert warning in " ".join(published.warnings)
    assert desk.publish(every(60)).warnings == ()


def test_a_schedule_id_is_the_same_in_capitals() -> None:
    scope = Scope(org_id="acme", environment_id="test")
    small = "7b0c7c3e-4f0e-4f53-9f0b-0a5d2f2d8a11"
    assert schedule_key(scope, small.upper()) == schedule_key(scope, small)
