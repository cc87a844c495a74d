"""The composition root: which parts a worker is made of, and the numbers that it runs with."""

from datetime import timedelta

from temporalio.client import Client
from temporalio.common import WorkerDeploymentVersion
from temporalio.worker import FixedSizeSlotSupplier, Worker, WorkerDeploymentConfig, WorkerTuner

from activities.admission import WAITS, Admissions
from activities.agents import AgentActivities
from activities.clock import WorkerClock
from activities.findings import Findings
from activities.gateway import HttpGateway
from activities.giving_way import GivingWay
from activities.ledger import Settlements
from activities.messages import RUNS_QUEUE, SCHEDULES_QUEUE
from activities.outcomes import HttpOutcomes
from activities.temporal import RunStarter
from activities.timetable import Timetable
from horarium.agents.host import AgentHost
from horarium.agents.runner import AgentRunner
from horarium.authority.asking import Authority
from horarium.catalog import Catalog
from worker.plugin import UNLESS_SAID_OTHERWISE, VERSIONED_WORKFLOWS, WORKFLOWS
from worker.settings import DEFAULT_AGENT_RUNS, Settings
from worker.slots import WorkflowSlots

GRACE = timedelta(seconds=5)
"""For local activities and decisions that are under way; waits for a nominal second are given up at once."""
AGENT_GRACE = timedelta(seconds=20)
"""For agents in the middle of a run; after that they are cancelled."""

WORKFLOW_TASKS = 10
"""At the same time, at the most, of workflows that are not in memory: with more of them a restart under load starves itself by
replays."""
CACHED_WORKFLOW_TASKS = 40
"""The same of those that are. A step holds a slot while it waits for the catalog, and with ten for all the next task of a run
that was just admitted stood behind the steps of other schedules, on a busy machine for so long that it timed out here."""
WORKFLOW_POLLS = 10
"""Twice the SDK's default: as many tasks are fetched at the same time. More is worse near the limit of a machine: with 40 of
them, steps and admissions crowd out the tasks that follow them, and 44 runs a second began 6 to 9 s late instead of 1.5 s."""
OTHER_SLOTS = 100
"""The SDK's default: of local activities, and of what such a worker has none of."""
STICKY_TIMEOUT = timedelta(seconds=2)
"""What a killed schedule worker costs: until then its tasks wait for it alone. The default would be ten."""
ADMISSION_SLOTS = WAITS * 5 // 4
"""Four fifths of them may only wait for their second; the rest decide (DESIGN.md, section 10)."""
HEARTBEAT_THROTTLE = timedelta(milliseconds=500)
"""Less than there is between two beats of an admission, so that each goes out when it is made. The SDK would hold them back for
80% of the timeout, which leaves no room for one that is late."""

AGENT_HEARTBEAT_THROTTLE = timedelta(seconds=5)
"""An agent learns that its run was cancelled from the answer to a heartbeat, so they are not held back for longer; and not for
less, since each is a write of the server and paid for as an action. The SDK would hold them back for 80% of the timeout."""


def schedule_worker(
    client: Client,
    catalog: Catalog,
    settings: Settings,
    clock: WorkerClock | None = None,
    *,
    findings: Findings | None = None,
) -> Worker:
    """Workflows, and the local activities of their steps and settlements.

    `clock` is the catalog's, by which the server's is doubted.
    """
    timetable = Timetable(catalog, RunStarter(client), settings.pace, clock=clock, findings=findings)
    settlements = Settlements(catalog, client)
    return Worker(
        client,
        task_queue=SCHEDULES_QUEUE,
        workflows=WORKFLOWS if settings.deployment is None else VERSIONED_WORKFLOWS,
        activities=[
            timetable.gather_facts,
            timetable.commit_plan,
            settlements.settle_run,
            settlements.look_at_run,
        ],
        tuner=workflow_tuner(),
        max_concurrent_workflow_task_polls=WORKFLOW_POLLS,
        max_cached_workflows=settings.cached_workflows,
        sticky_queue_schedule_to_start_timeout=STICKY_TIMEOUT,
        graceful_shutdown_timeout=GRACE,
        deployment_config=_deployment(settings),
    )


def workflow_tuner() -> WorkerTuner:
    """How much a schedule worker does at the same time."""
    return WorkerTuner.create_composite(
        workflow_supplier=WorkflowSlots(cached=CACHED_WORKFLOW_TASKS, new=WORKFLOW_TASKS),
        activity_supplier=FixedSizeSlotSupplier(OTHER_SLOTS),
        local_activity_supplier=FixedSizeSlotSupplier(OTHER_SLOTS),
        nexus_supplier=FixedSizeSlotSupplier(OTHER_SLOTS),
    )


def run_worker(
    client: Client,
    catalog: Catalog,
    settings: Settings,
    clock: WorkerClock | None = None,
    *,
    authority: Authority | None = None,
) -> Worker:
    """Admission, and what is between us and agents elsewhere. An `authority` that is given stays the caller's to close."""
    clock = clock or WorkerClock()
    gateway = HttpGateway(settings.public_url, now=clock.now)
    admissions = Admissions(
        catalog, authority or settings.authority, client, clock, gateway, ceilings=settings.ceilings
    )
    outcomes = HttpOutcomes(catalog, gateway, client, clock)
    return Worker(
        client,
        task_queue=RUNS_QUEUE,
        activities=[admissions.admit_run, outcomes.poll_run, outcomes.tell_cancelled],
        max_concurrent_activities=ADMISSION_SLOTS,
        default_heartbeat_throttle_interval=HEARTBEAT_THROTTLE,
        max_heartbeat_throttle_interval=HEARTBEAT_THROTTLE,
        graceful_shutdown_timeout=GRACE,
        deployment_config=_deployment(settings),
    )


def _deployment(settings: Settings) -> WorkerDeploymentConfig | None:
    """What tells workers of two builds apart, and what an upgrade means to a workflow."""
    if settings.deployment is None:
        return None
    version = WorkerDeploymentVersion(deployment_name=settings.deployment.name, build_id=settings.deployment.build_id)
    return WorkerDeploymentConfig(
        version=version, use_worker_versioning=True, default_versioning_behavior=UNLESS_SAID_OTHERWISE
    )


def agent_workers(
    client: Client,
    runner: AgentRunner,
    host: AgentHost,
    clock: WorkerClock | None = None,
    *,
    runs: int = DEFAULT_AGENT_RUNS,
) -> tuple[Worker, ...]:
    """The agents of one runner, each version on its own task queue, with so many `runs` at the same time.

    They belong to no deployment: an agent has versions of its own, and runs of every build of ours are handed to it.
    """
    clock = clock or WorkerClock()
    return tuple(
        Worker(
            client,
            task_queue=runner.task_queue_of(agent_version),
            # Each has slots of its own, so it counts its own runs.
            activities=[
                AgentActivities(runner, host, now=clock.now, clock=clock, giving_way=GivingWay(runs)).run_agent
            ],
            max_concurrent_activities=runs,
            max_heartbeat_throttle_interval=AGENT_HEARTBEAT_THROTTLE,
            graceful_shutdown_timeout=AGENT_GRACE,
        )
        for agent_version in runner.agent_versions
    )
