"""Which build of the workers a process is: both words or neither, and none that Temporal would refuse later."""

from pathlib import Path

import pytest

from horarium.errors import Misconfigured
from worker.settings import Deployment, load


def deployed(tmp_path: Path, name: str, build_id: str) -> Deployment | None:
    return load({"HORARIUM_DEPLOYMENT": name, "HORARIUM_BUILD_ID": build_id}, data=tmp_path).deployment


def test_a_process_that_is_told_nothing_is_of_no_build(tmp_path: Path) -> None:
    assert load({}, data=tmp_path).deployment is None
    assert deployed(tmp_path, "", "") is None


@pytest.mark.parametrize("build_id", ["1", "0.2.0", "2026-11-30", "0.2.0-rc.1+4f2a9c1", "a" * 100])
def test_a_build_is_named_by_both(tmp_path: Path, build_id: str) -> None:
    assert deployed(tmp_path, "horarium", build_id) == Deployment(name="horarium", build_id=build_id)


@pytest.mark.parametrize(
    ("name", "build_id", "wrong"),
    [
        ("horarium", "", "HORARIUM_BUILD_ID is not"),
        ("", "1", "HORARIUM_DEPLOYMENT is not"),
        ("hora.rium", "1", "HORARIUM_DEPLOYMENT is 'hora.rium'"),
        ("horarium", "1 2", "HORARIUM_BUILD_ID is '1 2'"),
        ("horarium", ".1", "HORARIUM_BUILD_ID is '.1'"),
        ("horarium", "1:2", "HORARIUM_BUILD_ID is '1:2'"),
        ("horarium", "é", "HORARIUM_BUILD_ID is 'é'"),
        ("horarium", "1\n", "HORARIUM_BUILD_ID is"),
        ("a" * 101, "1", "100 characters at the most"),
    ],
)
def test_half_a_name_or_an_odd_one_is_refused_with_the_variable(
    tmp_path: Path, name: str, build_id: str, wrong: str
) -> None:
    with pytest.raises(Misconfigured, match=wrong):
        deployed(tmp_path, name, build_id)


@pytest.mark.parametrize("environ", [{}, {"HORARIUM_DEPLOYMENT": "horarium", "HORARIUM_BUILD_ID": "0.2.0"}])
def test_a_child_is_of_the_same_build_whatever_its_parent_inherited(tmp_path: Path, environ: dict[str, str]) -> None:
    settings = load(environ, data=tmp_path)
    inherited = {"HORARIUM_DEPLOYMENT": "another", "HORARIUM_BUILD_ID": "9"}
    assert load({**inherited, **settings.environment()}).deployment == settings.deployment
