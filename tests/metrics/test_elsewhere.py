"""What is counted of a run whose agent is behind the gateway http."""

from horarium.control.dispatching import Answer
from tests.control.desk import Desk, at
from tests.control.test_dispatching import admitted, claim, conclude, declarations, report
from tests.metrics.figures import growing

__all__ = ["declarations"]
"""The agents that these runs are for; a fixture."""


def test_it_begins_when_its_agent_has_taken_it_and_ends_as_that_reports(desk: Desk) -> None:
    run = admitted(desk)
    with growing() as grown:
        claimed = claim(desk, run)
        desk.now = at(62)
        for _ in range(2):
            conclude(desk, claimed, Answer.TAKEN)
        labels = {"contract": "schedules", "gateway": "http", "buffered": "no"}
        name = "horarium_lateness_seconds"
        assert (grown.of(f"{name}_count", **labels), grown.of(f"{name}_sum", **labels)) == (1, 2)
        for _ in range(2):
            report(desk, run)
        ended = "horarium_occurrences_total"
        assert (grown.of(ended, disposition="succeeded", gateway="http"), grown.of(ended)) == (1, 1)


def test_a_run_that_its_agent_refuses_did_not_begin(desk: Desk) -> None:
    claimed = claim(desk, admitted(desk))
    with growing() as grown:
        conclude(desk, claimed, Answer.REFUSED)
        ended = {"disposition": "not_started", "reason": "dispatch_refused", "gateway": "http"}
        assert grown.of("horarium_occurrences_total", **ended) == 1
        assert grown.of("horarium_lateness_seconds_count") == 0
