"""Many people change one thing at once, and the authority takes its time: each change is asked about, and each is done."""

import asyncio
import copy
from collections.abc import Callable

import pytest

from horarium.authority.local import LocalAuthority
from tests.api.house import Api, new
from tests.api.profile_house import CRON as DAILY
from tests.api.profile_house import at, furnish_profiles, submission
from tests.api.v0_house import V0, bind
from tests.schedule.test_v0 import CRON

AT_ONCE = 16


@pytest.fixture
def asked(monkeypatch):
    """The authority answers only after a while; what it was asked."""
    found = []
    answers = LocalAuthority.ask

    async def after_a_while(self, question, **more):
        found.append(question)
        await asyncio.sleep(0.05)
        return await answers(self, question, **more)

    monkeypatch.setattr(LocalAuthority, "ask", after_a_while)
    return found


def put_at_once(api: Api, path: str, document: Callable[[int], object]) -> list[int]:
    async def all_of_them():
        async with api.client() as client:
            puts = (
                client.put(path, json=document(number), headers={"Idempotency-Key": new()}) for number in range(AT_ONCE)
            )
            return await asyncio.gather(*puts)

    answers = api.run(all_of_them())
    assert {answer.json().get("code") for answer in answers} == {None}
    return sorted(answer.json()["reference"]["revision"] for answer in answers)


def test_all_updates_of_one_v0_schedule_are_done(api, catalog, asked):
    bind(catalog)
    v0 = V0(api=api)
    schedule_id = v0.created(CRON)
    asked.clear()

    def each_minute(number: int) -> object:
        document = copy.deepcopy(CRON)
        document["spec"]["expr"] = f"{number} * * * *"
        return document

    path = f"/v0/schedules/{schedule_id}?environment_id=test"
    assert put_at_once(api, path, each_minute) == list(range(2, AT_ONCE + 2))
    assert len(asked) == AT_ONCE


def test_all_that_save_one_profile_are_heard(api, catalog, asked):
    furnish_profiles(catalog)

    def at_each_minute(number: int) -> object:
        return submission(cron={**DAILY, "minute": str(number)})

    assert put_at_once(api, at("support").removeprefix("!"), at_each_minute) == list(range(1, AT_ONCE + 1))
    assert len(asked) == AT_ONCE


def test_a_binding_that_is_declared_anew_meanwhile_is_asked_about(api, catalog, asked):
    bind(catalog)
    v0 = V0(api=api)
    schedule_id = v0.created(CRON)
    asked.clear()
    answers = LocalAuthority.ask

    async def while_others_declare(self, question, **more):
        if len(asked) < 4:
            bind(catalog, input=f"in-{len(asked)}")
        return await answers(self, question, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LocalAuthority, "ask", while_others_declare)
        assert v0.update(schedule_id, CRON).status_code == 201
    bind(catalog)
    assert [each.request.input for each in asked] == ["in", "in-0", "in-1", "in-2", "in-3"]
