"""Each alert rule fires when it should, and not before, as Prometheus itself carries the rules out."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.metrics.promtool import promtool
from tests.metrics.test_monitoring import MONITORING, RULES

ANNOTATIONS = {rule["alert"]: rule["annotations"] for rule in RULES}
SEVERITY = {rule["alert"]: rule["labels"]["severity"] for rule in RULES}
SOMETHING = {"up": "1x60"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Series with a sample a minute, and whether the alert fires at that minute: with these labels, and this value in words."""

    alert: str
    series: Mapping[str, str]
    at: int
    fires: bool = True
    labels: Mapping[str, str] = field(default_factory=dict)
    value: str = ""

    def annotations(self) -> dict[str, str]:
        """The rule's, filled in."""
        filled = {}
        for name, text in ANNOTATIONS[self.alert].items():
            filled[name] = text.replace("{{ $value | humanizeDuration }}", self.value)
            for label, value in self.labels.items():
                filled[name] = filled[name].replace(f"{{{{ $labels.{label} }}}}", value)
        return filled

    def document(self) -> dict[str, Any]:
        """The same as promtool reads it."""
        alert: dict[str, Any] = {"eval_time": f"{self.at}m", "alertname": self.alert}
        if self.fires:
            labels = {"severity": SEVERITY[self.alert], **self.labels}
            alert["exp_alerts"] = [{"exp_labels": labels, "exp_annotations": self.annotations()}]
        series = [{"series": name, "values": values} for name, values in self.series.items()]
        return {"interval": "1m", "input_series": series, "alert_rule_test": [alert]}


def lateness(slow: int) -> dict[str, str]:
    """Of each hundred runs so many take between ten and thirty seconds."""
    name = 'horarium_lateness_seconds_bucket{buffered="no",le="%s"}'
    return {name % "10": f"0+{100 - slow}x60", name % "30": "0+100x60", name % "+Inf": "0+100x60"}


REFUSED = 'horarium_occurrences_total{disposition="refused",reason="budget_exhausted"}'
DECIDED = 'horarium_admission_seconds_count{decision="%s"}'
MISSED = 'horarium_occurrences_total{disposition="missed",reason="outside_window"}'
NO_AGENT = 'horarium_occurrences_total{disposition="refused",reason="agent_offline"}'
ERRORS = 'horarium_catalog_errors_total{kind="%s"}'
FOUND = 'horarium_findings_total{kind="%s"}'
SWEPT = {"horarium_controller_swept_timestamp_seconds": "0+60x60"}
LAG = "horarium_controller_lag_seconds"
WORKERS = 'horarium_workers{role="%s"}'

CASES = (
    Case(alert="HorariumTellsNothing", series=SOMETHING, at=4),
    Case(alert="HorariumTellsNothing", series={WORKERS % "runs": "1x60"}, at=4, fires=False),
    Case(
        alert="HorariumNothingFires",
        series={WORKERS % "schedules": "1x3 0x60", WORKERS % "runs": "1x60"},
        at=6,
        labels={"role": "schedules"},
    ),
    Case(alert="HorariumNothingFires", series={WORKERS % "schedules": "1x3 0x60"}, at=3, fires=False),
    Case(alert="HorariumNothingFires", series={WORKERS % "schedules": "2x60"}, at=30, fires=False),
    Case(alert="HorariumControllerLags", series=SOMETHING, at=4),
    Case(alert="HorariumControllerLags", series={"horarium_controller_swept_timestamp_seconds": "0x60"}, at=6),
    Case(alert="HorariumControllerLags", series={**SWEPT, LAG: "0+60x90"}, at=40),
    Case(alert="HorariumControllerLags", series={**SWEPT, LAG: "300x60"}, at=40, fires=False),
    Case(alert="HorariumStartsLate", series=lateness(2), at=25, value="20s"),
    Case(alert="HorariumStartsLate", series=lateness(0), at=25, fires=False),
    Case(
        alert="HorariumRefusesMost",
        series={REFUSED: "0+6x60", DECIDED % "refused": "0+6x60", DECIDED % "admitted": "0+4x60"},
        at=25,
    ),
    Case(
        alert="HorariumRefusesMost",
        series={REFUSED: "0+6x60", DECIDED % "refused": "0+6x60", DECIDED % "admitted": "0+8x60"},
        at=25,
        fires=False,
    ),
    Case(alert="HorariumRunsDoNotStart", series={MISSED: "0x9 1x60"}, at=12, labels={"disposition": "missed"}),
    Case(alert="HorariumRunsDoNotStart", series={MISSED: "1x60"}, at=30, fires=False),
    Case(alert="HorariumAgentGone", series={'horarium_agents{standing="lapsed"}': "0x3 1x60"}, at=6),
    Case(alert="HorariumAgentGone", series={NO_AGENT: "0x9 1x60"}, at=12),
    Case(alert="HorariumAgentGone", series={'horarium_agents{standing="lapsed"}': "0x60"}, at=30, fires=False),
    Case(alert="HorariumReviewWaits", series={"horarium_oldest_review_seconds": "3700x60"}, at=1, value="1h 1m 40s"),
    Case(alert="HorariumReviewWaits", series={"horarium_oldest_review_seconds": "3600x60"}, at=1, fires=False),
    Case(
        alert="HorariumSuccessOverdue",
        series={"horarium_past_expected_success_seconds": "0x3 90x60"},
        at=10,
        value="1m 30s",
    ),
    Case(
        alert="HorariumSuccessOverdue",
        series={"horarium_past_expected_success_seconds": "0x3 90x60"},
        at=7,
        fires=False,
    ),
    Case(
        alert="HorariumNotificationsWait",
        series={"horarium_oldest_notification_seconds": "0x3 901x60"},
        at=10,
        value="15m 1s",
    ),
    Case(
        alert="HorariumNotificationsWait",
        series={"horarium_oldest_notification_seconds": "0x3 900x60"},
        at=30,
        fires=False,
    ),
    Case(alert="HorariumDeadLetters", series={"horarium_dead_letters": "7x9 8x60"}, at=60),
    Case(alert="HorariumDeadLetters", series={"horarium_dead_letters": "7x9 8x90"}, at=75, fires=False),
    Case(alert="HorariumDeadLetters", series={"horarium_dead_letters": "8x9 3x60"}, at=12, fires=False),
    Case(alert="HorariumCatalogFails", series={ERRORS % "locked": "0+3x60"}, at=12, labels={"kind": "locked"}),
    Case(alert="HorariumCatalogFails", series={ERRORS % "locked": "0x9 1x60"}, at=12, fires=False),
    Case(alert="HorariumCatalogFails", series={ERRORS % "fault": "0x9 1x60"}, at=12, labels={"kind": "fault"}),
    Case(alert="HorariumClockWrong", series={FOUND % "clock_skew": "0x9 1x60"}, at=12, labels={"kind": "clock_skew"}),
    Case(alert="HorariumClockWrong", series={FOUND % "clock_skew": "7x60"}, at=12, fires=False),
    Case(alert="HorariumBreakerOpened", series={FOUND % "breaker_opened": "0x9 1x60"}, at=12),
    Case(alert="HorariumBreakerOpened", series={FOUND % "clock_skew": "0x9 1x60"}, at=12, fires=False),
)


@pytest.mark.parametrize("fires", [True, False])
def test_every_rule_has_its_case(fires: bool) -> None:
    assert {case.alert for case in CASES if case.fires is fires} == set(ANNOTATIONS)


def test_each_rule_fires_when_it_should_and_not_before(tmp_path: Path) -> None:
    file = tmp_path / "alerts.test.yml"
    told = {
        "rule_files": [str(MONITORING / "alerts.yml")],
        "evaluation_interval": "15s",
        "tests": [case.document() for case in CASES],
    }
    file.write_text(yaml.safe_dump(told))
    promtool("test", "rules", str(file))
