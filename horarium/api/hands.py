"""What the API asks of Temporal, as a port: the application brings the adapter, and this package imports no Temporal."""

from typing import Protocol

from horarium.schedule.identity import ActivationKey, RunKey


class Hands(Protocol):
    """Calls that make Temporal do sooner what the controller would make it do anyway, and the cancellation of a run."""

    async def start_run(self, key: RunKey) -> None:
        """Start the workflow of a run that was staged. Raises `Unavailable` where Temporal does not answer."""

    async def nudge(self, key: ActivationKey, signal: str) -> None:
        """Tell the workflow of an activation to look again. Raises `Unavailable` where Temporal does not answer."""

    async def tell_run(self, key: RunKey, signal: str) -> None:
        """Tell the workflow of a run to look again. Raises `Unavailable` where Temporal does not answer."""

    async def cancel_run(self, key: RunKey) -> bool:
        """Ask a run to end; nothing happens to one that is over. False where Temporal knows no such run.

        Raises `Unavailable` where Temporal does not answer.
        """
