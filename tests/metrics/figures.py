"""Reading a page of figures as Prometheus does."""

import json
import re
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from horarium.catalog.tallies import PROCESS


def samples(text: str) -> list[Sample]:
    """Every sample of a page. Raises where it is none."""
    return [sample for family in text_string_to_metric_families(text) for sample in family.samples]


def summed(found: Iterable[Sample], name: str, **labels: str) -> float:
    """The sum of all samples of a name that have these labels."""
    return sum(each.value for each in found if each.name == name and labels.items() <= each.labels.items())


def here() -> list[Sample]:
    """What this process counts."""
    return [sample for family in PROCESS.collect() for sample in family.samples]


class Growth:
    """By how much a figure of this process grew."""

    def __init__(self, before: list[Sample]) -> None:
        self._before = before

    def of(self, name: str, **labels: str) -> float:
        """To the nanosecond: sums of seconds that another test left behind are rarely whole."""
        return round(summed(here(), name, **labels) - summed(self._before, name, **labels), 9)


@contextmanager
def growing() -> Iterator[Growth]:
    yield Growth(here())


def fetch(address: str) -> str:
    with urllib.request.urlopen(address, timeout=20) as answer:
        assert re.match(r"text/plain; version=0\.0\.4", answer.headers["Content-Type"])
        return str(answer.read().decode())


def told_address(log: Path) -> str:
    """Where a process said in its log that it serves its figures, the last time."""
    told = [json.loads(line) for line in log.read_text().splitlines() if '"metrics_served"' in line]
    return f"http://{told[-1]['host']}:{told[-1]['port']}/metrics"
