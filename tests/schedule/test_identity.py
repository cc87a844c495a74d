"""Names and ids: what is refused, and that the same occurrence always has the same id."""

import uuid

import pytest

from horarium.errors import Refused
from horarium.schedule.identity import ActivationKey, RunKey, Scope, instant_text, schedule_key
from tests.control.desk import at, seconds

SCOPE = Scope(org_id="acme", environment_id="test")
SCHEDULE = "7b0c7c3e-4f0e-4f53-9f0b-0a5d2f2d8a11"


def run(generation: int = 4, offset: float = 0, trigger: str = "schedule") -> RunKey:
    activation = ActivationKey(schedule=schedule_key(SCOPE, SCHEDULE), generation=generation)
    return RunKey(activation=activation, nominal_time=at(offset), trigger=trigger)


def test_workflow_ids_are_what_the_documentation_says() -> None:
    """A person finds a run in the Temporal UI by these."""
    assert run().activation.workflow_id == f"schedule/acme/test/{SCHEDULE}/4"
    assert run().workflow_id == f"run/acme/test/{SCHEDULE}/4/2026-11-30T12:00:00Z"
    assert run(trigger="manual:r-1").workflow_id == f"run/acme/test/{SCHEDULE}/4/manual/r-1"


def test_a_run_s_id_follows_from_its_workflow_s_and_never_changes() -> None:
    """Runs that were started by an earlier release are found by this one."""
    assert run().run_id == str(uuid.uuid5(uuid.UUID("6f0bd2f1-4c36-5d0e-9f1b-0f7a4a1c2e55"), run().workflow_id))
    others = [run(generation=5), run(offset=1), run(trigger="manual:a"), run(trigger="manual:b")]
    assert len({run().run_id, *(each.run_id for each in others)}) == 5


@pytest.mark.parametrize(
    ("offset", "text"),
    [(0, "2026-11-30T12:00:00Z"), (0.5, "2026-11-30T12:00:00.500000Z"), (43_200, "2026-12-01T00:00:00Z")],
)
def test_an_instant_is_written_in_utc_with_a_z(offset: float, text: str) -> None:
    assert instant_text(at(offset)) == text


@pytest.mark.parametrize("name", ["", "-a", "a-", ".", "a/b", "a b", "ä", "a" * 65, "a\n", "..", "a\x00", "%61", "_"])
def test_names_that_would_break_an_id_are_refused(name: str) -> None:
    for scope in ({"org_id": name, "environment_id": "test"}, {"org_id": "acme", "environment_id": name}):
        with pytest.raises(Refused, match="1 to 64 letters, digits") as refused:
            Scope(**scope)
        assert refused.value.code == "invalid_scope"


@pytest.mark.parametrize("name", ["a", "A9", "acme", "acme.eu-west_1", "a" * 64, "0"])
def test_other_names_are_not(name: str) -> None:
    assert Scope(org_id=name, environment_id=name).org_id == name


@pytest.mark.parametrize(
    "text",
    [
        "",
        "abc",
        SCHEDULE[:-1],
        SCHEDULE.replace("-", ""),
        "{" + SCHEDULE + "}",
        "urn:uuid:" + SCHEDULE,
        SCHEDULE + "\n",
    ],
)
def test_a_schedule_id_is_a_uuid_in_its_usual_spelling(text: str) -> None:
    with pytest.raises(Refused, match="is no UUID") as refused:
        schedule_key(SCOPE, text)
    assert refused.value.code == "invalid_schedule_id"


def test_capitals_name_the_same_schedule() -> None:
    assert schedule_key(SCOPE, SCHEDULE.upper()) == schedule_key(SCOPE, SCHEDULE)


def test_an_id_does_not_depend_on_how_the_instant_s_zone_is_written() -> None:
    shifted = at(0).astimezone(tz=(at(0) + seconds(0)).astimezone().tzinfo)
    assert RunKey(activation=run().activation, nominal_time=shifted).run_id == run().run_id
