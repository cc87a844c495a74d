"""Figures for Prometheus. Labels are bounded: routes by template, never a name, id or organization of a caller's."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
UNMATCHED = "unmatched"
"""The route of a request that no route was found for."""
_METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})
_QUICK = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5)


class Metrics:
    """The figures of one application, in a registry of its own."""

    def __init__(self) -> None:
        registry = CollectorRegistry()
        self._registry = registry
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
        self._schedules = Gauge(
            "horarium_schedules", "Schedules that are not retired, by runtime state.", ("state",), registry=registry
        )
        self._findings = _Findings()
        registry.register(self._findings)

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

    def page(self, schedules: Mapping[str, int], findings: Mapping[str, int]) -> bytes:
        """All figures as Prometheus reads them, with how many schedules stand in which state, and how often what was found."""
        self._findings.counts = findings
        self._schedules.clear()
        for state, count in schedules.items():
            self._schedules.labels(state).set(count)
        return generate_latest(self._registry)


class _Findings(Collector):
    """Counts that the catalog keeps, since others than this process find things."""

    def __init__(self) -> None:
        self.counts: Mapping[str, int] = {}

    def collect(self) -> Iterator[CounterMetricFamily]:
        """Give them as one counter. Without an answer of the catalog there is none, rather than one that fell to zero."""
        family = CounterMetricFamily(
            "horarium_findings", "What should not be and was found, in the whole catalog.", labels=("kind",)
        )
        for kind, count in self.counts.items():
            family.add_metric((kind,), count)
        yield family
