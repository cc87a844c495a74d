"""What the page of one schedule tells: its time in words, the head against what is enabled, the timeline, and who did what."""

import copy
import re
from datetime import timedelta

import pytest

from horarium.control import schedule_page
from horarium.control.publication import publish
from horarium.schedule.configuration import read_stored
from horarium.schedule.profiles import CONTRACT as CRON_PROFILES
from tests.control.test_unusable_versions import damage_the_row, lose_the_policy, lose_the_zone
from tests.pages import test_views
from tests.pages.browser import HOME, Pages, person, text_of
from tests.pages.night import HOSTILE, MIDNIGHT, MORNING, document, ended, tonight

SCHEDULES = f"{HOME}/schedules"


@pytest.fixture(scope="module")
def night(catalog):
    return tonight(catalog)


@pytest.fixture(scope="module")
def pages(catalog, night):
    made = Pages(catalog, now=lambda: MORNING)
    yield made
    made.close()


@pytest.fixture
def page_of(ada, night):
    def asked(name, more=""):
        return ada.get(f"{SCHEDULES}/{night.id_of(name)}{more}")

    return asked


def test_a_schedule_is_told_in_words_with_its_next_instant_and_its_days(page_of):
    page = page_of("Inbox triage")
    assert page.status_code == 200, page.text
    told = text_of(page)
    for part in (
        "enabled \N{CIRCLE WITH UPPER RIGHT QUADRANT BLACK} pending weekdays at 07:30 Europe/Zurich",
        "Tue 1 Dec 2026 07:30 Europe/Zurich",
        "in 22 h 30 min",
        "40 ms at the median, 40 ms at worst (of the 1 run on this page)",
        "Revision 1 is enabled: generation 1, enabled by ada",
        "The head is what is enabled.",
        "Tuesday 1 December 2026: 07:30",
        "42 messages sorted",
        "Agent worked@1",
        "How late a run may still start 1 h",
        "contract schedules",
    ):
        assert part in told, (part, told)
    assert "Saturday 5 December 2026: 07:30" not in told


def test_the_timeline_tells_every_disposition_with_its_reason_and_draws_it(page_of):
    page = page_of("Ingestion check")
    told = text_of(page)
    assert "held every slot" in told
    assert told.count("succeeded") >= 6
    label = re.search(r'<svg class="strip" role="img" aria-label="([^"]*)"', page.text)[1]
    assert label == "Oldest first: 6 succeeded, 1 running, 1 skipped"
    cells = re.findall(r'<g class="(\w+)">', page.text)
    assert cells == ["good"] * 6 + ["busy", "calm"]
    assert "Mon 30 Nov 2026 02:00: running" in page.text
    assert "59 min 59 s so far" in told or "1 h so far" in told


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("Invoice matching", "The input &#39;mail/inbox&#39; does not exist"),
        ("Second counter", "Nothing was listening until the instant was older than the catch-up window."),
        ("Nightly report", "In review:"),
        ("Market watch", "waiting"),
    ],
)
def test_what_did_not_run_says_why(page_of, name, part):
    assert part in page_of(name).text


def test_a_dense_schedule_is_counted_by_day_and_in_one_line(page_of):
    told = text_of(page_of("Second counter"))
    assert "every second" in told
    assert "86,400 \N{MULTIPLICATION SIGN}" in told
    assert "more until" in told


def test_what_was_never_enabled_says_so_and_tells_what_it_would_do(page_of):
    told = text_of(page_of("Release notes draft"))
    assert "Nothing was ever enabled. Revision 1 is published." in told
    assert "The next 30 days, if revision 1 were enabled" in told
    assert "weekdays at 07:30 Pacific/Auckland" in told


def test_a_head_that_differs_is_told_field_by_field(page_of, night):
    loop = night.enabled("Two heads")
    changed = document("Two heads", zone="Europe/Zurich", overlap="buffer_one")
    changed["run"]["input"] = "mail/other"
    loop.desk.publish(changed)
    told = text_of(page_of("Two heads"))
    for part in (
        "Revision 1 is enabled: generation 1",
        "The head is revision 2, published by ada",
        "When weekdays at 07:30 UTC",
        "weekdays at 07:30 Europe/Zurich",
        "When a run is due while others run skip it let one wait",
        "Input mail/inbox mail/other",
    ):
        assert part in told, (part, told)
    # What fires is what is told at the top, and not the head.
    assert "pending weekdays at 07:30 UTC" in told
    night.desks.pop("Two heads").retire()


def test_events_tell_who_did_what(page_of):
    told = text_of(page_of("Weekly digest"))
    assert re.search(r"Mon 30 Nov 2026 00:10 UTC paused ada 1 2", told), told
    assert re.search("Mon 30 Nov 2026 00:00 UTC published ada 1 \N{EN DASH}", told), told


def test_clock_changes_are_marked(pages, night):
    night.published("Clock change", zone="Europe/Zurich")
    spring = Pages(pages.catalog, now=lambda: MORNING + timedelta(days=115))
    try:
        page = spring.browser(person()).get(f"{SCHEDULES}/{night.id_of('Clock change')}")
        told = text_of(page)
        assert "Sunday 28 March 2027: The clock goes from 02:00 forward to 03:00. That changes nothing here." in told
        assert len(re.findall(r'<li class="day [^"]*changes">', page.text)) == 1
    finally:
        spring.close()
        night.desks.pop("Clock change").retire()


def test_older_lines_and_events_are_on_pages_of_their_own(ada, page_of, night, monkeypatch):
    monkeypatch.setattr(schedule_page, "LINES", 3)
    monkeypatch.setattr(schedule_page, "EVENTS", 1)
    for way in ("after", "events_before"):
        seen, address = [], f"{SCHEDULES}/{night.id_of('Ingestion check')}"
        for _ in range(12):
            page = ada.get(address)
            table = page.text.partition('id="timeline"' if way == "after" else 'id="events"')[2]
            seen += re.findall(
                r'<th scope="row">.*?<span class="wall">([^<]*)<', table.partition("</table>")[0], re.DOTALL
            )
            more = re.search(rf'rel="next" href="([^"]*[?&amp;]{way}=[^"]*)"', page.text)
            if more is None:
                break
            address = more[1].replace("&amp;", "&")
        assert len(seen) == (8 if way == "after" else 2), (way, seen)
        assert way == "events_before" or len(set(seen)) == len(seen)


def test_a_cron_stands_beside_its_words(ada, night):
    desk = night.desk("A profile")
    cron = {
        "minute": "30",
        "hour": "7",
        "day_of_month": "*",
        "month": "*",
        "day_of_week": "1-5",
        "timezone": "Europe/Zurich",
    }
    whole = copy.deepcopy(document("Triage/daily"))
    del whole["calendar"]
    whole |= {
        "contract": CRON_PROFILES,
        "timing": {"cron": cron},
        "source": {"agent_class": "Triage", "agent_id": "daily"},
    }
    desk.write(
        publish,
        desk.key,
        whole,
        expected_revision=0,
        by="ada",
        now=MIDNIGHT,
        configuration=read_stored(whole),
        contract=CRON_PROFILES,
    )
    told = text_of(ada.get(f"{SCHEDULES}/{desk.key.schedule_id}"))
    assert "weekdays at 07:30 Europe/Zurich cron 30 7 * * 1-5" in told
    assert "Review and pause" in told
    review = text_of(ada.get(f"{SCHEDULES}/{desk.key.schedule_id}/review"))
    assert "other_contract" in review
    assert "Retire" not in review
    assert "never retired" in text_of(ada.get(f"{SCHEDULES}/{desk.key.schedule_id}/retirement"))


@pytest.mark.parametrize("harm", [lose_the_zone, damage_the_row, lose_the_policy])
@pytest.mark.parametrize("again", [False, True])
def test_a_version_that_cannot_be_used_is_told_as_that(ada, night, harm, again):
    desk = night.enabled("Harmed").desk
    if again:
        desk.publish(document("Harmed", every=60))
    harm(desk)
    for more in ("", "/review", "/retirement"):
        page = ada.get(f"{SCHEDULES}/{desk.key.schedule_id}{more}")
        assert page.status_code == 200, page.text
        assert "cannot be used" in page.text or more == "/retirement"
        assert "It asks for the same" not in page.text
    assert "version_unusable" in ada.get(f"{SCHEDULES}/{desk.key.schedule_id}/review").text
    desk.pause()
    desk.retire()


def test_a_hostile_name_does_no_harm(page_of):
    for more in ("", "/review", "/retirement"):
        page = page_of(HOSTILE, more)
        assert page.status_code == 200
        assert "&lt;script&gt;alert(" in page.text
        assert "<script>alert" not in page.text
        assert "<img src=x" not in page.text
        assert not re.search("[\u202a-\u202e\u2066-\u2069\x1b]", page.text)


@pytest.mark.parametrize("more", ["", "/review", "/retirement"])
@pytest.mark.parametrize(
    "name", ["Ingestion check", "Release notes draft", "Old crawler", "Nightly report", "Two events"]
)
def test_these_pages_have_their_landmarks_and_nothing_inline(ada, night, name, more):
    if name not in night.desks:
        night.published(name)
    path = f"{SCHEDULES}/{night.id_of(name)}{more}"
    test_views.test_a_page_has_its_landmarks_one_heading_and_nothing_inline_or_from_elsewhere(ada, path)


def test_what_is_not_yours_is_not_there(pages, night, ada):
    eve = pages.browser(person("eve", org_id="globex"))
    found = night.id_of("Inbox triage")
    for more in ("", "/review", "/retirement", f"/receipts/{found}"):
        assert eve.get(f"{SCHEDULES}/{found}{more}").status_code == 404
        answer = eve.get(f"/ui/globex/test/schedules/{found}{more}")
        assert answer.status_code == 404, more
        assert "Inbox" not in answer.text
    assert ada.get(f"{SCHEDULES}/{'7' * 8}-4f0e-4f53-9f0b-0a5d2f2d8a11").status_code == 404
    assert ada.get(f"{SCHEDULES}/nothing").status_code == 404
    assert pages.browser(person("bob", scopes=frozenset({"other"}))).get(f"{SCHEDULES}/{found}").status_code == 403


@pytest.mark.parametrize(
    ("more", "status"),
    [("?after=x", 400), ("?events_before=0", 422), ("?events_before=x", 422), ("/review?revision=9", 404), ("/review?revision=0", 422)],
)  # fmt: skip
def test_what_cannot_be_shown_is_refused(page_of, more, status):
    assert page_of("Inbox triage", more).status_code == status


def test_the_page_shows_an_ended_run_of_yesterday(page_of, night):
    loop = night.enabled("Latest", when=MIDNIGHT, every=3 * 3_600)
    ended(loop, MIDNIGHT + timedelta(hours=3), late=2)
    told = text_of(page_of("Latest"))
    assert "2.0 s at the median" in told
    assert "1 min 35 s" in told
    night.desks.pop("Latest").retire()
