"""The schedule that a person means by the beginning of its id."""

import asyncio

import pytest

from horarium.errors import Conflict, NotFound, Refused
from horarium.schedule.identity import Scope
from starter.cli.finding import find

IDS = [
    "00000000-0000-4000-8000-000000000000",
    "7b0c7c3e-4f0e-4f53-9f0b-0a5d2f2d8a11",
    "7b0c7cff-0000-4000-8000-000000000000",
    *(f"99999999-0000-4000-8000-00000000000{number}" for number in range(8)),
    "ffffffff-ffff-4fff-bfff-ffffffffffff",
]


class Place:
    """A place that has these schedules, and shows them as the directory does."""

    scope = Scope(org_id="acme", environment_id="test")

    async def directory(self, *, limit, after, include_retired):
        assert include_retired, "a retired schedule is found too"
        behind = [{"schedule_id": each} for each in IDS if after is None or each > after]
        return {"schedules": behind[:limit]}


def found(written):
    return asyncio.run(find(Place(), written))


@pytest.mark.parametrize("schedule_id", [IDS[0], IDS[1], IDS[2], IDS[-1]])
@pytest.mark.parametrize("length", [8, 9, 10, 18, 35, 36])
def test_a_beginning_that_no_other_has_names_a_schedule_in_any_case(schedule_id, length):
    assert found(schedule_id[:length]) == found(schedule_id[:length].upper()) == schedule_id


def test_a_whole_id_is_not_looked_up():
    assert found("12345678-0000-4000-8000-000000000000") == "12345678-0000-4000-8000-000000000000"


def test_a_beginning_that_several_have_is_refused_with_some_of_them():
    with pytest.raises(Conflict, match=f"{IDS[1]}, {IDS[2]}\\."):
        found("7b0c7c")
    with pytest.raises(Conflict, match="0004 and more"):
        found("99999999")


@pytest.mark.parametrize("written", ["123456", "7b0c7c3e4f0e", "7b0c7c3f", "ffffffff-ffff-4fff-c"])
def test_a_beginning_that_none_has_is_not_found(written):
    with pytest.raises(NotFound, match="begins with"):
        found(written)


@pytest.mark.parametrize("written", ["7b0c7", "7", "", "-", "7b0c7%", "zzzzzz", "daily review", IDS[1] + "0"])
def test_what_is_neither_an_id_nor_the_beginning_of_one_is_refused(written):
    with pytest.raises(Refused, match="invalid_schedule_id"):
        found(written)
