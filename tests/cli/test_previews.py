"""`preview` of other contracts' documents: the same at a server and without one, and a translation that people can read."""

import json
import re

import pytest

from tests.schedule.test_v0 import CRON, ONE_SHOT

from .conftest import Installation
from .test_server import serving

NIGHTLY = {**CRON, "spec": {"expr": "30 2 * * *", "timezone": "Europe/Zurich"}}
INTERVAL = {**CRON, "type": "interval", "spec": {"every_seconds": 5_400, "offset_seconds": 7}}
POSITIONS = {"minute": "0", "hour": "9", "day_of_month": "1", "month": "*", "day_of_week": "1"}
PROFILE = {"config": {"cron": {**POSITIONS, "timezone": "Europe/Zurich"}}}
WINDOW = ("--from", "2027-03-27T00:00:00Z", "--until", "2027-03-30T00:00:00Z")


def test_a_difference_is_told_with_its_date(horarium, write):
    told = horarium("preview", write(NIGHTLY), *WINDOW, "-o", "table").stdout
    assert "Sun 2027-03-28 03:00:00 +0200" in told
    assert told.count("02:30 does not exist on 2027-03-28") == 1
    assert "Keep the cron" in told
    assert "A canonical calendar of the same fields differs: 02:30 does not exist on 2027-03-28" in told


def test_what_is_equal_is_shown_in_words(horarium, write):
    told = horarium("preview", write(PROFILE), *WINDOW, "-o", "table").stdout
    assert "Equals the canonical calendar shown." in told
    assert "at 09:00:00 on day 1 of the month" in told
    assert "at 09:00:00 on Mon" in told
    assert re.search(r"horarium preview \S+ -o yaml$", told.strip())


def test_a_change_of_the_clock_before_the_preview_concerns_nobody(horarium, write):
    """In Zurich the midnight of 1894-06-01 is in a gap."""
    document = {"expr": "0 0 1 * 1", "timezone": "Europe/Zurich"}
    told = horarium("preview", write(document), *WINDOW, "-o", "table").stdout
    assert "Equals the canonical calendar shown from its start_at on" in told
    assert "1894" not in told


@pytest.mark.parametrize(
    ("document", "first"),
    [
        ('"30 7 * * 1-5"', "2027-03-29T07:30:00Z"),
        ("30 7 * * 1-5", "2027-03-29T07:30:00Z"),
        ("{expr: '30 7 * * 1-5', timezone: Europe/Zurich}", "2027-03-29T05:30:00Z"),
    ],
)
def test_a_cron_by_itself_is_previewed(horarium, write, document, first):
    answer = horarium("preview", write(document, "cron.yaml"), *WINDOW).stdout
    assert json.loads(answer)["occurrences"][0] == first


def test_a_canonical_calendar_is_not_told_that_it_equals_itself(horarium, write, configuration):
    assert "canonical" not in horarium("preview", write(configuration), *WINDOW, "-o", "table").stdout


def test_a_fault_is_told_at_its_place_in_the_document_of_its_contract(horarium, write):
    path = write({"config": {"cron": {**POSITIONS, "hour": "24", "timezone": "Europe/Zurich"}}})
    result = horarium("preview", path)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"{path}: /config/cron/hour: ")


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TEMPORAL_ADDRESS", "127.0.0.1:1")
        installation = Installation(tmp_path_factory.mktemp("served") / "data")
        with serving(installation.data) as address:
            yield installation, address


def test_a_server_previews_what_this_program_does(served, horarium, write, monkeypatch, configuration):
    installation, address = served
    monkeypatch.setenv("HORARIUM_TOKEN", horarium("token", "--data", installation.data).stdout.strip())
    for document in (
        *(configuration, configuration["calendar"], NIGHTLY, CRON, ONE_SHOT, INTERVAL, PROFILE, {"cron": 1}),
        *(NIGHTLY["spec"], "30 7 * * 1-5"),
    ):
        path = write(document)
        for form in ("json", "table"):
            here, there = (
                horarium("preview", path, *WINDOW, "-o", form, *where) for where in ((), ("--server", address))
            )
            assert (here.exit_code, here.stdout, here.stderr) == (there.exit_code, there.stdout, there.stderr), document
    contracts = [
        json.loads(horarium("preview", write(document), "--server", address).stdout)["contract"]
        for document in (configuration, configuration["calendar"], ONE_SHOT, PROFILE)
    ]
    assert contracts == ["schedules", None, "v0", "cron_profiles"]
