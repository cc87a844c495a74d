"""One go through the benchmarks: figures are kept as they come, and one suite's failure is no other's."""

import json

import pytest

from benchmarks import __main__ as command
from benchmarks.figures import Budget, Figure
from benchmarks.records import Records, read
from benchmarks.session import Session, Suite
from benchmarks.start_log import LostRuns
from horarium.errors import Misconfigured

KEYS = ["name", "ours", "peer", "peer_value", "ratio", "budget", "holds", "runs", "spread"]
KEPT = Figure(
    name="kept", unit="ms", ours=2, peer="it", peer_value=50, budget=Budget(least_ratio=20), runs=3, spread=0.5
)
OVER = Figure(name="over", unit="ms", ours=5, budget=Budget(at_most=4), runs=3, spread=0.1)


def suite(*figures, fault=None, names=None):
    def measure():
        yield from figures
        if fault is not None:
            raise fault

    return Suite(measure=measure, names=names or (lambda: [figure.name for figure in figures]), minutes=1)


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """Runs the command with these suites; its exit code, and the lines that it kept."""
    monkeypatch.delenv("HORARIUM_BENCH", raising=False)
    file = tmp_path / "build" / "bench.jsonl"

    def run(suites, *arguments):
        monkeypatch.setattr(command, "SUITES", suites)
        return command.main([*arguments, "--keep", str(file)]), read(file)

    return run


def test_a_line_has_the_keys_that_are_promised_first(kept, capsys):
    code, (line,) = kept({"one": suite(KEPT)}, "--json")
    assert code == 0
    assert list(line)[: len(KEYS)] == KEYS
    assert {key: line[key] for key in KEYS} == {
        "name": "kept",
        "ours": 2,
        "peer": "it",
        "peer_value": 50,
        "ratio": 25,
        "budget": ">= 20x",
        "holds": True,
        "runs": 3,
        "spread": 0.5,
    }
    assert (line["suite"], line["size"], line["unit"]) == ("one", "full", "ms")
    assert line["machine"]["Temporal server"].startswith("1.")
    assert [json.loads(each) for each in capsys.readouterr().out.splitlines()] == [line]


def test_all_suites_run_where_none_is_named_and_one_that_fails_loses_no_figure(kept, capsys):
    suites = {
        "one": suite(KEPT, fault=LostRuns("3 of 4 runs have not begun.")),
        "two": suite(OVER),
        "three": suite(KEPT),
    }
    code, lines = kept(suites)
    assert code == 1
    assert [(line["suite"], line["name"]) for line in lines] == [("one", "kept"), ("two", "over"), ("three", "kept")]
    shown, told = capsys.readouterr()
    assert shown.count("kept") == 2
    assert "3 of 4 runs have not begun." in told
    assert "Budgets not kept: over." in told
    assert "Suites that failed: one." in told


def test_a_suite_that_fails_is_an_exit_code_even_if_all_budgets_are_kept(kept):
    assert kept({"one": suite(KEPT, fault=TimeoutError("late"))})[0] == 1
    assert kept({"one": suite(KEPT)})[0] == 0
    assert kept({"one": suite(OVER)})[0] == 1


def test_what_is_measured_once_more_replaces_what_its_suite_had(kept):
    suites = {"one": suite(KEPT, OVER), "two": suite(OVER)}
    kept(suites)
    _, lines = kept({**suites, "one": suite(KEPT)}, "one")
    assert sorted((line["suite"], line["name"]) for line in lines) == [("one", "kept"), ("two", "over")]


def test_a_suite_that_yields_another_figure_than_it_names_has_failed(kept, capsys):
    code, lines = kept({"one": suite(KEPT, OVER, names=lambda: ["kept", "under"])})
    assert (code, len(lines)) == (1, 2)
    assert "under" in capsys.readouterr().err


def test_an_interrupted_run_has_kept_what_it_measured(tmp_path):
    records = Records(tmp_path / "bench.jsonl", size="short", machine={})
    session = Session(suites={"one": suite(KEPT, fault=KeyboardInterrupt())}, records=records, each=lambda _: None)
    with pytest.raises(KeyboardInterrupt):
        session.run(["one"], full=False)
    assert [line["name"] for line in read(records.path)] == ["kept"]


def test_a_suite_that_there_is_not_is_told(capsys):
    with pytest.raises(SystemExit):
        command.main(["tomorrow"])
    assert "there is no suite 'tomorrow'; there are calendar, api, starts" in capsys.readouterr().err


@pytest.mark.parametrize("content", [None, "no JSON\n", "[1]\n", '{"name": "alone"}\n'])
def test_a_file_without_figures_is_told(tmp_path, content, capsys):
    file = tmp_path / "file"
    if content is not None:
        file.write_text(content)
    with pytest.raises(Misconfigured, match="holds no figures"):
        read(file)
    assert command.main(["--table", str(file)]) == 2
    assert "holds no figures" in capsys.readouterr().err


def test_a_wrong_size_is_told(monkeypatch, capsys):
    monkeypatch.setenv("HORARIUM_BENCH", "tiny")
    assert command.main(["calendar"]) == 2
    assert "it is one of full, short" in capsys.readouterr().err
