"""The port between an agent runner and the installation that it serves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Protocol

from horarium.agents.discovery import AgentDiscovery
from horarium.agents.events import RunBrief


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A run that was claimed: what it is about, and the secret that opens its input and outputs.

    `start_event` names the class of the event that starts it, None for the calendar's; `event` are that event's own fields.
    `config` are the settings of the profile that it belongs to, and `tenant_id` its tenant; empty and None where there is none.
    """

    brief: RunBrief
    token: str = field(repr=False)
    start_event: str | None = None
    event: Mapping[str, Any] = field(default_factory=dict, repr=False)
    config: Mapping[str, Any] = field(default_factory=dict, repr=False)
    tenant_id: str | None = None


class AgentHost(Protocol):
    """What an agent runner needs from outside. The installation's adapter and `InMemoryHost` keep the same contract.

    **Presence.** An agent version is ready while its lease lasts, counted from the last `register` or `renew` that
    returned. A runner that dies says nothing; its lease runs out. Calls about presence may be repeated at any time,
    and the last one counts. Two runners may serve the same version; then the lease is the later one's.

    **Runs.** Beginning a run yields a secret token, and nothing of the run is read or written without it. It dies with
    the run. A token that does not fit is refused (`NotFound`, code `run_not_found`) without saying whether the run
    exists. The token is handed over here and not with the dispatch, so that no history or queue ever holds it.

    Every method raises `Unavailable` where the installation does not answer now; the call may then be repeated.
    """

    async def register(self, discovery: Sequence[AgentDiscovery], *, lease: timedelta) -> None:
        """Make these agent versions known, and ready for the length of the lease.

        Replaces what was known of the same versions. Says nothing about versions that it does not name.
        """

    async def renew(self, agent_versions: Sequence[str], *, lease: timedelta) -> None:
        """Keep the versions ready for the length of the lease from now. `NotFound`, code `agent_missing`: register
        first."""

    async def release(self, agent_versions: Sequence[str]) -> None:
        """The runner leaves: the versions are stopped from now on. Versions that are not known are passed over."""

    async def begin(self, run_id: str, *, at: datetime, again: bool = False) -> Claim:
        """Claim a run and learn what it is about. `at` is the runner's clock, aware.

        Succeeds once for each run, through all crashes: whoever comes later is refused with code `already_begun`, and
        must not do the run's work. Only an agent that is idempotent by the run's id may claim it `again`, and then the
        earlier token is void. A run that was not admitted, or has ended, is refused with code `not_admitted`.
        """

    async def read_input(self, run_id: str, token: str) -> bytes:
        """The content that the run's input reference names, now. The authority is asked at each call."""

    async def write_output(self, run_id: str, token: str, name: str, data: bytes) -> str:
        """Store one output of the run under its output target and return a reference to it.

        The same name again replaces the content and returns the same reference.
        """
