"""What a person is told without looking further: what was never enabled, what an agent said that failed, what led to a review."""

import re
from datetime import timedelta

import pytest

from horarium.api.pages import words
from horarium.catalog.directory import Standing
from horarium.control import directory
from horarium.schedule.ledger import Disposition, Reason
from tests.pages.browser import HOME, Pages, text_of
from tests.pages.night import HOSTILE, HOUR, MIDNIGHT, MORNING, ended, tonight
from tests.pages.test_views import row_of, rows

SCHEDULES = f"{HOME}/schedules"
WAREHOUSE = "The agent said: The warehouse did not answer."
REVIEWED = "Its run of Mon 30 Nov 2026 04:00 UTC failed (pause_on_failure)."


@pytest.fixture(scope="module")
def night(catalog):
    return tonight(catalog)


@pytest.fixture(scope="module")
def pages(catalog, night):
    made = Pages(catalog, now=lambda: MORNING)
    yield made
    made.close()


def page_of(ada, night, name, *more):
    return ada.get("/".join([SCHEDULES, night.id_of(name), *more]))


def test_what_was_never_enabled_is_not_called_paused(ada, night):
    for told in (
        row_of(ada.get(SCHEDULES), "Release notes draft"),
        text_of(page_of(ada, night, "Release notes draft")),
        text_of(page_of(ada, night, "Release notes draft", "review")),
    ):
        assert "never enabled" in told
        assert "paused" not in told
    assert "paused" in row_of(ada.get(SCHEDULES), "Weekly digest")
    assert "paused" in text_of(page_of(ada, night, "Weekly digest"))


@pytest.mark.parametrize("small", [3, 200])
def test_what_was_never_enabled_can_be_asked_for(ada, night, small, monkeypatch):
    monkeypatch.setattr(directory, "SMALL", small)
    page = ada.get(SCHEDULES, params={"state": Standing.NEVER_ENABLED.value})
    (row,) = rows(page)
    assert row.startswith("Release notes draft")
    assert '<option value="never_enabled" selected>never enabled</option>' in page.text
    (row,) = rows(ada.get(SCHEDULES, params={"state": Standing.PAUSED.value}))
    assert row.startswith("Weekly digest")


def test_of_what_failed_the_agents_own_words_are_told(ada, night):
    generic = Reason.AGENT_REPORTED_FAILURE.sentence
    for told in (row_of(ada.get(SCHEDULES), "Nightly report"), text_of(page_of(ada, night, "Nightly report"))):
        assert WAREHOUSE in told
        assert generic not in told


@pytest.mark.parametrize("said", [HOSTILE, "x" * 5_000, "Traceback:\n  line\n\n  another line", ""])
def test_whatever_it_says_is_short_and_does_no_harm(ada, night, said):
    loop = night.enabled("Fails", every=3 * HOUR)
    due = MIDNIGHT + timedelta(hours=3)
    ended(loop, due, Disposition.FAILED, reason=Reason.AGENT_REPORTED_FAILURE, summary=said)
    try:
        listed, page = ada.get(SCHEDULES, params={"text": "fails"}), page_of(ada, night, "Fails")
    finally:
        night.desks.pop("Fails").retire()
    for answer in (listed, page):
        assert "<script>alert" not in answer.text
        shown = re.findall(r"The agent said: <bdi>([^<]*)</bdi>", answer.text)
        assert all(len(each) <= words.SHORT + 100 and "\n" not in each for each in shown)
        assert len(shown) == bool(said)
        assert (Reason.AGENT_REPORTED_FAILURE.sentence in answer.text) == (not said)


def test_a_review_after_a_failure_is_told_in_a_sentence_that_leads_to_the_run(ada, night):
    for page in (
        page_of(ada, night, "Nightly report"),
        page_of(ada, night, "Nightly report", "review"),
        ada.get(SCHEDULES),
    ):
        told = text_of(page)
        assert REVIEWED in told, told
        inside = page.text.partition(REVIEWED)[2]
        address = re.search(rf'^</bdi> <a href="({HOME}/runs/[0-9a-f-]{{36}})">See the run</a>', inside)
        assert address, inside[:200]
        assert "The warehouse did not answer." in text_of(ada.get(address[1]))


def test_only_what_we_wrote_leads_to_a_run():
    run_id = "0192f0c4-7a53-7c1e-8a4b-5a1c2d3e4f50"
    text = f"Its run of today failed (pause_on_failure, run {run_id})."
    assert words.review(text) == words.Review("Its run of today failed (pause_on_failure).", run_id)
    for other in ("A worker was ended.", f"{text} More.", text.replace(run_id, "../../x"), ""):
        assert words.review(other) == words.Review(other, None)
