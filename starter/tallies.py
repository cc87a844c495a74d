"""What a controller tells of itself to Prometheus: that it sweeps, and how long a sweep takes."""

from datetime import timedelta
from typing import Final

from prometheus_client import Gauge, Histogram

from horarium.catalog.tallies import PROCESS

_SECONDS: Final = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 30, 60)

_SWEEPS = Histogram(
    "horarium_controller_sweep_seconds",
    "Time of one sweep of the controller, its waits for Temporal and the catalog included.",
    buckets=_SECONDS,
    registry=PROCESS,
)
_SWEPT_AT = Gauge(
    "horarium_controller_swept_timestamp_seconds", "When the last sweep of this controller ended.", registry=PROCESS
)


def swept(took: timedelta) -> None:
    """A sweep has ended, whatever it found."""
    _SWEEPS.observe(took.total_seconds())
    _SWEPT_AT.set_to_current_time()
