"""The tables say what was measured, and those of our pages are of the figures that this code measures."""

import re
from pathlib import Path

import pytest

from benchmarks.__main__ import SUITES, main
from benchmarks.figures import Budget, Figure, plain_names
from benchmarks.growth_plot import drawn
from benchmarks.headlines import HEADLINES, TOLD_AT_MOST, short
from benchmarks.machine import told
from benchmarks.pages import END, SHORT_BEGIN, WHOLE_BEGIN, between, put_into
from benchmarks.records import Records, read
from benchmarks.tables import NOT_MEASURED, markdown, number, text_table, times
from horarium.errors import Misconfigured

ROOT = Path(__file__).parents[2]
README, ALL = (ROOT / "README.md").read_text(), (ROOT / "deploy" / "FIGURES.md").read_text()
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


def made(**values):
    return Figure(**{"name": "it", "unit": "ms", "ours": 1.0, "runs": 2, "spread": 0.1} | values)


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
    assert row.split() == ["it", "ms", "1,234", "that", "8", "0.006x", "<", "5", "NO", "2", "26%"]
    assert text_table([]) == "\n"


def test_markdown_tells_the_machine_and_that_a_short_run_has_no_figures(lines):
    full = markdown(lines(FIGURE))
    assert "## calendar\n\n1 figures, 0 of 1 budgets kept.\n" in full
    assert "(cores 2, CPU one)" in full
    assert "| it | ms | 1,234 | that | 8 | 0.006x | < 5 | NO | 2 | 26% |" in full.splitlines()
    assert "figures are none" not in full
    assert "figures are none" in markdown(lines(FIGURE, size="short"))
    assert "figures are none" in short(lines(FIGURE, size="short"))


def test_where_it_was_measured_is_told_once_if_it_is_the_same_for_all_and_by_each_suite_otherwise(lines):
    lines(FIGURE)
    together = markdown(lines(GROWN, suite="growth"))
    assert together.startswith("Measured on 20")
    assert together.count("cores 2") == 1
    apart = markdown(lines(GROWN, suite="growth", size="short"))
    assert apart.startswith("## calendar")
    assert apart.count("cores 2") == 2
    assert apart.count("figures are none") == 1


def test_figures_of_a_suite_that_were_lost_are_told(lines):
    page = markdown(lines(FIGURE), {"calendar": ["it", "this (2,000)", "that"], "growth": ["more"]})
    assert page.endswith("\nNot measured: this; that.\n")
    assert NOT_MEASURED not in markdown(lines(FIGURE), {"calendar": ["it"]})


def test_of_several_machines_what_they_have_in_common_is_told_once():
    assert told([MACHINE, {**MACHINE, "CPU": "another"}, MACHINE]) == "cores 2, CPU one / another"


def test_what_is_not_kept_is_told_before_all_else(lines):
    figures = [made(name="after: every minute", peer="croniter", peer_value=10.0, budget=Budget(least_ratio=20))]
    told_first = short(lines(*figures, made(name="after: 30 February", budget=Budget(at_most=5)))).splitlines()
    assert told_first[2:6] == [
        "**1 of 2 budgets are not kept:**",
        "",
        "- after: every minute: 1 ms, 10.0x beside croniter; the budget is >= 20x",
        "",
    ]
    kept = short(
        lines(made(name="after: every minute", peer="croniter", peer_value=20.0, budget=Budget(least_ratio=20)))
    )
    assert kept.splitlines()[2:4] == ["**All 1 budgets are kept.**", ""]
    many = [made(name=f"{number}", budget=Budget(at_most=0)) for number in range(TOLD_AT_MOST + 2)]
    assert "\n- and 2 more, each marked with NO in its table\n" in short(lines(*many))


@pytest.mark.parametrize(
    ("ours", "least", "shown"), [(2.012, 0.5, "0.497x"), (1.002, 1, "0.998x"), (0.0501, 20, "19.9x")]
)
def test_a_ratio_that_misses_its_budget_by_little_is_not_shown_as_what_it_misses(lines, ours, least, shown):
    figure = made(
        name="list 25 on SQLite, p99", ours=ours, peer="that", peer_value=1.0, budget=Budget(least_ratio=least)
    )
    kept = lines(figure, suite="api")
    assert f" {shown} beside that; the budget is >= {least}x" in short(kept)
    assert f"| that | {shown} | >= {least}x | **NO** |" in short(kept)
    assert f"| {shown} | >= {least}x | NO |" in markdown(kept)


def test_a_ratio_that_is_just_kept_is_shown_as_that():
    assert [times(each) for each in (0.5, 1.0, 2.3, 4.6, 20.0)] == ["0.500x", "1.0x", "2.3x", "4.6x", "20.0x"]


def test_a_row_sums_up_all_that_ask_the_same(lines):
    figures = [
        made(name=f"after: every {name}", ours=ours, peer="croniter", peer_value=60.0, budget=Budget(least_ratio=20))
        for name, ours in (("minute", 1.0), ("second", 4.0), ("15 s", 2.0))
    ]
    rows = short(lines(*figures)).splitlines()
    row = "| Next instant of a calendar, beside croniter | 1 to 4 ms | croniter | 15.0x to 60.0x | >= 20x | **NO**, 2 of 3 |"
    assert row in rows
    assert "| Next instant of a calendar, beside cronsim | not measured |  |  |  |  |" in rows


def test_the_short_table_is_short(lines):
    rows = short(lines(FIGURE)).splitlines()
    assert len(HEADLINES) < len(rows) <= 40


def test_figures_go_between_the_lines_of_a_page_and_nowhere_else(lines):
    for begin, shown in ((SHORT_BEGIN, short), (WHOLE_BEGIN, markdown)):
        page, figures = f"before\n{begin}\nold\n{END}\nafter\n", lines(FIGURE)
        changed = put_into(page, figures, {})
        assert changed == f"before\n{begin}\n\n{shown(figures)}\n{END}\nafter\n"
        assert between(changed) == f"\n\n{shown(figures)}\n"
        assert put_into(changed, figures, {}) == changed
        for wrong in (begin, f"{END}{begin}", page + begin, page + page):
            with pytest.raises(Misconfigured, match="once each"):
                put_into(wrong, figures, {})
    for wrong in ("", END, SHORT_BEGIN + WHOLE_BEGIN + END):
        with pytest.raises(Misconfigured, match="has to have one of the lines"):
            put_into(wrong, lines(FIGURE), {})


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (0.00004, "0.000040"), (0.4821, "0.482"), (12.34, "12.3"), (141_999.6, "142,000"), (-3.0, "-3")],
)
def test_numbers_have_no_exponents(value, text):
    assert number(value) == text


def test_the_command_shows_what_was_kept(lines, tmp_path, capsys):
    lines(GROWN, suite="growth")
    file, page, whole, plot = (tmp_path / name for name in ("bench.jsonl", "page.md", "whole.md", "growth.svg"))
    page.write_text(f"{SHORT_BEGIN}\n{END}\n")
    whole.write_text(f"{WHOLE_BEGIN}\n{END}\n")
    assert main(["--table", str(file), "--into", str(page), "--into", str(whole), "--plot", str(plot)]) == 0
    assert "| Growth with what is stored, on SQLite | 0.02 exponent |" in page.read_text()
    assert "| step by schedules on SQLite |" in whole.read_text()
    assert plot.read_text().startswith("<svg")
    assert main(["--table", str(file)]) == 0
    assert main(["--table", str(file), "--markdown"]) == 0
    assert "| step by schedules on SQLite |" in capsys.readouterr().out


def test_where_there_is_nothing_to_draw_the_pages_have_their_figures_anyway(lines, tmp_path, capsys):
    lines(FIGURE)
    page = tmp_path / "page.md"
    page.write_text(f"{WHOLE_BEGIN}\n{END}\n")
    given = ["--table", str(tmp_path / "bench.jsonl"), "--plot", str(tmp_path / "growth.svg"), "--into", str(page)]
    assert main(given) == 2
    assert "| it |" in page.read_text()
    assert "no figure of the suite growth" in capsys.readouterr().err


def test_the_page_of_all_figures_shows_those_that_are_measured(monkeypatch):
    """Where a figure is renamed, added or dropped, `make bench` has to be run for its suite, and put into the page."""
    monkeypatch.delenv("HORARIUM_BENCH", raising=False)
    suites = re.split(r"^## (\w+)$", between(ALL), flags=re.MULTILINE)[1:]
    assert "calendar" in suites[::2]
    for suite, table in zip(suites[::2], suites[1::2], strict=True):
        rows = re.findall(r"^\| ([^|]+?) \|", table, re.MULTILINE)[2:]
        lost = table.partition(NOT_MEASURED)[2].partition(".\n")[0]
        shown = [*plain_names(rows), *filter(None, lost.split("; "))]
        assert sorted(shown) == sorted(plain_names(SUITES[suite].names())), suite


def test_the_readme_shows_each_headline_and_both_pages_are_of_the_same_figures():
    """After a change: `python -m benchmarks --table build/bench.jsonl --into README.md --into deploy/FIGURES.md`."""
    rows = re.findall(r"^\| ([^|]+?) \| (?!---)", between(README), re.MULTILINE)
    assert rows == [each.asked for each in HEADLINES]
    in_all = [tuple(map(int, found)) for found in re.findall(r"(\d+) of (\d+) budgets kept", between(ALL))]
    kept, of = (sum(numbers) for numbers in zip(*in_all, strict=True))
    told_there = f"**{of - kept} of {of} budgets are not kept:**" if kept < of else f"**All {of} budgets are kept.**"
    assert told_there in between(README)


def test_each_headline_is_of_figures_that_there_are_and_each_budget_is_of_a_headline(monkeypatch):
    monkeypatch.delenv("HORARIUM_BENCH", raising=False)
    for headline in HEADLINES:
        names = SUITES[headline.suite].names()
        assert any(re.fullmatch(headline.figures, name) for name in names), headline
    suite, head, untold = "", [], []
    for row in between(ALL).splitlines():
        if row.startswith("## "):
            suite = row.removeprefix("## ")
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        if cells[0] == "figure":
            head = cells
        elif row.startswith("| ") and "---" not in row:
            line = {"suite": suite, "name": cells[0], **dict(zip(head, cells, strict=True))}
            line.setdefault("peer", "")
            if line.get("budget") and not any(headline.answers(line) for headline in HEADLINES):
                untold.append(line)
    assert untold == []


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
