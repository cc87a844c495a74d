"""The calendar's benchmark yields what it names, each beside the libraries that have an answer."""

import pytest

from benchmarks import calendar_speed


@pytest.mark.timeout(120)
def test_every_rule_is_measured_beside_its_peers(monkeypatch):
    for name in ("_ROUNDS", "_STEPS", "_PEER_STEPS"):
        monkeypatch.setattr(calendar_speed, name, 2)
    figures = list(calendar_speed.measure())
    assert list(dict.fromkeys(figure.name for figure in figures)) == calendar_speed.names()
    peers = {figure.peer for figure in figures if figure.name == "after: every minute"}
    assert peers == {"croniter", "cronsim", "apscheduler"}
