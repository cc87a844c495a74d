"""Figures for Prometheus. Labels are bounded: routes by template, never a name, id or organization of a caller's."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from horarium.catalog.figures import MOST_DEAD, Figures
from horarium.catalog.tallies import PROCESS
from horarium.control.expectations import Expectations

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
UNMATCHED = "unmatched"
"""The route of a request that no route was found for."""
_METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})
_QUICK = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5)


class Metrics:
    """The figures of one application, in a registry of its own. A page has those of its process too."""

    def __init__(self) -> None:
        registry = CollectorRegistry()
        self._registry = registry
        ProcessCollector(registry=registry)
        self._requests = Counter(
            "horarium_http_requests", "Requests answered.", ("method", "route", "status"), registry=registry
        )
        self._seconds = Histogram(
            "horarium_http_request_seconds", "Time to the answer.", ("route",), buckets=_QUICK, registry=registry
        )
        self._catalog = Histogram(
            "horarium_catalog_seconds",
            "Time of one transaction, its wait for a thread included.",
            ("kind", "call"),
            buckets=_QUICK,
            registry=registry,
        )
        self._of_the_catalog = _OfTheCatalog()
        registry.register(self._of_the_catalog)

    def answered(self, *, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request."""
        self._requests.labels(method if method in _METHODS else "other", route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    @contextmanager
    def catalog(self, kind: str, call: str) -> Iterator[None]:
        """Time one call of the catalog; `call` is the name of one of our functions."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self._catalog.labels(kind, call).observe(time.perf_counter() - began)

    def page(self, told: "Told", *, now: datetime) -> bytes:
        """All figures as Prometheus reads them, with what the catalog tells of itself."""
        self._of_the_catalog.told, self._of_the_catalog.now = told, now
        return generate_latest(self._registry) + generate_latest(PROCESS)


@dataclass(slots=True)
class Told:
    """What the catalog tells of itself; empty, or None, where it did not answer."""

    schedules: Mapping[str, int] = field(default_factory=dict)
    findings: Mapping[str, int] = field(default_factory=dict)
    figures: Figures | None = None
    expectations: Expectations | None = None


class _OfTheCatalog(Collector):
    """Figures that the catalog keeps: others than this process find and make what is counted there.

    Without an answer of the catalog there is none, rather than one that fell to zero, or stands where it was.
    """

    def __init__(self) -> None:
        self.told = Told()
        self.now = datetime.now(UTC)

    def collect(self) -> Iterator[Metric]:
        """See prometheus_client's `Collector`."""
        yield _family(
            CounterMetricFamily,
            "horarium_findings",
            "What should not be and was found, in the whole catalog.",
            "kind",
            self.told.findings,
        )
        yield _family(
            GaugeMetricFamily,
            "horarium_schedules",
            "Schedules that are not retired, by runtime state.",
            "state",
            self.told.schedules,
        )
        if self.told.figures is not None:
            yield from self._standing(self.told.figures)
        if self.told.expectations is not None:
            yield from self._overdue(self.told.expectations)

    def _standing(self, found: Figures) -> Iterator[Metric]:
        yield _family(
            GaugeMetricFamily,
            "horarium_active_runs",
            "Runs that hold a slot, by where they stand.",
            "disposition",
            found.open_runs,
        )
        yield GaugeMetricFamily("horarium_buffered_occurrences", "Due instants that wait for a slot.", found.buffered)
        yield GaugeMetricFamily(
            "horarium_reviews_waiting", "Activations that a person has to look at.", found.in_review
        )
        yield GaugeMetricFamily(
            "horarium_oldest_review_seconds",
            "How long the oldest of them has waited; 0 where there is none.",
            self._since(found.oldest_review),
        )
        if found.swept_at is not None:
            yield GaugeMetricFamily(
                "horarium_controller_lag_seconds",
                "Since the round of looks began that has come to every schedule of its environment; of the environment where "
                "that is longest ago.",
                self._since(found.swept_at),
            )
        yield _family(
            GaugeMetricFamily, "horarium_workers", "Workers with a fresh heartbeat, by role.", "role", found.workers
        )
        yield _family(
            GaugeMetricFamily,
            "horarium_agents",
            "Agent versions whose runner vouches for them, or fell silent within the last day.",
            "standing",
            found.agents,
        )
        yield GaugeMetricFamily(
            "horarium_dead_letters", f"Notifications that nobody heard; {MOST_DEAD} of more.", found.dead_letters
        )
        yield GaugeMetricFamily(
            "horarium_oldest_notification_seconds",
            "How long the oldest notification has waited that is still to be heard; 0 where there is none.",
            self._since(found.untold_since),
        )

    def _overdue(self, found: Expectations) -> Iterator[Metric]:
        yield GaugeMetricFamily(
            "horarium_schedules_past_expected_success", "Schedules that should have succeeded by now.", found.count
        )
        yield GaugeMetricFamily(
            "horarium_past_expected_success_seconds",
            "Since when the one should have that is longest overdue; 0 where none is.",
            self._since(found.since),
        )

    def _since(self, instant: datetime | None) -> float:
        return 0.0 if instant is None else max(0.0, (self.now - instant).total_seconds())


def _family(
    kind: type[CounterMetricFamily] | type[GaugeMetricFamily],
    name: str,
    what: str,
    label: str,
    values: Mapping[str, int],
) -> Metric:
    family = kind(name, what, labels=(label,))
    for value, count in values.items():
        family.add_metric((value,), count)
    return family
