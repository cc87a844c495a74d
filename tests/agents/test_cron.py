"""A schedule is stated and never inferred: six texts as data, and a form element that is never itself a schedule."""

import json

import pytest
from pydantic import ValidationError

from horarium.agents import AgentConfig, CronInput, CronSchedule, presets_in
from horarium.calendar import parse_cron
from horarium.calendar.cron import POSITION_NAMES
from horarium.errors import InvalidSchedule

WEEKDAYS = {
    "minute": "30",
    "hour": "7",
    "day_of_month": "*",
    "month": "*",
    "day_of_week": "mon-fri",
    "timezone": "Europe/Zurich",
}


def faults(document: object, kind=CronSchedule) -> list[tuple[tuple[object, ...], str, str]]:
    with pytest.raises(ValidationError) as caught:
        kind.model_validate(document)
    return [(each["loc"], each["type"], each["msg"]) for each in caught.value.errors()]


def test_a_schedule_survives_its_own_dump_in_python_and_in_json():
    schedule = CronSchedule(**WEEKDAYS)
    assert schedule.model_dump() == WEEKDAYS
    assert CronSchedule.model_validate(schedule.model_dump()) == schedule
    assert CronSchedule.model_validate_json(schedule.model_dump_json()) == schedule
    config = AgentConfig(cron=schedule)
    assert AgentConfig.model_validate(config.model_dump()) == config
    assert AgentConfig.model_validate_json(config.model_dump_json()) == config


def test_a_config_may_have_no_schedule():
    assert AgentConfig().cron is None
    assert AgentConfig.model_validate({"cron": None}).cron is None
    assert AgentConfig.model_validate({"cron": WEEKDAYS}).cron == CronSchedule(**WEEKDAYS)


@pytest.mark.parametrize("name", WEEKDAYS)
def test_nothing_is_filled_in_for_whoever_leaves_it_out(name):
    left = {each: value for each, value in WEEKDAYS.items() if each != name}
    assert faults(left) == [((name,), "missing", "Field required")]


def test_what_is_no_schedule_is_told_of_each_position():
    assert [loc for loc, _, _ in faults({})] == [(name,) for name in WEEKDAYS]


@pytest.mark.parametrize("name", WEEKDAYS)
@pytest.mark.parametrize("value", [0, None, 7.5, True, ["1"], b"1"])
def test_a_position_is_a_text(name, value):
    assert [loc for loc, _, _ in faults(WEEKDAYS | {name: value})] == [(name,)]


def test_an_unknown_member_is_refused():
    assert faults(WEEKDAYS | {"second": "0"})[0][:2] == (("second",), "extra_forbidden")


@pytest.mark.parametrize("document", ["30 7 * * 1-5", None, [], list(WEEKDAYS.values())])
def test_a_schedule_is_an_object(document):
    assert [loc for loc, _, _ in faults(document)] == [()]


@pytest.mark.parametrize("name", POSITION_NAMES)
@pytest.mark.parametrize("text", ["99", "", " 1", "x", "5-1", "*/99", "@daily", "1,,2", "?", "L", "{x}", "1\n"])
def test_a_bad_position_is_refused_at_itself_with_the_calendars_own_sentence(name, text):
    with pytest.raises(InvalidSchedule) as refused:
        parse_cron({each: text if each == name else "*" for each in POSITION_NAMES}, "UTC")
    said = " ".join(fault.sentence for fault in refused.value.faults)
    code = refused.value.faults[0].code
    assert faults(WEEKDAYS | {name: text}) == [((name,), code, said)]
    assert faults({"cron": WEEKDAYS | {name: text}}, AgentConfig) == [(("cron", name), code, said)]


@pytest.mark.parametrize("timezone", ["", "Europe/Atlantis", "zurich", "+01:00", "{x}"])
def test_a_bad_zone_is_refused_at_itself_with_the_calendars_own_sentence(timezone):
    with pytest.raises(InvalidSchedule) as refused:
        parse_cron("* * * * *", timezone)
    (fault,) = refused.value.faults
    assert faults(WEEKDAYS | {"timezone": timezone}) == [(("timezone",), fault.code, fault.sentence)]


def test_every_position_that_is_wrong_is_told_at_once():
    wrong = WEEKDAYS | {"minute": "60", "month": "13", "timezone": "Mars/Olympus"}
    assert [loc for loc, _, _ in faults(wrong)] == [("minute",), ("month",), ("timezone",)]


def test_positions_that_are_right_by_themselves_may_be_refused_together():
    half = ",".join(["1"] * 300)
    ((loc, code, sentence),) = faults(WEEKDAYS | {"minute": half, "hour": half})
    assert (loc, code) == ((), "cron_too_long")
    assert "together" in sentence


def test_a_form_is_no_schedule_whatever_it_is_written_as():
    element = CronInput()
    for form in (element.published(), dict(vars(element)), element):
        assert faults(form)
        assert all(loc[0] == "cron" for loc, _, _ in faults({"cron": form}, AgentConfig))
    with pytest.raises(ValidationError):
        AgentConfig.model_validate_json(json.dumps({"cron": element.published()}))


def test_the_form_element_is_one_object_that_json_holds():
    published = CronInput(label="When", help="At which times.").published()
    assert json.loads(json.dumps(published)) == published
    assert (published["element"], published["label"], published["help"]) == ("cron", "When", "At which times.")
    assert [each["name"] for each in published["positions"]] == list(WEEKDAYS)


def test_every_preset_is_a_whole_schedule_on_the_clock_of_its_zone():
    presets = presets_in("America/New_York")
    assert presets["Every weekday at 07:30"] == CronSchedule(
        **WEEKDAYS | {"day_of_week": "1-5", "timezone": "America/New_York"}
    )
    crons = {name: " ".join(getattr(schedule, each) for each in POSITION_NAMES) for name, schedule in presets.items()}
    assert crons == {
        "Every hour": "0 * * * *",
        "Every day at 06:00": "0 6 * * *",
        "Every weekday at 07:30": "30 7 * * 1-5",
        "Every Monday at 08:00": "0 8 * * 1",
        "On the first of the month at 06:00": "0 6 1 * *",
    }
    assert {schedule.timezone for schedule in presets.values()} == {"America/New_York"}
    for preset in CronInput(presets=presets).published()["presets"]:
        assert CronSchedule.model_validate(preset["value"]) == presets[preset["name"]]


def test_presets_of_a_zone_that_is_none_are_refused():
    with pytest.raises(ValidationError, match="Atlantis"):
        presets_in("Europe/Atlantis")


@pytest.mark.parametrize("number", range(5))
def test_the_bounds_and_names_that_are_shown_are_those_that_the_calendar_takes(number):
    control = CronInput().published()["positions"][number]

    def takes(text: str) -> bool:
        try:
            CronSchedule.model_validate(dict.fromkeys(POSITION_NAMES, "*") | {control["name"]: text, "timezone": "UTC"})
        except ValidationError:
            return False
        return True

    taken = [value for value in range(100) if takes(str(value))]
    assert taken == list(range(control["minimum"], control["maximum"] + 1))
    known = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
    known += ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
    assert control["names"] == [name for name in known if takes(name)]
