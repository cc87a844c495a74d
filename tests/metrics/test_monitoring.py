"""The alert rules and the dashboard name figures that there are, with labels that they have and values that these can take."""

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.registry import CollectorRegistry

import starter.tallies
from horarium.api.metrics import Metrics, Told
from horarium.catalog.figures import Figures
from horarium.catalog.tallies import ERROR_KINDS, PROCESS
from horarium.control.expectations import Expectations
from horarium.schedule.findings import Finding
from horarium.schedule.ledger import HOLDING, Disposition, Reason
from tests.control.desk import NOON
from tests.deploy.product import DEPLOY
from tests.metrics.figures import samples
from tests.metrics.promtool import promtool

MONITORING = DEPLOY / "monitoring"
RULES = yaml.safe_load((MONITORING / "alerts.yml").read_text())["groups"][0]["rules"]
DASHBOARD = json.loads((MONITORING / "dashboard.json").read_text())
OF_PROMETHEUS = {"le", "job", "instance"}
VALUES: Mapping[str, frozenset[str]] = {
    "disposition": frozenset(Disposition),
    "reason": frozenset({*Reason, "none"}),
    "buffered": frozenset({"yes", "no"}),
    "standing": frozenset({"present", "lapsed"}),
    "role": frozenset({"schedules", "runs"}),
}
KINDS = {
    "horarium_catalog_errors_total": frozenset(ERROR_KINDS),
    "horarium_findings_total": frozenset(Finding),
}
SELECTOR = re.compile(r"\b((?:horarium|process)_[a-z_]+)(?:\{([^}]*)\})?")
MATCHER = re.compile(r'(\w+)\s*(=~|!=|!~|=)\s*"([^"]*)"')
GROUPING = re.compile(r"\bby \(([^)]*)\)")
FULL = Told(
    schedules={"active": 1},
    findings={"breaker_opened": 0},
    figures=Figures(
        open_runs=dict.fromkeys(HOLDING, 0),
        buffered=0,
        in_review=0,
        oldest_review=None,
        swept_at=NOON,
        workers={"schedules": 0, "runs": 0},
        agents={"present": 0, "lapsed": 0},
        dead_letters=0,
        untold_since=None,
    ),
    expectations=Expectations(),
)


def panels() -> list[dict[str, Any]]:
    return [each for each in DASHBOARD["panels"] if each["type"] != "row"]


def expressions() -> Iterator[tuple[str, str]]:
    for rule in RULES:
        yield rule["alert"], rule["expr"]
    for panel in panels():
        for target in panel["targets"]:
            yield panel["title"], target["expr"]


@cache
def known() -> Mapping[str, frozenset[str]]:
    """The labels of each sample that our processes can tell, whether or not anything was counted yet."""
    assert starter.tallies
    found: dict[str, frozenset[str]] = {}
    metrics = Metrics()
    for registry in (PROCESS, metrics._registry):
        found |= _declared(registry)
    for sample in samples(metrics.page(FULL, now=NOON).decode()):
        found.setdefault(sample.name, frozenset(sample.labels))
    return found


def _declared(registry: CollectorRegistry) -> dict[str, frozenset[str]]:
    found = {}
    for collector, names in registry._collector_to_names.items():
        labels = frozenset(getattr(collector, "_labelnames", ()))
        if hasattr(collector, "_labelnames"):
            found |= {name: labels | ({"le"} if name.endswith("_bucket") else frozenset()) for name in names}
    return found


@pytest.mark.parametrize(("where", "expression"), list(expressions()))
def test_a_figure_that_is_named_exists_with_its_labels(where: str, expression: str) -> None:
    labels = set(OF_PROMETHEUS)
    for name, matchers in SELECTOR.findall(expression):
        assert name in known(), where
        labels |= known()[name]
        for label, how, value in MATCHER.findall(matchers):
            assert label in known()[name], (where, name, label)
            possible = KINDS[name] if label == "kind" else VALUES[label]
            assert set(value.split("|") if "~" in how else [value]) <= possible, (where, label, value)
    if "temporal_" not in expression:
        for names in GROUPING.findall(expression):
            assert {each.strip() for each in names.split(",")} <= labels, where


@pytest.mark.parametrize("panel", panels(), ids=lambda panel: panel["title"])
def test_a_legend_names_what_the_series_are_told_apart_by(panel: dict[str, Any]) -> None:
    assert panel["datasource"]["uid"] == "prometheus"
    for target in panel["targets"]:
        assert target["datasource"]["uid"] == "prometheus"
        told_apart = {each.strip() for names in GROUPING.findall(target["expr"]) for each in names.split(",")} - {"le"}
        assert set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])) == told_apart, target["expr"]


def test_panels_do_not_lie_on_each_other_and_have_numbers_of_their_own() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert max(x for x, _ in cells) < 24
        assert not cells & taken, panel["title"]
        taken |= cells
    numbers = [each["id"] for each in DASHBOARD["panels"]]
    assert len(set(numbers)) == len(numbers)


def test_the_dashboard_shows_every_figure_of_ours() -> None:
    shown = " ".join(expression for _, expression in expressions())
    families = {
        re.sub(r"_(total|bucket|sum|count|created)$", "", name) for name in known() if name.startswith("horarium_")
    }
    assert {name for name in families if name not in shown} == set()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_a_rule_says_what_it_means_how_bad_it_is_and_where_to_read_on(rule: dict[str, Any]) -> None:
    assert rule["labels"]["severity"] in {"critical", "warning"}
    assert rule["annotations"]["summary"].endswith(".")
    assert rule["annotations"]["description"]
    page, _, anchor = rule["annotations"]["runbook"].partition("#")
    headings = re.findall(r"^##+ (.*)$", (DEPLOY / page).read_text(), re.MULTILINE)
    assert anchor in {re.sub(r"[^\w -]", "", each.lower()).replace(" ", "-") for each in headings}


def test_prometheus_takes_its_configuration_and_the_rules() -> None:
    promtool("check", "config", str(MONITORING / "prometheus.yml"))
    promtool("check", "rules", str(MONITORING / "alerts.yml"))


def test_prometheus_can_read_each_expression_of_the_dashboard(tmp_path: Path) -> None:
    def recorded(number: int, expression: str) -> dict[str, str]:
        return {"record": f"panel:{number}", "expr": expression.replace("$__rate_interval", "1m")}

    shown = [target["expr"] for panel in panels() for target in panel["targets"]]
    rules = [recorded(number, expression) for number, expression in enumerate(shown)]
    (tmp_path / "shown.yml").write_text(yaml.safe_dump({"groups": [{"name": "shown", "rules": rules}]}))
    promtool("check", "rules", str(tmp_path / "shown.yml"))
