"""A person reviews an exact version and decides: it is done once, on exactly what was shown, or not at all."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import update

from horarium.catalog import Catalog, presence
from horarium.catalog.environments import change_environment
from horarium.catalog.schedules import require_schedule
from horarium.catalog.tables import workers
from horarium.control.principals import WRITE_SCOPE, Principal, PrincipalKind
from horarium.errors import Forbidden
from tests.api.house import HUMAN, PROGRAM
from tests.control.desk import SCOPE, Desk
from tests.pages.browser import HOME, Browser, Pages, person, text_of
from tests.pages.forms import form, has_button, press
from tests.pages.night import MORNING, Night, document

SCHEDULES = f"{HOME}/schedules"


@pytest.fixture(scope="module")
def night(catalog: Catalog) -> Night:
    return Night(catalog)


@pytest.fixture(scope="module")
def pages(catalog: Catalog, night: Night) -> Iterator[Pages]:
    made = Pages(catalog, now=lambda: MORNING)
    yield made
    made.close()


@pytest.fixture(autouse=True)
def everything_is_there(pages: Pages, catalog: Catalog) -> None:
    """Both workers are there, by the clock of the pages, and so are the contents."""
    pages.content.readable = pages.content.writable = True
    pages.hands.calls.clear()
    beat(catalog, MORNING)


def beat(catalog: Catalog, when: Any) -> None:
    with catalog.writing() as connection:
        connection.execute(update(workers).where(workers.c.role.in_(presence.ROLES)).values(seen_at=when))


@pytest.fixture
def desk(night: Night, catalog: Catalog) -> Desk:
    """One that was published and never enabled."""
    made = night.published("Inbox triage", zone="Europe/Zurich")
    made.now = MORNING
    beat(catalog, MORNING)
    return made


def address(desk: Desk, *more: str) -> str:
    return "/".join([SCHEDULES, desk.key.schedule_id, *more])


def standing(desk: Desk) -> tuple[int, bool]:
    """The generation, and whether it fires."""
    found = desk.activation()
    return found.generation, found.is_live


def generation(desk: Desk) -> int:
    """The generation of a schedule that may never have been enabled."""
    found: int = desk.read(lambda connection: require_schedule(connection, desk.key).generation)
    return found


def test_the_review_tells_what_it_would_do_and_that_nothing_speaks_against_it(ada: Browser, desk: Desk) -> None:
    page = ada.get(address(desk, "review"))
    told = text_of(page)
    for part in (
        "Revision 1: weekdays at 07:30 Europe/Zurich",
        "22 runs in the next 30 days",
        "Tue 1 Dec 2026 07:30 Europe/Zurich",
        "Nothing was enabled before.",
        "Nothing speaks against enabling it now.",
        "Enable revision 1",
    ):
        assert part in told, (part, told)
    assert not has_button(page, "Pause")


def test_a_person_enables_pauses_and_retires(ada: Browser, desk: Desk, pages: Pages) -> None:
    answer = press(ada, ada.get(address(desk, "review")), "Enable revision 1")
    assert answer.status_code == 303, answer.text
    receipt = text_of(ada.get(answer.headers["location"]))
    assert "Enabled Revision 1 fires from now on." in receipt
    assert standing(desk) == (1, True)

    page = ada.get(address(desk, "review"))
    assert has_button(page, "Enable again revision 1")
    answer = press(ada, page, "Pause")
    receipt = text_of(ada.get(answer.headers["location"]))
    assert "Paused Nothing of it fires any more." in receipt
    assert "Generation 2; generation 1 ended" in receipt
    assert standing(desk) == (2, False)

    page = ada.get(address(desk, "review"))
    assert "retirement" in page.text
    asked = ada.get(address(desk, "retirement"))
    assert "This is final." in text_of(asked)
    answer = press(ada, asked, "Retire for good")
    assert "Retired It never fires again." in text_of(ada.get(answer.headers["location"]))
    assert "retired" in text_of(ada.get(address(desk)))
    assert not has_button(ada.get(address(desk, "review")), "Enable revision 1")
    assert not has_button(ada.get(address(desk, "retirement")), "Retire for good")
    # The workflows of what ended were told, after each commit.
    assert [call for call in pages.hands.calls if call[0] == "nudge"] == [
        ("nudge", (1, "pause")),
        ("nudge", (2, "retire")),
    ]


def test_a_form_that_is_sent_twice_does_one_thing(ada: Browser, desk: Desk) -> None:
    page = ada.get(address(desk, "review"))
    first, second = (press(ada, page, "Enable revision 1") for _ in range(2))
    assert first.status_code == second.status_code == 303
    assert first.headers["location"] == second.headers["location"]
    assert standing(desk) == (1, True)


def test_what_changed_meanwhile_is_shown_and_nothing_is_done(ada: Browser, desk: Desk, pages: Pages) -> None:
    page = ada.get(address(desk, "review"))
    bob = pages.browser(person("bob"))
    assert press(bob, bob.get(address(desk, "review")), "Enable revision 1").status_code == 303
    answer = press(ada, page, "Enable revision 1")
    assert answer.status_code == 409
    told = text_of(answer)
    assert "It was not enabled" in told
    assert "is at generation 1, not 0" in told
    assert "enabled bob" in told
    assert "published" not in told
    assert "Review what is there now" in told
    assert standing(desk) == (1, True)


def test_what_is_enabled_is_exactly_what_was_shown(ada: Browser, desk: Desk) -> None:
    page = ada.get(address(desk, "review"))
    desk.publish(document("Inbox triage", every=60))
    assert press(ada, page, "Enable revision 1").status_code == 303
    assert desk.activation().revision == 1
    told = text_of(ada.get(address(desk, "review")))
    assert "When weekdays at 07:30 Europe/Zurich" in told
    assert "every minute" in told
    # What is paused is what is enabled, whatever the head is.
    assert press(ada, ada.get(address(desk, "review")), "Pause").status_code == 303


def test_an_older_version_can_be_reviewed(ada: Browser, desk: Desk) -> None:
    desk.publish(document("Inbox triage", every=60))
    page = ada.get(address(desk, "review"), params={"revision": "1"})
    assert "This is not the newest version." in text_of(page)
    assert press(ada, page, "Enable revision 1").status_code == 303
    assert desk.activation().revision == 1


@pytest.mark.parametrize(
    ("field", "value", "status", "told"),
    [
        ("digest", "sha256:" + "0" * 64, 409, "has the digest"),
        ("environment_epoch", "7", 409, "authority epoch"),
        ("reset_generation", "7", 409, "reset generation"),
        ("revision", "9", 404, "9"),
        ("revision", "one", 422, "integer"),
        ("generation", "", 422, "integer"),
        ("generation", "99999999999999999999", 422, "integer"),
        ("digest", "none", 422, "sha256"),
        ("key", "", 422, "Nothing changed"),
        ("key", " a", 422, "Nothing changed"),
        ("act", "trigger", 400, "does not say what to do"),
    ],
)
def test_a_form_that_says_something_else_than_was_shown_does_nothing(
    ada: Browser, desk: Desk, field: str, value: str, status: int, told: str
) -> None:
    answer = press(ada, ada.get(address(desk, "review")), "Enable revision 1", **{field: value})
    assert answer.status_code == status, answer.text
    assert told in text_of(answer)
    assert generation(desk) == 0


def test_a_new_epoch_since_the_review_is_told(ada: Browser, desk: Desk, catalog: Catalog) -> None:
    page = ada.get(address(desk, "review"))
    with catalog.writing() as connection:
        change_environment(connection, SCOPE, authority_epoch=2)
    try:
        answer = press(ada, page, "Enable revision 1")
        assert answer.status_code == 409
        assert "Nothing of the schedule itself." in text_of(answer)
    finally:
        with catalog.writing() as connection:
            change_environment(connection, SCOPE, authority_epoch=1)


def test_everything_that_speaks_against_it_is_told_at_once(
    ada: Browser, desk: Desk, pages: Pages, catalog: Catalog
) -> None:
    page = ada.get(address(desk, "review"))
    pages.content.readable = pages.content.writable = False
    beat(catalog, MORNING - timedelta(minutes=5))
    blocked = ada.get(address(desk, "review"))
    told = text_of(blocked)
    for code in ("execution_unavailable", "input_unreadable", "output_missing"):
        assert code in told, told
    assert "horarium worker" in told
    assert not has_button(blocked, "Enable revision 1")
    # Whoever loaded it before is refused by the same reasons: without workers at first, and may send it again.
    answer = press(ada, page, "Enable revision 1")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
    beat(catalog, MORNING)
    refused = press(ada, answer, "Try the same again")
    assert refused.status_code == 409
    assert "input_unreadable" in text_of(refused)
    assert "output_missing" in text_of(refused)
    pages.content.readable = pages.content.writable = True
    assert press(ada, answer, "Try the same again").status_code == 303
    assert standing(desk) == (1, True)


def test_pausing_needs_no_worker(ada: Browser, desk: Desk, catalog: Catalog) -> None:
    press(ada, ada.get(address(desk, "review")), "Enable revision 1")
    beat(catalog, MORNING - timedelta(minutes=5))
    assert press(ada, ada.get(address(desk, "review")), "Pause").status_code == 303
    assert standing(desk) == (2, False)


def test_a_form_of_another_session_or_another_site_does_nothing(ada: Browser, desk: Desk, pages: Pages) -> None:
    where, fields = form(ada.get(address(desk, "review")), "Enable revision 1")
    assert ada.post(where, {**fields, "form_token": "x"}).status_code == 403
    assert ada.post(where, fields, headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert pages.browser(person("bob")).post(where, fields).status_code == 403
    assert pages.browser().post(where, fields).status_code == 303  # to the sign-in
    assert generation(desk) == 0


def test_a_key_has_no_session_so_it_decides_nothing(ada: Browser, desk: Desk, pages: Pages) -> None:
    key = Principal(name="ci", kind=PrincipalKind.KEY, org_id="acme", scopes=frozenset({WRITE_SCOPE}))
    with pytest.raises(Forbidden, match="human_session_required"):
        pages.browser(key)
    where, fields = form(ada.get(address(desk, "review")), "Enable revision 1")
    # A token for the API opens no page, a person's neither.
    for token in (PROGRAM, HUMAN):
        answer = pages.browser().post(where, fields, headers={"Authorization": f"Bearer {token}"})
        assert answer.status_code == 303
        assert "/ui/sign-in" in answer.headers["location"]
    assert generation(desk) == 0


def test_a_receipt_is_shown_to_whoever_made_it(ada: Browser, desk: Desk, pages: Pages, night: Night) -> None:
    place = press(ada, ada.get(address(desk, "review")), "Enable revision 1").headers["location"]
    assert ada.get(place).status_code == 200
    assert pages.browser(person("bob")).get(place).status_code == 404
    other = night.published("Other")
    assert ada.get(place.replace(desk.key.schedule_id, other.key.schedule_id)).status_code == 404


def test_retiring_goes_by_what_was_shown_too(ada: Browser, desk: Desk, pages: Pages) -> None:
    asked = ada.get(address(desk, "retirement"))
    press(ada, ada.get(address(desk, "review")), "Enable revision 1")
    answer = press(ada, asked, "Retire for good")
    assert answer.status_code == 409
    assert "It was not retired" in text_of(answer)
    assert standing(desk) == (1, True)
    assert press(ada, ada.get(address(desk, "retirement")), "Retire for good").status_code == 303
    again = press(ada, asked, "Retire for good")
    assert again.status_code == 409
