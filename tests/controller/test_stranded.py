"""Runs whose build has no workers any more are told of: once each, and again if it happens again."""

import asyncio
from dataclasses import dataclass, field

import structlog

from starter.stranded import Stranded
from worker.settings import Deployment

OLD, NEW = (Deployment(name="horarium", build_id=build_id) for build_id in ("1", "2"))


@dataclass
class Workers:
    """A Temporal that knows whose workers poll."""

    builds: set[Deployment] = field(default_factory=set)
    asked: int = 0

    async def working_builds(self) -> frozenset[Deployment]:
        self.asked += 1
        return frozenset(self.builds)


def swept(stranded: Stranded, **pinned: Deployment | None) -> tuple[int, list[dict[str, object]]]:
    """One sweep that finds these runs; how many it says are news, and what it logs."""
    for workflow_id, build in pinned.items():
        stranded.note(workflow_id, build)
    with structlog.testing.capture_logs() as logged:
        return asyncio.run(stranded.report()), list(logged)


def test_a_run_whose_build_works_is_nothing_to_tell_of():
    stranded = Stranded(Workers({OLD, NEW}))
    assert swept(stranded, a=OLD, b=NEW) == (0, [])


def test_workers_are_not_asked_for_where_no_run_belongs_to_a_build():
    workers = Workers()
    assert swept(Stranded(workers), a=None) == (0, [])
    assert workers.asked == 0


def test_runs_of_a_build_without_workers_are_told_of_together_and_once():
    stranded = Stranded(Workers({NEW}))
    news, logged = swept(stranded, a=OLD, b=OLD, c=NEW)
    assert news == 2
    (line,) = logged
    assert (line["event"], line["log_level"]) == ("pinned_runs_without_workers", "warning")
    assert (line["deployment"], line["build_id"], line["runs"], line["for_example"]) == ("horarium", "1", 2, "a")
    assert swept(stranded, a=OLD, b=OLD, c=NEW) == (0, [])


def test_another_run_of_such_a_build_is_news():
    stranded = Stranded(Workers({NEW}))
    swept(stranded, a=OLD)
    news, (line,) = swept(stranded, a=OLD, b=OLD)
    assert (news, line["runs"], line["for_example"]) == (1, 2, "b")


def test_a_build_that_loses_its_workers_again_is_told_of_again():
    workers = Workers({NEW})
    stranded = Stranded(workers)
    swept(stranded, a=OLD)
    workers.builds.add(OLD)
    assert swept(stranded, a=OLD) == (0, [])
    workers.builds.discard(OLD)
    assert swept(stranded, a=OLD)[0] == 1
