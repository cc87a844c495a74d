"""The page of capacity planning adds up: what it derives follows from the table at its top, and that from real figures."""

import re
from pathlib import Path

import pytest

from benchmarks import cost, scale, starts
from benchmarks.capacity import SCHEDULES, computed, refreshed, sources
from benchmarks.figures import plain_names
from horarium.catalog.engine import READERS
from horarium.catalog.postgresql import WRITERS
from horarium.errors import Misconfigured
from starter.setup import RETENTION
from worker.settings import DEFAULT_CACHED_WORKFLOWS

PAGE = (Path(__file__).parents[2] / "deploy" / "CAPACITY.md").read_text()
SMALL = """\
| symbol | what | value | from |
| `f` | a day | 24 | assumed: hourly |
| `q` | statements | 31 | measured: database statements |

| symbol | what | how | 1,000 | 100,000 | 1,000,000 |
| `R` | occurrences a day | `n * f` | 24,000 | 2,400,000 | 24,000,000 |
| `Q` | statements a second | `R / 86400 * q` | 8.61 | 861 | 8,611 |
"""


def test_what_the_page_derives_follows_from_its_table():
    """After a change: `python -m benchmarks --table build/bench.jsonl --capacity deploy/CAPACITY.md`."""
    assert refreshed(PAGE) == PAGE
    derived = re.findall(r"^\| `(\w+)` \| [^|]+ \| `", PAGE, re.MULTILINE)
    assert len(derived) == len(set(derived)) > 15


def test_its_columns_are_for_the_numbers_that_its_head_names():
    heads = re.findall(r"^\| symbol \| what \| how \| (.+) \|$", PAGE, re.MULTILINE)
    assert heads == [" | ".join(f"{count:,}" for count in SCHEDULES)]


def test_what_it_calls_measured_is_a_figure_of_the_suites(monkeypatch):
    monkeypatch.delenv("HORARIUM_BENCH", raising=False)
    assert set(sources(PAGE).values()) <= set(plain_names([*cost.names(), *starts.names(), *scale.names()]))


@pytest.mark.parametrize(
    ("symbol", "value"),
    [("j", DEFAULT_CACHED_WORKFLOWS), ("o", 2 * (READERS + WRITERS)), ("d", RETENTION.days)],
)
def test_what_it_calls_set_is_as_the_code_has_it(symbol, value):
    assert f"| {value:,} | set: " in re.search(rf"^\| `{symbol}` .*$", PAGE, re.MULTILINE)[0]


def test_a_number_that_does_not_follow_is_found():
    assert refreshed(SMALL) == SMALL
    assert refreshed(SMALL.replace("2,400,000", "2,400,001")) == SMALL
    assert refreshed(SMALL.replace("| 24 |", "| 48 |")) != SMALL


def test_measured_values_are_taken_from_figures_and_what_follows_changes_with_them():
    changed = refreshed(SMALL, [{"name": "database statements", "ours": 62}, {"name": "a day", "ours": 1}])
    assert "| `q` | statements | 62 | measured: database statements |" in changed
    assert "| `f` | a day | 24 | assumed: hourly |" in changed
    assert "| 17.2 | 1,722 | 17,222 |" in changed


def test_formulas_are_arithmetic_and_nothing_else():
    assert computed("max(1, ceil(n / (4 - 1))) * min(2, 3)", {"n": 10}) == 8
    for wrong in ("n / 0", "m", "n **", "open(n)", "n.real", "n ** 2", "'text'"):
        with pytest.raises(Misconfigured, match="cannot be computed"):
            computed(wrong, {"n": 1})
