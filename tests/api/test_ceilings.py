"""The API holds every route that enables something to the ceilings of its process."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from horarium.catalog import Catalog
from horarium.schedule.ceilings import Ceilings
from tests.api.house import Api, new, publication
from tests.api.test_serving import Serving, horarium
from tests.api.v0_house import FAR_OFF, V0, bind
from tests.cli.conftest import CONFIGURATION, Installation
from tests.schedule.test_v0 import CRON

BASE = "/v1/organizations/local/environments/dev"


@pytest.fixture
def narrow(catalog: Catalog) -> Iterator[Api]:
    """An API in whose installation nothing may declare a run."""
    made = Api(catalog, ceilings=Ceilings(total=1))
    yield made
    made.close()


def codes(answer: httpx.Response) -> list[str]:
    assert answer.status_code == 409, answer.text
    told: list[dict[str, Any]] = answer.json()["errors"]
    return [each["code"] for each in told]


def test_enabling_is_refused_with_what_was_counted(api: Api, narrow: Api) -> None:
    receipt = narrow.publish()
    refused = narrow.change(receipt, 0, "enable")
    assert codes(refused) == ["ceiling_exceeded"]
    [objection] = refused.json()["errors"]
    assert objection["evidence"]["ceiling"]["which"] == "total"
    assert objection["evidence"]["ceiling"]["most"] == 1
    assert "SCHEDULER_MAX_TOTAL_RUNS_PER_MONTH" in objection["detail"]
    assert api.change(receipt, 0, "enable").status_code == 201


def test_so_is_every_change_of_scheduler_v0_that_enables(api: Api, narrow: Api) -> None:
    bind(api.catalog)
    open_one, narrow_one = V0(api=api), V0(api=narrow)
    assert codes(narrow_one.create(CRON)) == ["ceiling_exceeded"]
    created = open_one.created(CRON)
    assert codes(narrow_one.update(created, CRON)) == ["ceiling_exceeded"]
    assert open_one.move(created, "pause").status_code == 201
    assert codes(narrow_one.move(created, "resume")) == ["ceiling_exceeded"]
    assert narrow_one.create(FAR_OFF).status_code == 201, "it declares nothing for the next thirty days"


@pytest.mark.parametrize(("ceiling", "status"), [("1", 409), ("", 201)])
def test_the_process_takes_them_from_its_environment(tmp_path, ceiling: str, status: int) -> None:
    installation = Installation(tmp_path / "data")
    serving = Serving(tmp_path / "data", SCHEDULER_MAX_TOTAL_RUNS_PER_MONTH=ceiling)
    try:
        token = horarium("token", "--data", installation.data).stdout.strip()
        headers = {"Authorization": f"Bearer {token}"}
        with httpx.Client(base_url=serving.address, headers=headers, timeout=60) as client:
            body = publication(configuration=CONFIGURATION)
            receipt = client.post(f"{BASE}/schedules", json=body, headers={"Idempotency-Key": new()}).json()
            installation.populate()
            review = {"version": receipt["reference"], "expected_environment_epoch": 1, "expected_reset_generation": 1}
            answer = client.post(
                f"{BASE}/schedules/{body['schedule_id']}/activation",
                json={**review, "expected_generation": 0, "enabled": True},
                headers={"Idempotency-Key": new()},
            )
            assert answer.status_code == status, answer.text
            if status != 201:
                assert codes(answer) == ["ceiling_exceeded"]
    finally:
        serving.stop()
