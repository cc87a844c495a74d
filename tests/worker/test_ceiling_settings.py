"""The three settings of seed 004: what they are by default, what they take, and how a bad one is told."""

from pathlib import Path

import pytest

from horarium.errors import Misconfigured
from horarium.schedule.ceilings import Ceilings
from worker.settings import Settings, ceilings_from, load

PER_PROFILE = "SCHEDULER_MAX_RUNS_PER_PROFILE_PER_MONTH"
TOTAL = "SCHEDULER_MAX_TOTAL_RUNS_PER_MONTH"
RETENTION = "SCHEDULER_EVENT_RETENTION_DAYS"


def settings(tmp_path: Path, **environ: str) -> Settings:
    return load(environ, data=tmp_path)


def test_by_default_a_profile_may_run_each_minute_and_nothing_else_is_on(tmp_path: Path) -> None:
    for found in (settings(tmp_path), settings(tmp_path, **{PER_PROFILE: "", TOTAL: "", RETENTION: ""})):
        assert found.ceilings == Ceilings(per_profile=43_200, total=None)
        assert found.event_retention_days is None


def test_all_three_are_read_under_the_names_of_the_seed(tmp_path: Path) -> None:
    found = settings(tmp_path, **{PER_PROFILE: "720", TOTAL: "288000", RETENTION: "90"})
    assert found.ceilings == Ceilings(per_profile=720, total=288_000)
    assert found.event_retention_days == 90
    assert ceilings_from({TOTAL: "5"}) == Ceilings(total=5)


@pytest.mark.parametrize(
    "value",
    ["0", "-1", "1.5", "1e3", "43,200", "43_200", " 7", "many", "\u0663", "9" * 14, "9" * 5_000, "off", "none"],
)
@pytest.mark.parametrize("name", [PER_PROFILE, TOTAL, RETENTION])
def test_a_bad_value_is_refused_by_name_with_what_is_expected(tmp_path: Path, name: str, value: str) -> None:
    with pytest.raises(Misconfigured) as refused:
        settings(tmp_path, **{name: value})
    said = str(refused.value)
    assert said.startswith(f"{name} is {value[:40]!r}; it is a whole number from 1 to ")
    assert "Leave it out" in said
    assert len(said) < 300


@pytest.mark.parametrize("environ", [{}, {PER_PROFILE: "720", TOTAL: "288000", RETENTION: "90"}])
def test_a_child_has_the_same_whatever_its_parent_inherited(tmp_path: Path, environ: dict[str, str]) -> None:
    told = settings(tmp_path, **environ)
    child = load({PER_PROFILE: "1", TOTAL: "2", RETENTION: "3", **told.environment()})
    assert (child.ceilings, child.event_retention_days) == (told.ceilings, told.event_retention_days)
