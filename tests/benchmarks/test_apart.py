"""A part of a suite that fails is told, and loses no other its figures."""

import pytest

from benchmarks.apart import each_apart
from benchmarks.figures import Figure


def measured(name, fault=None):
    def measure():
        yield Figure(name=name, unit="ms", ours=1, runs=1, spread=0)
        if fault is not None:
            raise fault

    return measure


def test_each_part_has_its_turn_and_what_failed_is_told_at_the_end(capsys):
    parts = {"one": measured("first", ValueError("no disk")), "two": measured("second"), "three": measured("third")}
    found = []

    def collect():
        for figure in each_apart(parts):
            found.append(figure.name)  # noqa: PERF401 # what came before the error is looked at

    with pytest.raises(ExceptionGroup, match="1 of 3 parts have failed") as failed:
        collect()
    assert found == ["first", "second", "third"]
    assert [str(each) for each in failed.value.exceptions] == ["no disk"]
    told = capsys.readouterr().err
    assert told.index("one …") < told.index("ValueError: no disk") < told.index("two …")


def test_nothing_is_raised_where_nothing_failed():
    assert [each.name for each in each_apart({"one": measured("first")})] == ["first"]
