"""Timeouts and retries, each with the reason for its number."""

from datetime import timedelta

from temporalio.common import RetryPolicy

from activities.pace import SILENT_WAIT

CATALOG_ANSWERS_WITHIN = timedelta(seconds=5)
"""As long as a transaction waits for another process's lock."""

LOCAL_RETRY = RetryPolicy(
    initial_interval=timedelta(milliseconds=100),
    backoff_coefficient=2,
    # Then the workflow sleeps on a timer, which costs a worker nothing, where a local activity that is retried keeps a
    # workflow task open. The timeout above ends an attempt that hangs, but not attempts that fail at once (SDK 1.35.0).
    maximum_attempts=3,
)

FIRST_PAUSE = timedelta(seconds=1)
LONGEST_PAUSE = timedelta(seconds=60)
"""Between tries while the catalog is down: soon at first, then not a burden on what is coming up again."""

LONGEST_SETTLING_PAUSE = timedelta(minutes=10)
"""Between tries to settle a run, which has to go on in one history, since its owner is the execution that was admitted.

A try costs six events (the failure's marker, a timer and its end, a workflow task's three). A week of outage has ten tries in
its first 17 minutes and then one every ten minutes, 1,016 in all: 6,100 events, where the server warns at 10,240 and ends a
workflow at 51,200, which is an outage of 59 days. A settlement is late by no more than the outage lasted, nor by more than
ten minutes.
"""

FIRST_LOOK = timedelta(seconds=60)
LONGEST_LOOK = timedelta(minutes=10)
"""A blocked schedule looks by itself at least this often, should the nudge have been lost, and so does a run whose agent
reports its outcome to the API. A look costs six events: a run of a week makes some 6,000, where the server warns at 10,240."""

ADMISSION_HEARTBEAT = timedelta(seconds=2)
"""How long after its nominal time an admission may be silent before another worker is given it."""


def admission_heartbeat(left: timedelta) -> timedelta:
    """The heartbeat timeout of an admission that has to wait for so long, and is silent for `SILENT_WAIT` of it.

    A run worker that is killed costs those that wait in it two seconds, and one that leaves in good order costs nothing. A beat
    every second saved those that were due later than two seconds after the kill, and was a third of all requests of an
    occurrence: 300 each second, just before a herd of 300. The timeout is the same for all attempts, and begins anew with each
    beat. So a kill costs up to eight seconds where an attempt began late in the wait, has beaten in it, or was deciding.
    That a run's workflow was ended by hand is asked for shortly before its second instead.
    """
    return ADMISSION_HEARTBEAT + min(max(left, timedelta(0)), SILENT_WAIT)


ADMISSION_TIME = timedelta(minutes=5)
"""The longest lead, and the decision. A catalog that is down fails the attempt much sooner."""

ADMISSION_RETRY = RetryPolicy(
    # The first retry comes at once: it is most often another worker taking over a wait.
    initial_interval=timedelta(milliseconds=100),
    backoff_coefficient=2,
    maximum_interval=timedelta(seconds=5),
)

AGENT_HEARTBEAT = timedelta(seconds=15)
"""A sign of life of the runner goes out every five seconds (`worker.composition`), so that two may be late on a busy machine
before it counts as lost."""

AGENT_RETRY = RetryPolicy(maximum_attempts=1)
"""A run is begun once. What an agent may repeat is the agent's declaration, below."""

IDEMPOTENT_AGENT_RETRY = RetryPolicy(maximum_attempts=3, initial_interval=timedelta(seconds=1))
"""For agents that are declared idempotent by key. All attempts share the time limit of the one run."""

POLL_TIME = timedelta(seconds=30)
"""One poll, and the settlement of what it found."""

POLL_MARGIN = timedelta(minutes=2)
"""Beyond the time limit of a polled run. The server makes no further attempt whose pause would pass its timeout, and would
end the polling up to a minute early; the polls end by themselves."""

POLL_RETRY = RetryPolicy(
    # An attempt that finds the run going on says itself when the next one is due; this is for a catalog that is down.
    initial_interval=timedelta(seconds=1),
    backoff_coefficient=2,
    maximum_interval=timedelta(seconds=60),
)

ONCE = RetryPolicy(maximum_attempts=1)
CANCELLATION_TIME = timedelta(seconds=15)
"""For telling an agent, once; the run was settled before."""

HISTORY_EVENTS = 200
"""Continue as new from here on: a replay in the sandbox costs about 12 ms and 0.57 ms an event. A step that fails costs six, so
that a day without a catalog makes some fifty short histories and not one that the server would end."""
