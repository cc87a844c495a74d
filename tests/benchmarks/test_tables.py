"""The tables say what was measured, and the README's is of the figures that this code measures."""

import re
from pathlib import Path

import pytest

from benchmarks.__main__ import SUITES, main
from benchmarks.figures import Budget, Figure, plain_names
from benchmarks.growth_plot import drawn
from benchmarks.records import Records, read
from benchmarks.tables import BEGIN, END, markdown, number, put_into, text_table
from horarium.errors import Misconfigured

README = (Path(__file__).parents[2] / "README.md").read_text()
MACHINE = {"cores": "2", "CPU": "one"}
FIGURE = Figure(
    name="it", unit="ms", ours=1234.5, peer="that", peer_value=8.0, budget=Budget(greatest=5), runs=2, spread=0.256
)
GROWN = Figure(
    name="step by schedules on SQLite",
    unit="exponent",
    ours=0.02,
    budget=Budget(at_most=0.1),
    runs=60,
    spread=0.1,
    plot="1 ██ 1.1 ms",
    points=((1_000, 1.0), (10_000, 1.05), (100_000, 1.1)),
)


@pytest.fixture
def lines(tmp_path):
    def kept(*figures, suite="calendar", size="full"):
        records = Records(tmp_path / "bench.jsonl", size=size, machine=MACHINE)
        records.begin(suite)
        for figure in figures:
            records.add(suite, figure)
        return read(records.path)

    return kept


def test_a_table_for_people_leaves_out_what_nothing_is_in(lines):
    head, row = text_table(lines(FIGURE)).splitlines()
    assert head.split() == ["figure", "unit", "ours", "peer", "peer's", "ratio", "budget", "holds", "runs", "spread"]
    assert row.split() == ["it", "ms", "1,234", "that", "8", "0.0x", "<", "5", "NO", "2", "26%"]
    assert text_table([]) == "\n"


def test_markdown_tells_the_machine_and_that_a_short_run_has_no_figures(lines):
    full = markdown(lines(FIGURE))
    assert "<b>calendar</b>: 1 figures, 0 of 1 budgets kept</summary>" in full
    assert "(cores 2, CPU one)" in full
    assert "| it | ms | 1,234 | that | 8 | 0.0x | < 5 | NO | 2 | 26% |" in full.splitlines()
    assert "figures are none" not in full
    assert "figures are none" in markdown(lines(FIGURE, size="short"))


def test_where_it_was_measured_is_told_once_if_it_is_the_same_for_all_and_by_each_suite_otherwise(lines):
    lines(FIGURE)
    together = markdown(lines(GROWN, suite="growth"))
    assert together.startswith("Measured on 20")
    assert together.count("cores 2") == 1
    apart = markdown(lines(GROWN, suite="growth", size="short"))
    assert apart.startswith("<details>")
    assert apart.count("cores 2") == 2
    assert apart.count("figures are none") == 1


def test_the_table_goes_between_the_markers_and_nowhere_else(lines):
    page = f"before\n{BEGIN}\nold\n{END}\nafter\n"
    changed = put_into(page, "new")
    assert changed == f"before\n{BEGIN}\n\nnew\n{END}\nafter\n"
    assert put_into(changed, "new") == changed
    for wrong in ("", BEGIN, END, f"{END}{BEGIN}", page + BEGIN, page + page):
        with pytest.raises(Misconfigured, match="once each"):
            put_into(wrong, "new")


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (0.00004, "0.000040"), (0.4821, "0.482"), (12.34, "12.3"), (141_999.6, "142,000"), (-3.0, "-3")],
)
def test_numbers_have_no_exponents(value, text):
    assert number(value) == text


def test_the_command_shows_what_was_kept(lines, tmp_path, capsys):
    lines(GROWN, suite="growth")
    file, page, plot = tmp_path / "bench.jsonl", tmp_path / "page.md", tmp_path / "growth.svg"
    page.write_text(f"{BEGIN}\n{END}\n")
    assert main(["--table", str(file), "--into", str(page), "--plot", str(plot)]) == 0
    assert "step by schedules on SQLite" in page.read_text()
    assert plot.read_text().startswith("<svg")
    assert main(["--table", str(file)]) == 0
    assert main(["--table", str(file), "--markdown"]) == 0
    assert "| step by schedules on SQLite |" in capsys.readouterr().out


def test_the_readme_shows_the_figures_that_are_measured(monkeypatch):
    """Where a figure is renamed, added or dropped, `make bench` has to be run for its suite, and put into the README."""
    monkeypatch.delenv("HORARIUM_BENCH", raising=False)
    put_into(README, "")  # there is one place for it
    shown = README.partition(BEGIN)[2].partition(END)[0]
    suites = re.split(r"<summary><b>(\w+)</b>", shown)[1:]
    assert "calendar" in suites[::2]
    for suite, table in zip(suites[::2], suites[1::2], strict=True):
        rows = re.findall(r"^\| ([^|]+?) \|", table, re.MULTILINE)[2:]
        assert plain_names(rows) == plain_names(SUITES[suite].names()), suite


def test_no_two_figures_have_the_same_name(monkeypatch):
    monkeypatch.delenv("HORARIUM_BENCH", raising=False)
    names = [name for suite in SUITES.values() for name in suite.names()]
    assert len(set(plain_names(names))) == len(names)


def test_growth_is_drawn_with_its_exponents_and_the_bound(lines):
    picture = drawn(lines(GROWN, suite="growth"))
    assert "by schedules on SQLite" in picture
    assert ">0.02</text>" in picture
    assert 'class="bound"' in picture
    assert "100,000" in picture
    assert "prefers-color-scheme:dark" in picture
    assert "figures are none" not in picture
    assert "figures are none" in drawn(lines(GROWN, suite="growth", size="short"))


def test_what_costs_more_is_drawn_higher(lines):
    steep = Figure(**{name: getattr(GROWN, name) for name in GROWN.__slots__} | {"points": ((1, 1.0), (10, 8.0))})
    points = re.findall(r'<polyline points="([^"]+)" fill', drawn(lines(steep, suite="growth")))
    (first, last) = (tuple(map(float, point.split(","))) for point in points[0].split())
    assert first[0] < last[0]
    assert first[1] > last[1]


def test_there_is_no_picture_of_nothing(lines):
    with pytest.raises(Misconfigured, match="no figure of the suite growth"):
        drawn(lines(FIGURE))
